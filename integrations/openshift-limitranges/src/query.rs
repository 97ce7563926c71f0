//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{ComputeResources, NamespaceTarget};
use serde::Deserialize;

/// The answer to `LimitRanges`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LimitRanges {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for LimitRanges {
    const SOURCE: QuerySource = QuerySource::new(
        "LimitRanges",
        include_str!("query.graphql"),
        &[ComputeResources::FRAGMENTS, NamespaceTarget::FRAGMENTS],
    );
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `NamespaceTarget`.
    #[serde(flatten)]
    pub namespace_target: NamespaceTarget,
    /// `limitRanges`
    pub limit_ranges: Option<LimitRange>,
}

/// A `LimitRange_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct LimitRange {
    /// `name`
    pub name: String,
    /// `limits`
    pub limits: Vec<LimitRangeItem>,
}

/// A `LimitRangeItem_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitRangeItem {
    /// `type`
    pub r#type: Option<String>,
    /// `default`
    pub default: Option<ComputeResources>,
    /// `defaultRequest`
    pub default_request: Option<ComputeResources>,
    /// `max`
    pub max: Option<ComputeResources>,
    /// `maxLimitRequestRatio`
    pub max_limit_request_ratio: Option<ComputeResources>,
    /// `min`
    pub min: Option<ComputeResources>,
}
