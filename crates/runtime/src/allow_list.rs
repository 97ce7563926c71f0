//! The schema allow-list: an integration may read only datafiles whose schema is listed in its definition.
//!
//! Declared queries are checked before a run, against the schemas that they *can* read. Ad-hoc queries are
//! checked against the schemas that they actually read (see [`crate::Data`]).

use std::collections::BTreeSet;
use std::fmt;

use qontract_graphql::{Engine, Request};

use crate::affected::ComparedQuery;
use crate::data::DataError;
use crate::definition::IntegrationDefinition;
use crate::meta::DeclaredQuery;

/// Schemas that every integration lists, even if it does not read them. They are never reported as unused.
pub const IMPLICIT_SCHEMAS: [&str; 2] =
    ["/app-interface/app-interface-settings-1.yml", "/app-sre/integration-1.yml"];

/// A schema that a query can read. It is a violation if the schema is not on the allow-list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The schema that the query can read.
    pub schema: String,
    /// The name of the query.
    pub query: String,
    /// The GraphQL field through which the query reaches the schema.
    pub field: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, query, field } = self;
        write!(f, "the query `{query}` can read `{schema}` through `{field}`, which is not listed")
    }
}

/// The schemas that declared queries can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachability {
    /// The schemas that the queries can read, each with the query and the field that reach it.
    pub schemas: BTreeSet<Violation>,
    /// All schemas that have a GraphQL type.
    pub typed: BTreeSet<String>,
}

/// Determines the schemas that queries can read from the bundle of an engine.
pub fn reachability(engine: &Engine, queries: &[DeclaredQuery]) -> Result<Reachability, DataError> {
    Ok(Reachability { schemas: reachable_schemas(engine, queries)?, typed: engine.schema().typed_schemas() })
}

fn reachable_schemas(engine: &Engine, queries: &[DeclaredQuery]) -> Result<BTreeSet<Violation>, DataError> {
    let mut reachable = BTreeSet::new();
    for query in queries.iter().filter(|query| ComparedQuery::from(*query).is_known_to(engine)) {
        let DeclaredQuery { name, text, presence: _ } = query;
        let request = Request { query: text, operation: Some(name), ..Request::default() };
        let footprint = engine.footprint(request).map_err(|failures| DataError::Refused {
            query: format!("`{name}`"),
            why: failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>().join("; "),
        })?;
        for (schema, _) in footprint.datafiles() {
            let field = footprint
                .first_field_to(schema)
                .map(|(type_, field)| format!("{type_}.{field}"))
                .unwrap_or_default();
            reachable.insert(Violation { schema: schema.to_owned(), query: name.clone(), field });
        }
    }
    Ok(reachable)
}

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
