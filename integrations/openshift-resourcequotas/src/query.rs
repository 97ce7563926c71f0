//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{ComputeResources, NamespaceTarget};
use serde::Deserialize;

/// The answer to `Quotas`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Quotas {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for Quotas {
    const SOURCE: QuerySource = QuerySource::new(
        "Quotas",
        include_str!("query.graphql"),
        &[ComputeResources::FRAGMENTS, NamespaceTarget::FRAGMENTS],
    );
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespace {
    /// The fragment `NamespaceTarget`.
    #[serde(flatten)]
    pub namespace_target: NamespaceTarget,
    /// `quota`
    pub quota: Option<ResourceQuota>,
}

/// A `ResourceQuota_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceQuota {
    /// `quotas`
    pub quotas: Vec<ResourceQuotaItem>,
}

/// A `ResourceQuotaItem_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceQuotaItem {
    /// `name`
    pub name: String,
    /// `resources`
    pub resources: ResourceQuotaItemResources,
    /// `scopes`
    pub scopes: Option<Vec<String>>,
}

/// A `ResourceQuotaItemResources_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResourceQuotaItemResources {
    /// `limits`
    pub limits: Option<ComputeResources>,
    /// `requests`
    pub requests: Option<ComputeResources>,
    /// `pods`
    pub pods: Option<i32>,
}
