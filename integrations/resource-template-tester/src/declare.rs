//! Declares each test: the expectation, and the result for every namespace that uses the template of the
//! test. Pure.

use std::collections::BTreeMap;

use qontract_runtime::{Data, DeclaredQuery, Fault, SourceLocation};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::query::{NamespaceOpenshiftResource as Entry, TemplateTests};
use qontract_objects::fragments::ResourceText;
use qontract_objects::resources::{entries, with_source_urls};
use qontract_objects::templates::preview::{
    TemplateSource, TemplateVariables, dialect, render_from_data, variables,
};

/// The provider of templates.
const TEMPLATE: &str = "resource-template";

/// The provider of Prometheus rules, which are also templates.
const RULE: &str = "prometheus-rule";

/// A test of a template.
#[derive(Serialize)]
pub struct TemplateTest {
    /// The file.
    pub path: String,
    /// The name.
    pub name: String,
    /// The provenance.
    #[serde(skip)]
    pub place: Option<SourceLocation>,
    /// The path of the template.
    pub template: String,
    /// The path of the expectation.
    pub expected_path: String,
    /// The expected value, or the reason why it cannot be read.
    pub expected: Result<Value, String>,
    /// The results of the namespaces.
    pub results: Vec<TemplateResult>,
}

/// The result of a template in a namespace.
#[derive(Clone, Serialize)]
pub struct TemplateResult {
    /// The namespace, with its cluster.
    pub namespace: String,
    /// The provenance of the entry.
    #[serde(skip)]
    pub place: Option<SourceLocation>,
    /// The rendered object, or the reason why it cannot be rendered.
    pub body: Result<Value, String>,
}

/// Reads all tests.
pub fn tests(data: &Data) -> Result<Vec<TemplateTest>, Fault> {
    let answered = data.query_tree(&DeclaredQuery::of::<TemplateTests>())?;
    let answer = TemplateTests::deserialize(answered.data.clone())
        .map_err(|error| Fault::internal(error.to_string()))?;
    let listed = answer.tests.unwrap_or_default();
    let settings = answer.settings.into_iter().flatten().next();
    let repo = settings.map(|settings| settings.repo_url);
    let mut made: BTreeMap<String, Vec<TemplateResult>> =
        listed.iter().map(|test| (test.resource_path.clone(), Vec::new())).collect();
    for (index, namespace) in answer.namespaces.into_iter().flatten().enumerate() {
        // A namespace that is marked for deletion has no results.
        if namespace.template_namespace.delete == Some(true) {
            continue;
        }
        let at = format!("/namespaces/{index}");
        let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
        for (pointer, entry) in entries(&at, namespace.openshift_resources.as_ref(), shared) {
            let Some(resource) = &entry.resource else { continue };
            let Some(list) = made.get_mut(&resource.path) else { continue };
            let (Some(node), Some(parent)) = (answered.data.pointer(&pointer), answered.data.pointer(&at))
            else {
                return Err(Fault::internal(format!("the query result has nothing at `{pointer}`")));
            };
            let values = variables(entry.variables.as_deref(), node, parent);
            let body = text(data, entry, resource, values).and_then(|text| object(&text));
            let body = body.map(|body| match entry.provider.as_str() {
                RULE => with_source_urls(body, repo.as_deref(), &resource.path),
                _ => body,
            });
            let name = format!("{}/{}", namespace.cluster.name, namespace.template_namespace.name);
            list.push(TemplateResult { namespace: name, place: answered.places.of(&pointer), body });
        }
    }
    let mut all = Vec::new();
    let texts = data.resources(listed.iter().map(|test| test.expected_result.clone()).collect())?;
    for (index, test) in listed.into_iter().enumerate() {
        let text = texts.get(&test.expected_result)?;
        let text = text.ok_or_else(|| "the resource does not exist".to_owned());
        all.push(TemplateTest {
            path: test.path,
            name: test.name,
            place: answered.places.of(&format!("/tests/{index}")),
            results: made.get(&test.resource_path).cloned().unwrap_or_default(),
            template: test.resource_path,
            expected: text.and_then(|text| qontract_yaml::json::read(text.as_bytes())),
            expected_path: test.expected_result,
        });
    }
    Ok(all)
}

/// The content of an entry: the resource, or its rendering.
fn text(
    data: &Data,
    entry: &Entry,
    resource: &ResourceText,
    values: Result<TemplateVariables, String>,
) -> Result<String, String> {
    let is_template = [TEMPLATE, RULE].contains(&entry.provider.as_str());
    let dialect = if is_template { dialect(&entry.provider, entry.r#type.as_deref())? } else { None };
    let Some(dialect) = dialect else {
        return Ok(resource.content.clone());
    };
    let source = TemplateSource::new(&resource.path, &resource.content).dialect(dialect);
    render_from_data(data, source, &values?)
}

/// Parses an object from YAML, without its `$schema`.
fn object(text: &str) -> Result<Value, String> {
    let mut body = qontract_yaml::json::read(text.as_bytes())?;
    body.as_object_mut()
        .ok_or_else(|| "it is not an object, but a list or a value".to_owned())?
        .remove("$schema");
    Ok(body)
}
