//! Queries that are executed only if the GraphQL types of the data have all of their fields.

pub mod integration_shards;
pub mod labelled_namespaces;
pub mod older_shards;
pub mod older_strategies;
