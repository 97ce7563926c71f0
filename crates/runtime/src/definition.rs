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
    /// The datafile that defines the integration.
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
    fields: Option<Vec<QueryField>>,
}

#[derive(Deserialize)]
struct QueryField {
    name: String,
    #[serde(rename = "type")]
    of: FieldType,
}

/// A type; lists and required types wrap another type.
#[derive(Deserialize)]
struct FieldType {
    name: Option<String>,
    #[serde(default)]
    fields: Option<Vec<NamedField>>,
    #[serde(rename = "ofType")]
    of: Option<Box<FieldType>>,
}

#[derive(Deserialize)]
struct NamedField {
    name: String,
}

impl QueryField {
    /// The named type that this type wraps in lists or as required, or this type itself.
    fn named_type(&self) -> Option<&FieldType> {
        let mut one = &self.of;
        while one.name.is_none() {
            one = one.of.as_deref()?;
        }
        Some(one)
    }
}

/// The query for all definitions.
pub const DEFINITIONS_QUERY: &str = "{ integrations_v1 { name path schemas } }";

/// All integrations that the data defines, by name.
pub fn all(source: &dyn BundleReader) -> Result<Vec<(String, IntegrationDefinition)>, DataError> {
    let result: DefinitionsAnswer = match query(source, DEFINITIONS_QUERY) {
        // The GraphQL types have no integrations, so the data defines none.
        Err(DataError::UnknownFields { fields, .. })
            if fields.iter().all(|field| field == "Query.integrations_v1") =>
        {
            return Ok(Vec::new());
        }
        result => result?,
    };
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

/// The removal approvals in the data; empty if the GraphQL schema does not define approvals.
///
/// The types may lack some of the fields. Therefore, the available fields are read from the schema, not found by
/// trying a query: if a query with the field `plan` failed, an approval that is bound to a plan would be read as
/// unbound.
pub fn approvals(source: &dyn BundleReader) -> Result<Vec<Approval>, DataError> {
    let Some(approval) = type_of(source, "Query", "removal_approvals_v1")? else { return Ok(Vec::new()) };
    let fields = fields_of(source, &approval)?;
    let removal = fields.iter().find(|field| field.name == "removals").and_then(QueryField::named_type);
    let of_removals = removal.and_then(|removal| removal.fields.as_deref()).unwrap_or_default();
    let optional = |name| if fields.iter().any(|field| field.name == name) { name } else { "" };
    let (path, once) = (optional("path"), optional("once"));
    let plan = if of_removals.iter().any(|field| field.name == "plan") { "plan" } else { "" };
    let text = format!(
        "{{ removal_approvals_v1 {{ {path} integration expiration {once} removals {{ target kind name {plan} }} }} }}"
    );
    let result: ApprovalsAnswer = query(source, &text)?;
    Ok(result.removal_approvals_v1.unwrap_or_default())
}

/// The name of the type of a field, without lists; `None` if the field does not exist.
fn type_of(source: &dyn BundleReader, of: &str, field: &str) -> Result<Option<String>, DataError> {
    let fields = fields_of(source, of)?;
    let found = fields.iter().find(|one| one.name == field);
    Ok(found.and_then(QueryField::named_type).and_then(|of| of.name.clone()))
}

/// The fields of a type and the fields of the types of these fields, in one request.
fn fields_of(source: &dyn BundleReader, name: &str) -> Result<Vec<QueryField>, DataError> {
    let named = "name fields { name } ofType { name fields { name } ofType { name fields { name } \
        ofType { name fields { name } } } }";
    let name = serde_json::Value::from(name);
    let types: TypesAnswer =
        query(source, &format!("{{ __type(name: {name}) {{ fields {{ name type {{ {named} }} }} }} }}"))?;
    Ok(types.query.and_then(|query| query.fields).unwrap_or_default())
}

fn query<T: serde::de::DeserializeOwned>(source: &dyn BundleReader, text: &str) -> Result<T, DataError> {
    let request = QueryRequest { text, ..QueryRequest::default() };
    let data: Node = source.answer(request)?.data;
    T::deserialize(data)
        .map_err(|error| DataError::Refused { query: format!("`{text}`"), why: error.to_string() })
}
