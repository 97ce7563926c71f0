//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use serde::Deserialize;

/// The request.
pub const QUERY: &str = include_str!("query.graphql");

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cluster {
    /// `name`
    pub name: String,
    /// `serverUrl`
    #[serde(rename = "serverUrl")]
    pub server_url: String,
}

/// A `Product_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Product {
    /// `name`
    pub name: String,
}

/// A `Environment_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Environment {
    /// `name`
    pub name: String,
    /// `product`
    pub product: Product,
}

/// A `NamespaceOpenshiftResourceVaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceVaultSecret {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: String,
    /// `version`
    pub version: i32,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    /// `content`
    pub content: String,
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
}

/// A `NamespaceOpenshiftResourceRoute_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceRoute {
    /// `provider`
    pub provider: String,
}

/// A `NamespaceOpenshiftResourcePrometheusRule_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourcePrometheusRule {
    /// `provider`
    pub provider: String,
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

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespace {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `labels`
    pub labels: Option<String>,
    /// `cluster`
    #[serde(default)]
    pub cluster: Option<Cluster>,
    /// `environment`
    pub environment: Environment,
    /// `openshiftResources`
    #[serde(rename = "openshiftResources")]
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
}

/// The answer to `Namespaces`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespaces {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl qontract_graphql::Operation for Namespaces {
    const NAME: &'static str = "Namespaces";
    const TEXT: &'static str = QUERY;
}

/// A `Permission_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Permission {
    /// `name`
    pub name: String,
    /// `service`
    pub service: String,
}

/// The answer to `Permissions`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Permissions {
    /// `permissions_v1`
    pub permissions_v1: Vec<Permission>,
}

impl qontract_graphql::Operation for Permissions {
    const NAME: &'static str = "Permissions";
    const TEXT: &'static str = QUERY;
}
