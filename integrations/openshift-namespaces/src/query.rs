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
    /// `cluster`
    pub cluster: Cluster,
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
