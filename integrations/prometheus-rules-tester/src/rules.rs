//! What the data says: every rule that a namespace names, rendered, with its tests. Pure.

use std::collections::BTreeSet;

use qontract_runtime::{Data, Fault, Place, Query, ResourceBatch};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::NAME;
use crate::query::{Namespace, NamespaceOpenshiftResource as Entry, Rules};
use qontract_objects::templates::preview::{
    TemplateSource, Variables, dialect, entries, rendered, variables,
};

/// The provider of rules.
const PROVIDER: &str = "prometheus-rule";

/// All rules, and what they have to keep to.
pub struct Found {
    /// The services that alerts may be about; any, if the settings do not list them.
    pub services: Option<BTreeSet<String>>,
    /// The rules, in the order of the data.
    pub rules: Vec<Rule>,
}

/// A rule that a namespace names.
#[derive(Serialize)]
pub struct Rule {
    /// The cluster of the namespace.
    #[serde(skip)]
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The path of the resource.
    pub path: String,
    /// Where it is named.
    #[serde(skip)]
    pub place: Option<Place>,
    /// The object, rendered; or why there is none.
    pub body: Result<Value, String>,
    /// Its tests.
    pub tests: Vec<Test>,
}

/// A test of a rule.
#[derive(Serialize)]
pub struct Test {
    /// The path of the resource.
    pub path: String,
    /// The test, rendered, as promtool takes it; or why there is none.
    pub body: Result<Map<String, Value>, String>,
}

/// Every rule that a namespace names.
pub fn rules(data: &Data) -> Result<Found, Fault> {
    let answered = data.declared(&Query::of::<Rules>())?;
    let answer = Rules::deserialize(answered.data.clone()).map_err(|error| Fault::us(error.to_string()))?;
    let mut settings = answer.settings.into_iter().flatten();
    let services = settings.find_map(|settings| settings.alerting_services);
    let mut found =
        Found { services: services.map(|services| services.into_iter().collect()), rules: Vec::new() };
    let namespaces = answer.namespaces.unwrap_or_default();
    let tests = data.resources(namespaces.iter().flat_map(test_paths).collect())?;
    let texts = Texts { data, tests };
    for (index, namespace) in namespaces.into_iter().enumerate() {
        if is_left_alone(&namespace) {
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
                return Err(Fault::us(format!("the answer has nothing at `{pointer}`")));
            };
            let place = answered.places.of(&pointer);
            let values = variables(entry.variables.as_deref(), node, parent);
            found.rules.push(rule(&texts, &namespace, entry, place, &values)?);
        }
    }
    Ok(found)
}

/// Whether the data wants it gone, or switches us off there.
fn is_left_alone(namespace: &Namespace) -> bool {
    let off = namespace.cluster.disable.as_ref().and_then(|disable| disable.integrations.as_ref());
    namespace.template_namespace.delete.unwrap_or_default()
        || off.is_some_and(|names| names.iter().any(|name| name == NAME))
}

/// The tests that a namespace's rules name.
fn test_paths(namespace: &Namespace) -> Vec<String> {
    if is_left_alone(namespace) {
        return Vec::new();
    }
    let shared = namespace.shared_resources.iter().flatten().map(|shared| &shared.openshift_resources);
    let entries = namespace.openshift_resources.iter().chain(shared).flatten();
    entries.filter_map(|entry| entry.tests.as_ref()).flatten().cloned().collect()
}

/// The data, and the texts of all tests.
struct Texts<'d> {
    data: &'d Data,
    tests: ResourceBatch,
}

fn rule(
    texts: &Texts<'_>,
    namespace: &Namespace,
    entry: &Entry,
    place: Option<Place>,
    values: &Result<Variables, String>,
) -> Result<Rule, Fault> {
    let (cluster, name) =
        (namespace.cluster.template_cluster.name.clone(), namespace.template_namespace.name.clone());
    let Some(resource) = &entry.resource else {
        let body = Err("there is no such resource".to_owned());
        return Ok(Rule { cluster, namespace: name, path: String::new(), place, body, tests: Vec::new() });
    };
    let told = |path: &str, text: String| -> Result<Value, String> {
        let values = values.as_ref().map_err(Clone::clone)?;
        let text = match dialect(&entry.provider, entry.r#type.as_deref())? {
            None => text,
            Some(dialect) => rendered(texts.data, TemplateSource::new(path, &text).dialect(dialect), values)?,
        };
        qontract_yaml::json::read(text.as_bytes())
    };
    let mut tests = Vec::new();
    for path in entry.tests.iter().flatten() {
        let text = texts.tests.get(path)?.ok_or_else(|| "there is no such resource".to_owned());
        let body = text.and_then(|text| told(path, text)).and_then(|test| fit(test, &resource.path));
        tests.push(Test { path: path.clone(), body });
    }
    let body = told(&resource.path, resource.content.clone()).and_then(object);
    Ok(Rule { cluster, namespace: name, path: resource.path.clone(), place, body, tests })
}

/// A rule that promtool can be asked about.
fn object(body: Value) -> Result<Value, String> {
    match body.get("spec") {
        Some(Value::Object(_)) => Ok(body),
        _ => Err("it is no object with a `spec`".to_owned()),
    }
}

/// A test as promtool takes it. It must be about this rule: promtool is content with a test of nothing.
fn fit(test: Value, rule: &str) -> Result<Map<String, Value>, String> {
    let Value::Object(mut test) = test else { return Err("it is no map".to_owned()) };
    // Ours, not promtool's.
    for field in ["$schema", "target_clusters"] {
        test.remove(field);
    }
    let files = test.get("rule_files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    match files.iter().find(|file| file.as_str() != Some(rule)) {
        None if files.is_empty() => Err(format!("its `rule_files` do not name `{rule}`")),
        None => Ok(test),
        Some(other) => Err(format!("its `rule_files` name {other}, and not `{rule}` alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::fit;
    use serde_json::{Value, json};

    fn check(test: Value, expect: Result<Value, &str>) {
        let told = fit(test, "/r.yaml").map(Value::Object);
        assert_eq!(told, expect.map_err(str::to_owned));
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
            Err("its `rule_files` name \"r.yaml\", and not `/r.yaml` alone"),
        );
        check(json!([]), Err("it is no map"));
    }
}
