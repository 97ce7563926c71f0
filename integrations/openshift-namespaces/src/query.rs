//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::ClusterAccess;
use serde::Deserialize;

/// The answer to `Namespaces`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Namespaces {
    /// `namespaces_v1`
    pub namespaces_v1: Option<Vec<Namespace>>,
}

impl Operation for Namespaces {
    const SOURCE: QuerySource =
        QuerySource::new("Namespaces", include_str!("query.graphql"), &[ClusterAccess::FRAGMENTS]);
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// `name`
    pub name: String,
    /// `delete`
    pub delete: Option<bool>,
    /// `managedByExternal`
    pub managed_by_external: Option<bool>,
    /// `cluster`
    pub cluster: ClusterAccess,
}
