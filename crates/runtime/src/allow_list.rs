//! The schema allow-list: an integration may read only datafiles whose schema is listed in its definition.
//!
//! Declared queries are checked before a run, against the schemas that they *can* read. Ad-hoc queries are
//! checked against the schemas that they actually read (see [`crate::Data`]).

use std::collections::BTreeSet;
use std::fmt;

use qontract_graphql::{Engine, Request};

use crate::data::DataError;
use crate::definition::IntegrationDefinition;
use crate::meta::DeclaredQuery;

/// Schemas that every integration lists, even if it does not read them. They are never reported as unused.
pub const IMPLICIT_SCHEMAS: [&str; 2] =
    ["/app-interface/app-interface-settings-1.yml", "/app-sre/integration-1.yml"];

/// A query that can read a schema that is not on the allow-list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The schema that is not listed.
    pub schema: String,
    /// The query.
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

/// The schemas that queries can read, each with the query and the field that reach it.
pub fn reachable_schemas(engine: &Engine, queries: &[DeclaredQuery]) -> Result<Vec<Violation>, DataError> {
    let mut reachable = BTreeSet::new();
    for query in queries.iter().filter(|query| query.is_known_to(engine)) {
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
    Ok(reachable.into_iter().collect())
}

/// The reachable schemas that the definition does not list.
pub fn violations<'r>(reachable: &'r [Violation], listing: &IntegrationDefinition) -> Vec<&'r Violation> {
    reachable.iter().filter(|one| !listing.schemas.contains(&one.schema)).collect()
}

/// Schemas that are listed although no query can read them. A schema without a GraphQL type can only be read
/// through untyped references, so it is not reported.
pub fn unused_schemas(
    engine: &Engine,
    listing: &IntegrationDefinition,
    read: &BTreeSet<String>,
) -> Vec<String> {
    let schema = engine.schema();
    let typed: BTreeSet<String> = (0..schema.types().len())
        .flat_map(|type_| schema.schemas_of(type_))
        .map(|name| name.to_string())
        .collect();
    let superfluous = |name: &&String| {
        !read.contains(*name) && typed.contains(*name) && !IMPLICIT_SCHEMAS.contains(&name.as_str())
    };
    listing.schemas.iter().filter(superfluous).cloned().collect()
}
