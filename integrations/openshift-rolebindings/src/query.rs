//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use serde::Deserialize;

/// The request.
pub const QUERY: &str = include_str!("query.graphql");

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

/// A `ClusterAuth_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClusterAuth {
    /// `service`
    pub service: String,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cluster {
    /// `name`
    pub name: String,
    /// `serverUrl`
    #[serde(rename = "serverUrl")]
    pub server_url: String,
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
    /// `auth`
    pub auth: Vec<ClusterAuth>,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespace {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `managedByExternal`
    #[serde(rename = "managedByExternal")]
    pub managed_by_external: Option<bool>,
    /// `clusterAdmin`
    #[serde(rename = "clusterAdmin")]
    pub cluster_admin: Option<bool>,
    /// `managedRoles`
    #[serde(rename = "managedRoles")]
    pub managed_roles: Option<bool>,
    /// `cluster`
    pub cluster: Cluster,
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

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AccessNamespaceCluster {
    /// `name`
    pub name: String,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AccessNamespace {
    /// `name`
    pub name: String,
    /// `cluster`
    pub cluster: AccessNamespaceCluster,
}

/// A `Access_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Access {
    /// `namespace`
    pub namespace: Option<AccessNamespace>,
    /// `role`
    pub role: Option<String>,
    /// `clusterRole`
    #[serde(rename = "clusterRole")]
    pub cluster_role: Option<String>,
}

/// A `Role_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Role {
    /// `users`
    pub users: Vec<User>,
    /// `bots`
    pub bots: Vec<Bot>,
    /// `expirationDate`
    #[serde(rename = "expirationDate")]
    pub expiration_date: Option<String>,
    /// `access`
    pub access: Option<Vec<Access>>,
}

/// The answer to `RoleBindings`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoleBindings {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
    /// `roles_v1`
    pub roles_v1: Option<Vec<Role>>,
}

impl qontract_graphql::Operation for RoleBindings {
    const NAME: &'static str = "RoleBindings";
    const TEXT: &'static str = QUERY;
}
