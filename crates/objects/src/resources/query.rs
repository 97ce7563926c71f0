//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use crate::fragments::{
    DataRepository, DisableClusterAutomations, TemplateCluster, TemplateNamespace, VaultSecretRef,
};
use qontract_graphql::{Operation, QuerySource};
use serde::Deserialize;

/// The answer to `Resources`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resources {
    /// `app_interface_settings_v1`
    pub app_interface_settings_v1: Option<Vec<DataRepository>>,
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for Resources {
    const SOURCE: QuerySource = QuerySource::new(
        "Resources",
        include_str!("query.graphql"),
        &[
            DataRepository::FRAGMENTS,
            DisableClusterAutomations::FRAGMENTS,
            TemplateCluster::FRAGMENTS,
            TemplateNamespace::FRAGMENTS,
            VaultSecretRef::FRAGMENTS,
        ],
    );
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `TemplateNamespace`.
    #[serde(flatten)]
    pub template_namespace: TemplateNamespace,
    /// `managedByExternal`
    pub managed_by_external: Option<bool>,
    /// `managedResourceTypes`
    pub managed_resource_types: Option<Vec<String>>,
    /// `managedResourceTypeOverrides`
    pub managed_resource_type_overrides: Option<Vec<NamespaceManagedResourceTypeOverrides>>,
    /// `managedResourceNames`
    pub managed_resource_names: Option<Vec<ManagedResourceNames>>,
    /// `cluster`
    pub cluster: Cluster,
    /// `openshiftResources`
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
    /// `sharedResources`
    pub shared_resources: Option<Vec<SharedResources>>,
}

/// A `NamespaceManagedResourceTypeOverrides_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceManagedResourceTypeOverrides {
    /// `resource`
    pub resource: Option<String>,
    /// `override`
    pub r#override: Option<String>,
}

/// A `ManagedResourceNames_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResourceNames {
    /// `resource`
    pub resource: String,
    /// `resourceNames`
    pub resource_names: Vec<String>,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The fragment `TemplateCluster`.
    #[serde(flatten)]
    pub template_cluster: TemplateCluster,
    /// `automationToken`
    pub automation_token: Option<VaultSecretRef>,
    /// `clusterAdminAutomationToken`
    pub cluster_admin_automation_token: Option<VaultSecretRef>,
    /// `disable`
    pub disable: Option<DisableClusterAutomations>,
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

/// A `NamespaceOpenshiftResourceVaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceVaultSecret {
    /// `provider`
    pub provider: String,
    /// `path`
    pub secret: String,
    /// `version`
    pub version: i32,
    /// `name`
    pub name: Option<String>,
    /// `labels`
    pub labels: Option<String>,
    /// `annotations`
    pub annotations: Option<String>,
    /// `type`
    pub r#type: Option<String>,
    /// `validate_alertmanager_config`
    pub validate_alertmanager_config: Option<bool>,
    /// `alertmanager_config_key`
    pub alertmanager_config_key: Option<String>,
}

/// A `NamespaceOpenshiftResourceResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResource {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: Option<Resource>,
    /// `validate_json`
    pub validate_json: Option<bool>,
    /// `validate_alertmanager_config`
    pub validate_alertmanager_config: Option<bool>,
    /// `alertmanager_config_key`
    pub alertmanager_config_key: Option<String>,
}

/// A `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resource {
    /// `path`
    pub path: String,
}

/// A `NamespaceOpenshiftResourceResourceTemplate_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceResourceTemplate {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: Option<Resource>,
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
    /// `validate_alertmanager_config`
    pub validate_alertmanager_config: Option<bool>,
    /// `alertmanager_config_key`
    pub alertmanager_config_key: Option<String>,
}

/// A `NamespaceOpenshiftResourceRoute_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourceRoute {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: Option<Resource>,
    /// `vault_tls_secret_path`
    pub vault_tls_secret_path: Option<String>,
    /// `vault_tls_secret_version`
    pub vault_tls_secret_version: Option<i32>,
}

/// A `NamespaceOpenshiftResourcePrometheusRule_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResourcePrometheusRule {
    /// `provider`
    pub provider: String,
    /// `path`
    pub path: Option<Resource>,
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
    /// `tests`
    pub tests: Option<Vec<String>>,
}

/// A `SharedResources_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedResources {
    /// `openshiftResources`
    pub openshift_resources: Vec<NamespaceOpenshiftResource>,
}
