//! The definition of an integration in the data: its existence, the schemas it may read, and its approved
//! removals.
//!
//! The runner makes these queries itself; they are exempt from the integration's allow-list.

use std::collections::BTreeSet;

use qontract_graphql::Node;
use serde::Deserialize;

use crate::data::{Ask, DataError, Source};
use crate::guard::Approval;
use crate::place::Place;

/// The definition of an integration in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The allow-list of schemas that it may read.
    pub schemas: BTreeSet<String>,
    /// The datafile that defines it.
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

/// All integrations that the data defines, by name.
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

/// The definition of the integration `name`.
pub fn of(source: &dyn Source, name: &str) -> Result<Option<Listing>, DataError> {
    Ok(all(source)?.into_iter().find(|(known, _)| known == name).map(|(_, listing)| listing))
}

/// The removal approvals in the data; empty if its GraphQL types do not have them.
pub fn approvals(source: &dyn Source) -> Result<Vec<Approval>, DataError> {
    if !has_field(source, "removal_approvals_v1")? {
        return Ok(Vec::new());
    }
    let text = "{ removal_approvals_v1 { path integration expiration removals { target kind name } } }";
    // The types may lack `path`: messages then do not name the file.
    let found: ApprovalsAnswer = match ask(source, text) {
        Err(DataError::Refused { .. }) => ask(source, &text.replace("path ", ""))?,
        answer => answer?,
    };
    Ok(found.removal_approvals_v1.unwrap_or_default())
}

fn has_field(source: &dyn Source, name: &str) -> Result<bool, DataError> {
    let types: Types = ask(source, "{ __type(name: \"Query\") { fields { name } } }")?;
    Ok(types.query.is_some_and(|query| query.fields.iter().any(|field| field.name == name)))
}

fn ask<T: serde::de::DeserializeOwned>(source: &dyn Source, text: &str) -> Result<T, DataError> {
    let request = Ask { text, operation: None, variables: None, places: false, only: None };
    let data: Node = source.answer(request)?.data;
    T::deserialize(data)
        .map_err(|error| DataError::Refused { query: format!("`{text}`"), why: error.to_string() })
}
