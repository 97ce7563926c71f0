//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use serde::Deserialize;

/// The answer to `Validations`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Validations {
    /// `query_validations_v1`
    pub query_validations_v1: Option<Vec<QueryValidation>>,
}

impl Operation for Validations {
    const SOURCE: QuerySource = QuerySource::new("Validations", include_str!("query.graphql"), &[]);
}

/// A `QueryValidation_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct QueryValidation {
    /// `name`
    pub name: String,
    /// `queries`
    pub queries: Vec<QontractQuery>,
    /// `resources`
    pub resources: Option<Vec<NamespaceOpenshiftResource>>,
}

/// A `QontractQuery_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct QontractQuery {
    /// `path`
    pub path: String,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResource {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    /// `path`
    pub path: String,
}
