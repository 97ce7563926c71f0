//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.

use serde::Deserialize;

/// The request.
pub const QUERY: &str = include_str!("query.graphql");

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1Cluster {
    /// `name`
    pub name: String,
    /// `serverUrl`
    #[serde(rename = "serverUrl")]
    pub server_url: String,
}

/// A `Product_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1EnvironmentProduct {
    /// `name`
    pub name: String,
}

/// A `Environment_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1Environment {
    /// `name`
    pub name: String,
    /// `product`
    pub product: NamespacesNamespacesV1EnvironmentProduct,
}

/// A `NamespaceOpenshiftResourceVaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceVaultSecretV1 {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: String,
    /// `version`
    pub version: i32,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceV1Resource {
    /// `content`
    pub content: String,
}

/// A `NamespaceOpenshiftResourceResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceV1 {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource:
        Option<NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceV1Resource>,
}

/// A `NamespaceOpenshiftResourceResourceTemplate_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceTemplateV1 {
    /// `provider`
    pub provider: String,
}

/// A `NamespaceOpenshiftResourceRoute_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceRouteV1 {
    /// `provider`
    pub provider: String,
}

/// A `NamespaceOpenshiftResourcePrometheusRule_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourcePrometheusRuleV1 {
    /// `provider`
    pub provider: String,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "__typename")]
pub enum NamespacesNamespacesV1OpenshiftResources {
    /// `NamespaceOpenshiftResourceVaultSecret_v1`
    #[serde(rename = "NamespaceOpenshiftResourceVaultSecret_v1")]
    NamespaceOpenshiftResourceVaultSecretV1(
        NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceVaultSecretV1,
    ),
    /// `NamespaceOpenshiftResourceResource_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResource_v1")]
    NamespaceOpenshiftResourceResourceV1(
        NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceV1,
    ),
    /// `NamespaceOpenshiftResourceResourceTemplate_v1`
    #[serde(rename = "NamespaceOpenshiftResourceResourceTemplate_v1")]
    NamespaceOpenshiftResourceResourceTemplateV1(
        NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceResourceTemplateV1,
    ),
    /// `NamespaceOpenshiftResourceRoute_v1`
    #[serde(rename = "NamespaceOpenshiftResourceRoute_v1")]
    NamespaceOpenshiftResourceRouteV1(
        NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourceRouteV1,
    ),
    /// `NamespaceOpenshiftResourcePrometheusRule_v1`
    #[serde(rename = "NamespaceOpenshiftResourcePrometheusRule_v1")]
    NamespaceOpenshiftResourcePrometheusRuleV1(
        NamespacesNamespacesV1OpenshiftResourcesNamespaceOpenshiftResourcePrometheusRuleV1,
    ),
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespacesNamespacesV1 {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `labels`
    pub labels: Option<String>,
    /// `cluster`
    #[serde(default)]
    pub cluster: Option<NamespacesNamespacesV1Cluster>,
    /// `environment`
    pub environment: NamespacesNamespacesV1Environment,
    /// `openshiftResources`
    #[serde(rename = "openshiftResources")]
    pub openshift_resources: Option<Vec<NamespacesNamespacesV1OpenshiftResources>>,
}

/// The answer to `Namespaces`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespaces {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<NamespacesNamespacesV1>>,
}

/// A `Permission_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PermissionsPermissionsV1 {
    /// `name`
    pub name: String,
    /// `service`
    pub service: String,
}

/// The answer to `Permissions`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Permissions {
    /// `permissions_v1`
    pub permissions_v1: Vec<PermissionsPermissionsV1>,
}
