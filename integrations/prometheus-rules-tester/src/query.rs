//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{
    DisableClusterAutomations, ResourceText, TemplateCluster, TemplateNamespace,
};
use serde::Deserialize;

/// The answer to `Rules`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Rules {
    /// `app_interface_settings_v1`
    pub settings: Option<Vec<AppInterfaceSettings>>,
    /// `namespaces_v1`
    pub namespaces: Option<Vec<Namespace>>,
}

impl Operation for Rules {
    const SOURCE: QuerySource = QuerySource::new(
        "Rules",
        include_str!("query.graphql"),
        &[
            DisableClusterAutomations::FRAGMENTS,
            ResourceText::FRAGMENTS,
            TemplateCluster::FRAGMENTS,
            TemplateNamespace::FRAGMENTS,
        ],
    );
}

/// A `AppInterfaceSettings_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppInterfaceSettings {
    /// `alertingServices`
    pub alerting_services: Option<Vec<String>>,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `TemplateNamespace`.
    #[serde(flatten)]
    pub template_namespace: TemplateNamespace,
    /// `cluster`
    pub cluster: Cluster,
    /// `openshiftResources`
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
    /// `sharedResources`
    pub shared_resources: Option<Vec<SharedResources>>,
}

/// A `Cluster_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Cluster {
    /// The fragment `TemplateCluster`.
    #[serde(flatten)]
    pub template_cluster: TemplateCluster,
    /// `disable`
    pub disable: Option<DisableClusterAutomations>,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResource {
    /// `provider`
    pub provider: String,
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
    /// `tests`
    pub tests: Option<Vec<String>>,
    /// `path`
    pub resource: Option<ResourceText>,
}

/// A `SharedResources_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedResources {
    /// `openshiftResources`
    pub openshift_resources: Vec<NamespaceOpenshiftResource>,
}
