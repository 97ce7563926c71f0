//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{ClusterLogin, NamespaceTarget, RoleMembers};
use serde::Deserialize;

/// The answer to `RoleBindings`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RoleBindings {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
    /// `roles_v1`
    pub roles_v1: Option<Vec<Role>>,
}

impl Operation for RoleBindings {
    const SOURCE: QuerySource = QuerySource::new(
        "RoleBindings",
        include_str!("query.graphql"),
        &[ClusterLogin::FRAGMENTS, NamespaceTarget::FRAGMENTS, RoleMembers::FRAGMENTS],
    );
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `NamespaceTarget`.
    #[serde(flatten)]
    pub namespace_target: NamespaceTarget,
    /// `managedRoles`
    pub managed_roles: Option<bool>,
    /// `cluster`
    pub login: ClusterLogin,
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
    /// `namespace`
    pub namespace: Option<AccessNamespace>,
    /// `role`
    pub role: Option<String>,
    /// `clusterRole`
    pub cluster_role: Option<String>,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AccessNamespace {
    /// `name`
    pub name: String,
    /// `cluster`
    pub cluster: Cluster,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cluster {
    /// `name`
    pub name: String,
}
