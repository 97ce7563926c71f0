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

/// A `ResourceTemplateTest_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceTemplateTest {
    /// `path`
    pub path: String,
    /// `name`
    pub name: String,
    /// `resourcePath`
    #[serde(rename = "resourcePath")]
    pub resource_path: String,
    /// `expectedResult`
    #[serde(rename = "expectedResult")]
    pub expected_result: String,
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
    /// `path`
    pub resource: Option<Resource>,
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
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
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
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

/// The answer to `TemplateTests`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TemplateTests {
    /// `app_interface_settings_v1`
    pub settings: Option<Vec<AppInterfaceSettings>>,
    /// `resource_template_tests_v1`
    pub tests: Option<Vec<ResourceTemplateTest>>,
    /// `namespaces_v1`
    pub namespaces: Option<Vec<Namespace>>,
}

impl qontract_graphql::Operation for TemplateTests {
    const NAME: &'static str = "TemplateTests";
    const TEXT: &'static str = QUERY;
}
