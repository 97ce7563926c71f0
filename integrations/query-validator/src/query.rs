//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use serde::Deserialize;

/// The request.
pub const QUERY: &str = include_str!("query.graphql");

/// A `QontractQuery_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct QontractQuery {
    /// `path`
    pub path: String,
}

/// A `NamespaceOpenshiftResourceVaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceVaultSecret {
    /// `provider`
    pub provider: String,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    /// `path`
    pub path: String,
}

/// A `NamespaceOpenshiftResourceResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResource {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `NamespaceOpenshiftResourceResourceTemplate_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResourceTemplate {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `NamespaceOpenshiftResourceRoute_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceRoute {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `NamespaceOpenshiftResourcePrometheusRule_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourcePrometheusRule {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "__typename")]
pub enum NamespaceOpenshiftResource {
    /// `NamespaceOpenshiftResourceVaultSecret_v1`
    #[serde(rename = "NamespaceOpenshiftResourceVaultSecret_v1")]
    VaultSecret(NamespaceOpenshiftResourceVaultSecret),
    /// `NamespaceOpenshiftResourceResource_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResource_v1")]
    Resource(NamespaceOpenshiftResourceResource),
    /// `NamespaceOpenshiftResourceResourceTemplate_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResourceTemplate_v1")]
    ResourceTemplate(NamespaceOpenshiftResourceResourceTemplate),
    /// `NamespaceOpenshiftResourceRoute_v1`
    #[serde(rename = "NamespaceOpenshiftResourceRoute_v1")]
    Route(NamespaceOpenshiftResourceRoute),
    /// `NamespaceOpenshiftResourcePrometheusRule_v1`
    #[serde(rename = "NamespaceOpenshiftResourcePrometheusRule_v1")]
    PrometheusRule(NamespaceOpenshiftResourcePrometheusRule),
    /// A type that is not known here.
    #[serde(other)]
    Other,
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

/// The answer to `Validations`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Validations {
    /// `query_validations_v1`
    pub query_validations_v1: Option<Vec<QueryValidation>>,
}

impl qontract_graphql::Operation for Validations {
    const NAME: &'static str = "Validations";
    const TEXT: &'static str = QUERY;
}
