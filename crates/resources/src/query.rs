//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use serde::Deserialize;

/// The request.
pub const QUERY: &str = include_str!("query.graphql");

/// A `AppInterfaceSettings_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AppInterfaceSettings {
    /// `repoUrl`
    #[serde(rename = "repoUrl")]
    pub repo_url: String,
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
pub struct ManagedResourceNames {
    /// `resource`
    pub resource: String,
    /// `resourceNames`
    #[serde(rename = "resourceNames")]
    pub resource_names: Vec<String>,
}

/// A `App_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct App {
    /// `path`
    pub path: String,
    /// `name`
    pub name: String,
    /// `labels`
    pub labels: Option<String>,
}

/// A `Environment_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Environment {
    /// `name`
    pub name: String,
    /// `labels`
    pub labels: String,
    /// `parameters`
    pub parameters: Option<String>,
    /// `servicePhase`
    #[serde(rename = "servicePhase")]
    pub service_phase: String,
}

/// A `VaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct VaultSecret {
    /// `path`
    pub path: String,
    /// `field`
    pub field: String,
    /// `version`
    pub version: Option<i32>,
}

/// A `DisableClusterAutomations_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DisableClusterAutomations {
    /// `integrations`
    pub integrations: Option<Vec<String>>,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cluster {
    /// `path`
    pub path: String,
    /// `name`
    pub name: String,
    /// `labels`
    pub labels: Option<String>,
    /// `serverUrl`
    #[serde(rename = "serverUrl")]
    pub server_url: String,
    /// `consoleUrl`
    #[serde(rename = "consoleUrl")]
    pub console_url: String,
    /// `prometheusUrl`
    #[serde(rename = "prometheusUrl")]
    pub prometheus_url: String,
    /// `alertmanagerUrl`
    #[serde(rename = "alertmanagerUrl")]
    pub alertmanager_url: Option<String>,
    /// `elbFQDN`
    #[serde(rename = "elbFQDN")]
    pub elb_fqdn: String,
    /// `internal`
    pub internal: Option<bool>,
    /// `automationToken`
    #[serde(rename = "automationToken")]
    pub automation_token: Option<VaultSecret>,
    /// `clusterAdminAutomationToken`
    #[serde(rename = "clusterAdminAutomationToken")]
    pub cluster_admin_automation_token: Option<VaultSecret>,
    /// `disable`
    pub disable: Option<DisableClusterAutomations>,
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
    pub path: Option<Resource>,
    /// `validate_json`
    pub validate_json: Option<bool>,
    /// `validate_alertmanager_config`
    pub validate_alertmanager_config: Option<bool>,
    /// `alertmanager_config_key`
    pub alertmanager_config_key: Option<String>,
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

/// A `SharedResources_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SharedResources {
    /// `openshiftResources`
    #[serde(rename = "openshiftResources")]
    pub openshift_resources: Vec<NamespaceOpenshiftResource>,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespace {
    /// `path`
    pub path: String,
    /// `name`
    pub name: String,
    /// `labels`
    pub labels: Option<String>,
    /// `description`
    pub description: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `clusterAdmin`
    #[serde(rename = "clusterAdmin")]
    pub cluster_admin: Option<bool>,
    /// `managedByExternal`
    #[serde(rename = "managedByExternal")]
    pub managed_by_external: Option<bool>,
    /// `managedResourceTypes`
    #[serde(rename = "managedResourceTypes")]
    pub managed_resource_types: Option<Vec<String>>,
    /// `managedResourceTypeOverrides`
    #[serde(rename = "managedResourceTypeOverrides")]
    pub managed_resource_type_overrides: Option<Vec<NamespaceManagedResourceTypeOverrides>>,
    /// `managedResourceNames`
    #[serde(rename = "managedResourceNames")]
    pub managed_resource_names: Option<Vec<ManagedResourceNames>>,
    /// `app`
    pub app: App,
    /// `environment`
    pub environment: Environment,
    /// `cluster`
    pub cluster: Cluster,
    /// `openshiftResources`
    #[serde(rename = "openshiftResources")]
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
    /// `sharedResources`
    #[serde(rename = "sharedResources")]
    pub shared_resources: Option<Vec<SharedResources>>,
}

/// The answer to `Resources`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Resources {
    /// `app_interface_settings_v1`
    pub app_interface_settings_v1: Option<Vec<AppInterfaceSettings>>,
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl qontract_graphql::Operation for Resources {
    const NAME: &'static str = "Resources";
    const TEXT: &'static str = QUERY;
}
