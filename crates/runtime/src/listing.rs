//! What the data says about an integration: that it exists, what it may read, what it may remove.
//!
//! These queries are the runner's own and are exempt from the list of what the integration may read.

use std::collections::BTreeSet;

use qontract_graphql::Node;
use serde::Deserialize;

use crate::data::{Ask, DataError, Source};
use crate::guard::Approval;
use crate::place::Place;

/// What the data says about an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The schemas that it may read.
    pub schemas: BTreeSet<String>,
    /// The file that says so.
    pub place: Place,
}

#[derive(Deserialize)]
struct Integrations {
    integrations_v1: Option<Vec<Integration>>,
}

#[derive(Deserialize)]
struct Integration {
    name: String,
    path: String,
    schemas: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ApprovalsAnswer {
    removal_approvals_v1: Option<Vec<Approval>>,
}

#[derive(Deserialize)]
struct Types {
    #[serde(rename = "__type")]
    query: Option<QueryType>,
}

#[derive(Deserialize)]
struct QueryType {
    fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
}

/// All integrations that the data knows, by name.
pub fn all(source: &dyn Source) -> Result<Vec<(String, Listing)>, DataError> {
    if !has_field(source, "integrations_v1")? {
        return Ok(Vec::new());
    }
    let found: Integrations = ask(source, "{ integrations_v1 { name path schemas } }")?;
    let listing = |one: Integration| {
        let schemas = one.schemas.unwrap_or_default().into_iter().collect();
        (one.name, Listing { schemas, place: Place::datafile(&one.path, "") })
    };
    Ok(found.integrations_v1.unwrap_or_default().into_iter().map(listing).collect())
}

/// What the data says about the integration `name`.
pub fn of(source: &dyn Source, name: &str) -> Result<Option<Listing>, DataError> {
    Ok(all(source)?.into_iter().find(|(known, _)| known == name).map(|(_, listing)| listing))
}

/// The approvals of removals in the data; none where its types do not know them.
pub fn approvals(source: &dyn Source) -> Result<Vec<Approval>, DataError> {
    if !has_field(source, "removal_approvals_v1")? {
        return Ok(Vec::new());
    }
    let text = "{ removal_approvals_v1 { integration expiration removals { target kind name } } }";
    let found: ApprovalsAnswer = ask(source, text)?;
    Ok(found.removal_approvals_v1.unwrap_or_default())
}

fn has_field(source: &dyn Source, name: &str) -> Result<bool, DataError> {
    let types: Types = ask(source, "{ __type(name: \"Query\") { fields { name } } }")?;
    Ok(types.query.is_some_and(|query| query.fields.iter().any(|field| field.name == name)))
}

fn ask<T: serde::de::DeserializeOwned>(source: &dyn Source, text: &str) -> Result<T, DataError> {
    let ask = Ask { text, operation: None, variables: None, places: false, only: None };
    let data: Node = source.answer(ask)?.data;
    T::deserialize(data)
        .map_err(|error| DataError::Refused { query: format!("`{text}`"), why: error.to_string() })
}
