//! The rules, one file each.

pub mod files;
pub mod graphql;
pub mod paths;
pub mod references;
pub mod resources;
pub mod schema_match;
pub mod schemas;
pub mod synthetic;
pub mod templates;
pub mod unique;
