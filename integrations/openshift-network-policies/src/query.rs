//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::NamespaceTarget;
use serde::Deserialize;

/// The answer to `NetworkPolicies`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NetworkPolicies {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for NetworkPolicies {
    const SOURCE: QuerySource =
        QuerySource::new("NetworkPolicies", include_str!("query.graphql"), &[NamespaceTarget::FRAGMENTS]);
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `NamespaceTarget`.
    #[serde(flatten)]
    pub namespace_target: NamespaceTarget,
    /// `networkPoliciesAllow`
    pub network_policies_allow: Option<Vec<NamespaceNetworkPoliciesAllow>>,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceNetworkPoliciesAllow {
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
