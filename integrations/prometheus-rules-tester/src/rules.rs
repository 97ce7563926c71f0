//! Reads and renders the rules of namespaces and their tests. Pure.

use std::collections::BTreeSet;

use qontract_runtime::{Data, DeclaredQuery, Fault, ResourceBatch, SourceLocation};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::NAME;
use crate::query::{Namespace, NamespaceOpenshiftResource as Entry, Rules};
use qontract_objects::resources::entries;
use qontract_objects::templates::preview::{
    TemplateSource, TemplateVariables, dialect, render_from_data, variables,
};

/// The provider of rules.
const PROVIDER: &str = "prometheus-rule";

/// All rules, and the services that they may name.
pub struct RuleSet {
    /// The services that alerts may name; `None` if the settings do not list them.
    pub services: Option<BTreeSet<String>>,
    /// The rules, in data order.
    pub rules: Vec<NamespaceRule>,
}

/// A rule of a namespace.
#[derive(Serialize)]
pub struct NamespaceRule {
    /// The cluster of the namespace.
    #[serde(skip)]
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The path of the resource.
    pub path: String,
    /// The provenance.
    #[serde(skip)]
    pub place: Option<SourceLocation>,
    /// The rendered object, or the reason why it cannot be rendered.
    pub body: Result<Value, String>,
    /// The tests.
    pub tests: Vec<RuleTest>,
}

/// A test of a rule.
#[derive(Serialize)]
pub struct RuleTest {
    /// The path of the resource.
    pub path: String,
    /// The rendered test in promtool format, or the reason why it cannot be rendered.
    pub body: Result<Map<String, Value>, String>,
}

/// Reads the rules of all namespaces.
pub fn rules(data: &Data) -> Result<RuleSet, Fault> {
    let answered = data.query_tree(&DeclaredQuery::of::<Rules>())?;
    let answer =
        Rules::deserialize(answered.data.clone()).map_err(|error| Fault::internal(error.to_string()))?;
    let mut settings = answer.settings.into_iter().flatten();
    let services = settings.find_map(|settings| settings.alerting_services);
    let mut found =
        RuleSet { services: services.map(|services| services.into_iter().collect()), rules: Vec::new() };
    let namespaces = answer.namespaces.unwrap_or_default();
    let tests = data.resources(namespaces.iter().flat_map(test_paths).collect())?;
    let texts = TestTexts { data, tests };
    for (index, namespace) in namespaces.into_iter().enumerate() {
        if is_skipped(&namespace) {
            continue;
        }
        let at = format!("/namespaces/{index}");
        let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
        for (pointer, entry) in entries(&at, namespace.openshift_resources.as_ref(), shared) {
            if entry.provider != PROVIDER {
                continue;
            }
            let (Some(node), Some(parent)) = (answered.data.pointer(&pointer), answered.data.pointer(&at))
            else {
                return Err(Fault::internal(format!("the query result has nothing at `{pointer}`")));
            };
            let place = answered.places.of(&pointer);
            let values = variables(entry.variables.as_deref(), node, parent);
            found.rules.push(rule(&texts, &namespace, entry, place, &values)?);
        }
    }
    Ok(found)
}

/// Whether the namespace is deleted, or its cluster disables the integration.
fn is_skipped(namespace: &Namespace) -> bool {
    namespace.template_namespace.delete.unwrap_or_default()
        || namespace.cluster.disabled_integrations.contains(NAME)
}

/// The paths of the tests of a namespace.
fn test_paths(namespace: &Namespace) -> Vec<String> {
    if is_skipped(namespace) {
        return Vec::new();
    }
    let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
    let entries = namespace.openshift_resources.iter().chain(shared).flatten();
    entries.filter_map(|entry| entry.tests.as_ref()).flatten().cloned().collect()
}

/// The data, and the sources of all tests.
struct TestTexts<'d> {
    data: &'d Data,
    tests: ResourceBatch,
}

fn rule(
    texts: &TestTexts<'_>,
    namespace: &Namespace,
    entry: &Entry,
    place: Option<SourceLocation>,
    values: &Result<TemplateVariables, String>,
) -> Result<NamespaceRule, Fault> {
    let (cluster, name) =
        (namespace.cluster.template_cluster.name.clone(), namespace.template_namespace.name.clone());
    let Some(resource) = &entry.resource else {
        let body = Err("the resource does not exist".to_owned());
        return Ok(NamespaceRule {
            cluster,
            namespace: name,
            path: String::new(),
            place,
            body,
            tests: Vec::new(),
        });
    };
    let read_body = |path: &str, text: String| -> Result<Value, String> {
        let values = values.as_ref().map_err(Clone::clone)?;
        let text = match dialect(&entry.provider, entry.r#type.as_deref())? {
            None => text,
            Some(dialect) => {
                render_from_data(texts.data, TemplateSource::new(path, &text).dialect(dialect), values)?
            }
        };
        qontract_yaml::json::read(text.as_bytes())
    };
    let mut tests = Vec::new();
    for path in entry.tests.iter().flatten() {
        let text = texts.tests.get(path)?.ok_or_else(|| "the resource does not exist".to_owned());
        let body =
            text.and_then(|text| read_body(path, text)).and_then(|test| promtool_test(test, &resource.path));
        tests.push(RuleTest { path: path.clone(), body });
    }
    let body = read_body(&resource.path, resource.content.clone()).and_then(check_object);
    Ok(NamespaceRule { cluster, namespace: name, path: resource.path.clone(), place, body, tests })
}

/// Checks that promtool can read a rule.
fn check_object(body: Value) -> Result<Value, String> {
    match body.get("spec") {
        Some(Value::Object(_)) => Ok(body),
        _ => Err("it is not an object with a `spec`".to_owned()),
    }
}

/// Converts a test for promtool. The test must name this rule, because promtool accepts a test without rules.
fn promtool_test(test: Value, rule: &str) -> Result<Map<String, Value>, String> {
    let Value::Object(mut test) = test else { return Err("it is not a map".to_owned()) };
    // These fields of the data are removed, because promtool does not support them.
    for field in ["$schema", "target_clusters"] {
        test.remove(field);
    }
    let files = test.get("rule_files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match files.iter().find(|file| file.as_str() != Some(rule)) {
        None if files.is_empty() => Err(format!("its `rule_files` do not name `{rule}`")),
        None => Ok(test),
        Some(other) => Err(format!("its `rule_files` name {other}; they must name only `{rule}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::promtool_test;
    use serde_json::{Value, json};

    fn check(test: Value, expect: Result<Value, &str>) {
        let actual = promtool_test(test, "/r.yaml").map(Value::Object);
        assert_eq!(actual, expect.map_err(str::to_owned));
    }

    #[test]
    fn a_test_is_about_its_rule_alone() {
        let files = json!({"rule_files": ["/r.yaml"], "tests": []});
        check(files.clone(), Ok(files));
        check(
            json!({"$schema": "/x.yml", "target_clusters": [], "rule_files": ["/r.yaml"]}),
            Ok(json!({"rule_files": ["/r.yaml"]})),
        );
        check(json!({"tests": []}), Err("its `rule_files` do not name `/r.yaml`"));
        check(json!({"rule_files": []}), Err("its `rule_files` do not name `/r.yaml`"));
        check(
            json!({"rule_files": ["/r.yaml", "r.yaml"]}),
            Err("its `rule_files` name \"r.yaml\"; they must name only `/r.yaml`"),
        );
        check(json!([]), Err("it is not a map"));
    }
}
