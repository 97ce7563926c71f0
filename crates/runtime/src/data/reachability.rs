//! The schemas that declared queries can read, according to the GraphQL types.

use std::collections::BTreeSet;
use std::fmt;

use qontract_graphql::{Engine, Request};

use super::DataError;
use crate::comparison_query::ComparedQuery;
use crate::meta::DeclaredQuery;

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
