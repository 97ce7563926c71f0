//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{ClusterAccess, ClusterLogin, RoleMembers};
use serde::Deserialize;

/// The answer to `ClusterRoleBindings`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClusterRoleBindings {
    /// `clusters_v1`
    pub clusters_v1: Option<Vec<Cluster>>,
    /// `roles_v1`
    pub roles_v1: Option<Vec<Role>>,
}

impl Operation for ClusterRoleBindings {
    const SOURCE: QuerySource = QuerySource::new(
        "ClusterRoleBindings",
        include_str!("query.graphql"),
        &[ClusterAccess::FRAGMENTS, ClusterLogin::FRAGMENTS, RoleMembers::FRAGMENTS],
    );
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The fragment `ClusterAccess`.
    #[serde(flatten)]
    pub cluster_access: ClusterAccess,
    /// The fragment `ClusterLogin`.
    #[serde(flatten)]
    pub cluster_login: ClusterLogin,
    /// `managedClusterRoles`
    pub managed_cluster_roles: Option<bool>,
}

/// A `Role_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Role {
    /// The fragment `RoleMembers`.
    #[serde(flatten)]
    pub role_members: RoleMembers,
    /// `access`
    pub access: Option<Vec<Access>>,
}

/// A `Access_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// `cluster`
    pub cluster: Option<AccessCluster>,
    /// `clusterRole`
    pub cluster_role: Option<String>,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AccessCluster {
    /// `name`
    pub name: String,
}
