//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::NamespaceTarget;
use serde::Deserialize;

/// The answer to `NamespaceLabels`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceLabels {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for NamespaceLabels {
    const SOURCE: QuerySource =
        QuerySource::new("NamespaceLabels", include_str!("query.graphql"), &[NamespaceTarget::FRAGMENTS]);
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespace {
    /// The fragment `NamespaceTarget`.
    #[serde(flatten)]
    pub namespace_target: NamespaceTarget,
    /// `labels`
    pub labels: Option<String>,
}
