//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use serde::Deserialize;

/// The answer to `Namespaces`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespaces {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for Namespaces {
    const SOURCE: QuerySource = QuerySource::new("Namespaces", include_str!("query.graphql"), &[]);
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `labels`
    pub labels: Option<String>,
    /// `cluster`
    pub cluster: Option<Cluster>,
    /// `environment`
    pub environment: Environment,
    /// `openshiftResources`
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// `name`
    pub name: String,
    /// `serverUrl`
    pub server_url: String,
}

/// A `Environment_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Environment {
    /// `name`
    pub name: String,
    /// `product`
    pub product: Product,
}

/// A `Product_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Product {
    /// `name`
    pub name: String,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "__typename")]
pub enum NamespaceOpenshiftResource {
    /// `NamespaceOpenshiftResourceResource_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResource_v1")]
    Resource(NamespaceOpenshiftResourceResource),
    /// `NamespaceOpenshiftResourceResourceTemplate_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResourceTemplate_v1")]
    ResourceTemplate(NamespaceOpenshiftResourceResourceTemplate),
    /// A type that is not known here.
    #[serde(other)]
    Other,
}

/// A `NamespaceOpenshiftResourceResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResource {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<Resource>,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    /// `content`
    pub content: String,
}

/// A `NamespaceOpenshiftResourceResourceTemplate_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResourceTemplate {
    /// `provider`
    pub provider: String,
    /// `type`
    pub r#type: Option<String>,
}

/// The answer to `Permissions`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Permissions {
    /// `permissions_v1`
    pub permissions_v1: Vec<Permission>,
}

impl Operation for Permissions {
    const SOURCE: QuerySource = QuerySource::new("Permissions", include_str!("query.graphql"), &[]);
}

/// A `Permission_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Permission {
    /// `name`
    pub name: String,
    /// `service`
    pub service: String,
}
