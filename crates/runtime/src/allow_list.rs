//! The schema allow-list: an integration may read only datafiles whose schema is listed in its definition.
//!
//! Declared queries are checked before a run, against the schemas that they *can* read. Ad-hoc queries are
//! checked against the schemas that they actually read (see [`crate::Data`]).

use std::collections::BTreeSet;

use crate::definition::IntegrationDefinition;

pub use crate::data::{Reachability, Violation, reachability};

/// Schemas that every integration lists, even if it does not read them. They are never reported as unused.
pub const IMPLICIT_SCHEMAS: [&str; 2] =
    ["/app-interface/app-interface-settings-1.yml", "/app-sre/integration-1.yml"];

/// The reachable schemas that the definition does not list.
pub fn violations<'r>(reachable: &'r Reachability, listing: &IntegrationDefinition) -> Vec<&'r Violation> {
    reachable.schemas.iter().filter(|one| !listing.schemas.contains(&one.schema)).collect()
}

/// Schemas that are listed although no declared query can read them and no query has read them (`read`). A schema
/// without a GraphQL type can only be read through untyped references, so it is not reported.
pub fn unused_schemas(
    reachable: &Reachability,
    listing: &IntegrationDefinition,
    read: &BTreeSet<String>,
) -> Vec<String> {
    let reached: BTreeSet<&str> = reachable.schemas.iter().map(|one| &*one.schema).collect();
    let superfluous = |name: &&String| {
        !reached.contains(name.as_str())
            && !read.contains(*name)
            && reachable.typed.contains(*name)
            && !IMPLICIT_SCHEMAS.contains(&name.as_str())
    };
    listing.schemas.iter().filter(superfluous).cloned().collect()
}
