//! Types of the fragments in `fragments/`, made by `cargo xtask generate`: change the fragments, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use serde::Deserialize;

/// The fragment `ClusterAccess`: a `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAccess {
    /// `name`
    pub name: String,
    /// `serverUrl`
    pub server_url: String,
    /// `internal`
    pub internal: Option<bool>,
    /// `automationToken`
    pub automation_token: Option<VaultSecretRef>,
    /// `clusterAdminAutomationToken`
    pub cluster_admin_automation_token: Option<VaultSecretRef>,
    /// `disable`
    pub disable: Option<DisableClusterAutomations>,
}

impl ClusterAccess {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[
        include_str!("fragments/cluster_access.graphql"),
        include_str!("fragments/disable_cluster_automations.graphql"),
        include_str!("fragments/vault_secret_ref.graphql"),
    ];
}

/// The fragment `ClusterLogin`: a `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClusterLogin {
    /// `auth`
    pub auth: Vec<ClusterAuth>,
}

impl ClusterLogin {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/cluster_login.graphql")];
}

/// A `ClusterAuth_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClusterAuth {
    /// `service`
    pub service: String,
}

/// The fragment `ComputeResources`: a `ResourceValues_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ComputeResources {
    /// `cpu`
    pub cpu: Option<String>,
    /// `memory`
    pub memory: Option<String>,
}

impl ComputeResources {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/compute_resources.graphql")];
}

/// The fragment `DataRepository`: a `AppInterfaceSettings_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataRepository {
    /// `repoUrl`
    pub repo_url: String,
}

impl DataRepository {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/data_repository.graphql")];
}

/// The fragment `DisableClusterAutomations`: a `DisableClusterAutomations_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DisableClusterAutomations {
    /// `integrations`
    pub integrations: Option<Vec<String>>,
}

impl DisableClusterAutomations {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] =
        &[include_str!("fragments/disable_cluster_automations.graphql")];
}

/// The fragment `NamespaceTarget`: a `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceTarget {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `managedByExternal`
    pub managed_by_external: Option<bool>,
    /// `clusterAdmin`
    pub cluster_admin: Option<bool>,
    /// `cluster`
    pub cluster: ClusterAccess,
}

impl NamespaceTarget {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[
        include_str!("fragments/namespace_target.graphql"),
        include_str!("fragments/cluster_access.graphql"),
        include_str!("fragments/disable_cluster_automations.graphql"),
        include_str!("fragments/vault_secret_ref.graphql"),
    ];
}

/// The fragment `ResourceText`: a `Resource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceText {
    /// `path`
    pub path: String,
    /// `content`
    pub content: String,
}

impl ResourceText {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/resource_text.graphql")];
}

/// The fragment `RoleMembers`: a `Role_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleMembers {
    /// `users`
    pub users: Vec<User>,
    /// `bots`
    pub bots: Vec<Bot>,
    /// `expirationDate`
    pub expiration_date: Option<String>,
}

impl RoleMembers {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/role_members.graphql")];
}

/// A `User_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct User {
    /// `org_username`
    pub org_username: String,
    /// `github_username`
    pub github_username: String,
}

/// A `Bot_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Bot {
    /// `openshift_serviceaccount`
    pub openshift_serviceaccount: Option<String>,
}

/// The fragment `TemplateCluster`: a `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TemplateCluster {
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

impl TemplateCluster {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/template_cluster.graphql")];
}

/// The fragment `TemplateNamespace`: a `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateNamespace {
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
    pub cluster_admin: Option<bool>,
    /// `app`
    pub app: App,
    /// `environment`
    pub environment: Environment,
}

impl TemplateNamespace {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/template_namespace.graphql")];
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
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// `name`
    pub name: String,
    /// `labels`
    pub labels: String,
    /// `parameters`
    pub parameters: Option<String>,
    /// `servicePhase`
    pub service_phase: String,
}

/// The fragment `VaultSecretRef`: a `VaultSecret_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct VaultSecretRef {
    /// `path`
    pub path: String,
    /// `field`
    pub field: String,
    /// `version`
    pub version: Option<i32>,
}

impl VaultSecretRef {
    /// The text of the fragment, and those of the fragments that it spreads.
    pub const FRAGMENTS: &'static [&'static str] = &[include_str!("fragments/vault_secret_ref.graphql")];
}
