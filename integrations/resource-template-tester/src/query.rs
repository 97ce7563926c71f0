//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.
#![allow(clippy::struct_field_names, reason = "the names are those of the data")]

use qontract_graphql::{Operation, QuerySource};
use qontract_objects::fragments::{DataRepository, ResourceText, TemplateCluster, TemplateNamespace};
use serde::Deserialize;

/// The answer to `TemplateTests`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TemplateTests {
    /// `app_interface_settings_v1`
    pub settings: Option<Vec<DataRepository>>,
    /// `resource_template_tests_v1`
    pub tests: Option<Vec<ResourceTemplateTest>>,
    /// `namespaces_v1`
    pub namespaces: Option<Vec<Namespace>>,
}

impl Operation for TemplateTests {
    const SOURCE: QuerySource = QuerySource::new(
        "TemplateTests",
        include_str!("query.graphql"),
        &[
            DataRepository::FRAGMENTS,
            ResourceText::FRAGMENTS,
            TemplateCluster::FRAGMENTS,
            TemplateNamespace::FRAGMENTS,
        ],
    );
}

/// A `ResourceTemplateTest_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplateTest {
    /// `path`
    pub path: String,
    /// `name`
    pub name: String,
    /// `resourcePath`
    pub resource_path: String,
    /// `expectedResult`
    pub expected_result: String,
}

/// A `Namespace_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The fragment `TemplateNamespace`.
    #[serde(flatten)]
    pub template_namespace: TemplateNamespace,
    /// `cluster`
    pub cluster: TemplateCluster,
    /// `openshiftResources`
    pub openshift_resources: Option<Vec<NamespaceOpenshiftResource>>,
    /// `sharedResources`
    pub shared_resources: Option<Vec<SharedResources>>,
}

/// A `NamespaceOpenshiftResource_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NamespaceOpenshiftResource {
    /// `provider`
    pub provider: String,
    /// `path`
    pub resource: Option<ResourceText>,
    /// `type`
    pub r#type: Option<String>,
    /// `variables`
    pub variables: Option<String>,
}

/// A `SharedResources_v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedResources {
    /// `openshiftResources`
    pub openshift_resources: Vec<NamespaceOpenshiftResource>,
}
