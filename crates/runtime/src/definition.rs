//! The definition of an integration in the data: its datafile, the schemas it may read, and its approved
//! removals.
//!
//! The runner makes these queries itself; they are exempt from the integration's allow-list.

use std::collections::BTreeSet;

use qontract_graphql::Node;
use serde::Deserialize;

use crate::data::{BundleReader, DataError, QueryRequest};
use crate::guard::Approval;
use crate::source_location::SourceLocation;

/// The definition of an integration in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationDefinition {
    /// The allow-list of schemas that the integration may read.
    pub schemas: BTreeSet<String>,
    /// The datafile that defines it.
    pub place: SourceLocation,
}

#[derive(Deserialize)]
struct DefinitionsAnswer {
    integrations_v1: Option<Vec<DefinitionEntry>>,
}

#[derive(Deserialize)]
struct DefinitionEntry {
    name: String,
    path: String,
    schemas: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ApprovalsAnswer {
    removal_approvals_v1: Option<Vec<Approval>>,
}

#[derive(Deserialize)]
struct TypesAnswer {
    #[serde(rename = "__type")]
    query: Option<QueryType>,
}

#[derive(Deserialize)]
struct QueryType {
    fields: Vec<QueryField>,
}

#[derive(Deserialize)]
struct QueryField {
    name: String,
}

/// All integrations that the data defines, by name.
pub fn all(source: &dyn BundleReader) -> Result<Vec<(String, IntegrationDefinition)>, DataError> {
    if !has_field(source, "integrations_v1")? {
        return Ok(Vec::new());
    }
    let result: DefinitionsAnswer = query(source, "{ integrations_v1 { name path schemas } }")?;
    let listing = |one: DefinitionEntry| {
        let schemas = one.schemas.unwrap_or_default().into_iter().collect();
        (one.name, IntegrationDefinition { schemas, place: SourceLocation::datafile(&one.path, "") })
    };
    Ok(result.integrations_v1.unwrap_or_default().into_iter().map(listing).collect())
}

/// The definition of the integration `name`.
pub fn of(source: &dyn BundleReader, name: &str) -> Result<Option<IntegrationDefinition>, DataError> {
    Ok(all(source)?.into_iter().find(|(other, _)| other == name).map(|(_, listing)| listing))
}

/// The removal approvals in the data; empty if the GraphQL schema does not define them.
pub fn approvals(source: &dyn BundleReader) -> Result<Vec<Approval>, DataError> {
    if !has_field(source, "removal_approvals_v1")? {
        return Ok(Vec::new());
    }
    let text = "{ removal_approvals_v1 { path integration expiration removals { target kind name } } }";
    // The type may lack `path`; then messages do not name the file.
    let result: ApprovalsAnswer = match query(source, text) {
        Err(DataError::Refused { .. }) => query(source, &text.replace("path ", ""))?,
        other => other?,
    };
    Ok(result.removal_approvals_v1.unwrap_or_default())
}

fn has_field(source: &dyn BundleReader, name: &str) -> Result<bool, DataError> {
    let types: TypesAnswer = query(source, "{ __type(name: \"Query\") { fields { name } } }")?;
    Ok(types.query.is_some_and(|query| query.fields.iter().any(|field| field.name == name)))
}

fn query<T: serde::de::DeserializeOwned>(source: &dyn BundleReader, text: &str) -> Result<T, DataError> {
    let request = QueryRequest { text, operation: None, variables: None, places: false, only: None };
    let data: Node = source.answer(request)?.data;
    T::deserialize(data)
        .map_err(|error| DataError::Refused { query: format!("`{text}`"), why: error.to_string() })
}
