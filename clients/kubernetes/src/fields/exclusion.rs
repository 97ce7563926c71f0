//! Fields that exclude each other: the API server accepts an object with one of them, and rejects an object
//! with several. Pure.
//!
//! If another manager sets such a field beside a declared field, server-side apply keeps both, so every write
//! is rejected. The tables have the cases that result from manual changes, for kinds that the API server
//! validates. Custom kinds are not in the tables.

use std::collections::HashMap;
use std::fmt;

use qontract_kinds::group_of;
use serde_json::{Map, Value, json};

use super::{FieldPath, ListTypes, without_keys};

/// Kinds with an update strategy, and the field of the strategy. The parameters `rollingUpdate` are valid
/// only for one `type`.
const UPDATE_STRATEGIES: [(&str, &str); 3] =
    [("DaemonSet", "f:updateStrategy"), ("Deployment", "f:strategy"), ("StatefulSet", "f:updateStrategy")];

const ROLLING_UPDATE: &str = "RollingUpdate";

/// The fields of a variable, a handler and a disruption budget that exclude each other.
const VARIABLE_VALUES: &[&str] = &["value", "valueFrom"];
const HANDLERS: &[&str] = &["exec", "grpc", "httpGet", "sleep", "tcpSocket"];
const BUDGETS: &[&str] = &["maxUnavailable", "minAvailable"];

/// A live field that is not declared and excludes a declared field beside it.
#[derive(Clone, Debug)]
pub(super) struct Exclusion<'a> {
    /// The path of the live field.
    pub path: FieldPath,
    /// The value of the live field.
    pub value: &'a Value,
    /// The name of the declared field.
    key: &'a str,
    /// The value of the declared field.
    declared: &'a Value,
}

impl Exclusion<'_> {
    /// The declared field, with its value if the value causes the exclusion.
    pub fn declared_field(&self) -> String {
        match self.declared.as_str().filter(|_| self.key == "type") {
            Some(name) => format!("type: {name}"),
            None => self.key.to_owned(),
        }
    }
}

/// A live field that a write removes, because it excludes a declared field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludingField {
    /// The managers that own a part of the field; may be empty.
    pub managers: Vec<String>,
    /// The field.
    pub field: String,
    /// The declared field that the live field excludes.
    pub declared: String,
}

impl ExcludingField {
    /// Omits the keys of maps with free-form keys, which may be secret.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        self.field = without_keys(&self.field).to_owned();
        self
    }
}

/// Formats a note for plans.
impl fmt::Display for ExcludingField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { managers, field, declared } = self;
        let names = managers.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let origin = match managers.len() {
            0 => "has no field manager and".to_owned(),
            1 => format!("the field manager {names} set and which"),
            _ => format!("the field managers {names} set and which"),
        };
        write!(f, "removes `{field}`, which {origin} excludes the declared `{declared}`")
    }
}

/// The live fields that exclude declared fields.
pub(super) fn exclusions<'a>(live: &'a Value, declared: &'a Value, lists: &ListTypes) -> Vec<Exclusion<'a>> {
    let group = group_of(declared["apiVersion"].as_str().unwrap_or_default());
    let is_validated = !group.contains('.') || group.ends_with(".k8s.io") || group.ends_with(".openshift.io");
    let kind = declared["kind"].as_str().unwrap_or_default();
    let mut found = Vec::new();
    if is_validated && kind != "Secret" {
        let mut search = ExclusionSearch { kind, group, lists, found: &mut found };
        search.value(&live["spec"], &declared["spec"], &mut vec!["f:spec".to_owned()]);
    }
    found
}

/// A search through the declared fields, for the live fields beside them.
struct ExclusionSearch<'s, 'a> {
    kind: &'s str,
    group: &'s str,
    lists: &'s ListTypes,
    found: &'s mut Vec<Exclusion<'a>>,
}

impl<'a> ExclusionSearch<'_, 'a> {
    fn value(&mut self, live: &'a Value, declared: &'a Value, path: &mut FieldPath) {
        match (live, declared) {
            (Value::Object(live), Value::Object(declared)) => {
                self.map(live, declared, path);
                for (key, value) in declared {
                    if let Some(live) = live.get(key) {
                        path.push(format!("f:{key}"));
                        self.value(live, value, path);
                        path.pop();
                    }
                }
            }
            (Value::Array(live), Value::Array(declared)) => {
                let parts = self.lists.parts(path, declared).zip(self.lists.parts(path, live));
                let Some((parts, live_parts)) = parts else { return };
                let items: HashMap<String, &'a Value> = live_parts.into_iter().zip(live).collect();
                for (part, item) in parts.into_iter().zip(declared) {
                    if let Some(live) = items.get(&part) {
                        path.push(part);
                        self.value(live, item, path);
                        path.pop();
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the fields of one map.
    fn map(&mut self, live: &'a Map<String, Value>, declared: &'a Map<String, Value>, path: &[String]) {
        let set = |map: &'a Map<String, Value>, key: &str| {
            map.get_key_value(key).filter(|(_, value)| !value.is_null())
        };
        let mut add = |key: &str, excluding: &str| {
            if let (Some((key, declared)), Some((_, value))) = (set(declared, key), set(live, excluding)) {
                let path = path.iter().cloned().chain([format!("f:{excluding}")]).collect();
                self.found.push(Exclusion { path, value, key, declared });
            }
        };
        if is_strategy(self.kind, self.group, path) {
            let name = |map: &'a Map<String, Value>| set(map, "type").and_then(|(_, value)| value.as_str());
            match (name(declared), name(live), set(declared, "rollingUpdate")) {
                (Some(name), _, None) if name != ROLLING_UPDATE => add("type", "rollingUpdate"),
                (None, Some(name), Some(_)) if name != ROLLING_UPDATE => add("rollingUpdate", "type"),
                _ => {}
            }
        }
        let is_alternative = |key: &&String| is_alternative(self.kind, self.group, path, key);
        let alternatives = declared.keys().filter(|key| set(declared, key).is_some());
        // A declaration with several alternatives is an error of its author, so it is not handled here.
        let [chosen] = alternatives.filter(is_alternative).collect::<Vec<_>>()[..] else { return };
        for (key, value) in live.iter().filter(|(key, _)| is_alternative(key)) {
            // The server ignores an empty value of a variable, so an empty value excludes nothing.
            if set(declared, key).is_none() && value != "" {
                add(chosen, key);
            }
        }
    }
}

fn is_strategy(kind: &str, group: &str, path: &[String]) -> bool {
    let [spec, strategy] = path else { return false };
    group == "apps" && spec == "f:spec" && UPDATE_STRATEGIES.contains(&(kind, strategy))
}

/// Whether the map at `path` may have only one of several alternatives, and `key` is one of these
/// alternatives.
fn is_alternative(kind: &str, group: &str, path: &[String], key: &str) -> bool {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    match parts[..] {
        [.., "f:env", _] => VARIABLE_VALUES.contains(&key),
        [.., "f:env", _, "f:valueFrom"] => true,
        [.., "f:volumes", _] => key != "name",
        [.., "f:livenessProbe" | "f:readinessProbe" | "f:startupProbe"]
        | [.., "f:lifecycle", "f:postStart" | "f:preStop"] => HANDLERS.contains(&key),
        ["f:spec"] => kind == "PodDisruptionBudget" && group == "policy" && BUDGETS.contains(&key),
        _ => false,
    }
}

/// The command that replaces the fields by the declared fields. If the fields were only removed, the server
/// might reject the object: a probe needs a handler.
pub(super) fn removal_command(live: &Value, declared: &Value, exclusions: &[Exclusion<'_>]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = group_of(live["apiVersion"].as_str().unwrap_or_default()).to_owned();
    let kind = text(&live["kind"]).to_lowercase();
    let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
    // The objects of a sandbox are stored without their namespace.
    let field = |name: &str| {
        let [live, declared] = [live, declared].map(|object| text(&object["metadata"][name]));
        if live.is_empty() { declared } else { live }
    };
    let (name, namespace) = (field("name"), field("namespace"));
    let namespace = if namespace.is_empty() { String::new() } else { format!(" --namespace {namespace}") };
    let mut patch = json!({});
    for exclusion in exclusions {
        let Some((last, parent)) = exclusion.path.split_last() else { continue };
        let map = patched_map(&mut patch, parent);
        map[last.trim_start_matches("f:")] = Value::Null;
        map[exclusion.key] = exclusion.declared.clone();
    }
    // Within JSON, a quote of the shell can be escaped.
    let patch = patch.to_string().replace('\'', "\\u0027");
    format!("kubectl patch {kind} {name}{namespace} --patch '{patch}'")
}

/// The map at `path` of a strategic merge patch.
fn patched_map<'p>(patch: &'p mut Value, path: &[String]) -> &'p mut Value {
    path.iter().fold(patch, |level, part| match part.split_once(':') {
        Some(("f", key)) => {
            if level.is_null() {
                *level = json!({});
            }
            &mut level[key]
        }
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            if level.is_null() {
                *level = json!([]);
            }
            item(level, keys)
        }
        _ => level,
    })
}

/// The item with these keys, in a list of a strategic merge patch.
fn item(list: &mut Value, keys: Map<String, Value>) -> &mut Value {
    let has_keys = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
    let position = list.as_array().and_then(|items| items.iter().position(has_keys));
    let count = list.as_array().map_or(0, Vec::len);
    if let (None, Some(items)) = (position, list.as_array_mut()) {
        items.push(Value::Object(keys));
    }
    &mut list[position.unwrap_or(count)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{exclusions, removal_command};
    use crate::fields::{ListTypes, display_path};

    fn object(kind: [&str; 2], spec: &Value) -> Value {
        let metadata = json!({"name": "web", "namespace": "n"});
        json!({"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec})
    }

    const DEPLOYMENT: [&str; 2] = ["apps/v1", "Deployment"];

    #[track_caller]
    fn check(kind: [&str; 2], live: &Value, declared: &Value, expect: &[&str]) {
        let [live, declared] = [live, declared].map(|spec| object(kind, spec));
        let found = exclusions(&live, &declared, &ListTypes::default());
        let found: Vec<String> = found
            .iter()
            .map(|one| format!("{} excludes {}", display_path(&one.path), one.declared_field()))
            .collect();
        assert_eq!(found, expect);
    }

    #[track_caller]
    fn check_container(live: Value, declared: Value, expect: &[&str]) {
        let pod = |mut container: Value| {
            container["name"] = json!("w");
            json!({"template": {"spec": {"containers": [container]}}})
        };
        let expect: Vec<String> =
            expect.iter().map(|text| format!("spec.template.spec.containers[w].{text}")).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check(DEPLOYMENT, &pod(live.clone()), &pod(declared.clone()), &expect);
        check(["example.com/v1", "Deployment"], &pod(live), &pod(declared), &[]);
    }

    #[test]
    fn a_variable_has_one_value() {
        let env = |more: Value| {
            let mut variable = more;
            variable["name"] = json!("B");
            json!({"env": [variable]})
        };
        let field = json!({"valueFrom": {"fieldRef": {"fieldPath": "x"}}});
        let key = json!({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}});
        let value = json!({"value": "1"});
        check_container(env(value.clone()), env(field.clone()), &["env[B].value excludes valueFrom"]);
        check_container(env(field.clone()), env(value.clone()), &["env[B].valueFrom excludes value"]);
        let expect = ["env[B].valueFrom.configMapKeyRef excludes fieldRef"];
        check_container(env(key), env(field.clone()), &expect);
        check_container(env(json!({"value": ""})), env(field.clone()), &[]);
        check_container(env(value), json!({"env": [{"name": "C", "value": "1"}]}), &[]);
        check_container(env(field.clone()), env(json!({})), &[]);
        check_container(env(field.clone()), env(field), &[]);
    }

    #[test]
    fn a_probe_and_a_hook_have_one_handler() {
        let live = json!({"exec": {"command": ["true"]}, "timeoutSeconds": 5});
        let declared = json!({"httpGet": {"port": 80}});
        let probe = |handler: &Value| json!({ "startupProbe": handler });
        check_container(probe(&live), probe(&declared), &["startupProbe.exec excludes httpGet"]);
        let hook = |handler: &Value| json!({"lifecycle": {"preStop": handler}});
        check_container(hook(&live), hook(&declared), &["lifecycle.preStop.exec excludes httpGet"]);
        let both = json!({"httpGet": {"port": 80}, "tcpSocket": {"port": 80}});
        check_container(probe(&live), probe(&both), &[]);
        check_container(probe(&live), probe(&json!({"timeoutSeconds": 5})), &[]);
    }

    #[test]
    fn a_volume_has_one_source() {
        let pod = |mut volume: Value| {
            volume["name"] = json!("v");
            json!({"template": {"spec": {"volumes": [volume]}}})
        };
        let (empty, secret) = (pod(json!({"emptyDir": {}})), pod(json!({"secret": {"secretName": "s"}})));
        let expect = ["spec.template.spec.volumes[v].emptyDir excludes secret"];
        check(DEPLOYMENT, &empty, &secret, &expect);
        check(DEPLOYMENT, &empty, &pod(json!({})), &[]);
    }

    #[test]
    fn parameters_belong_to_one_strategy() {
        let strategy = |strategy: Value| json!({ "strategy": strategy });
        let rolling = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
        let parameters = strategy(json!({"rollingUpdate": {"maxSurge": 1}}));
        let recreate = strategy(json!({"type": "Recreate"}));
        let expect = ["spec.strategy.rollingUpdate excludes type: Recreate"];
        check(DEPLOYMENT, &rolling, &recreate, &expect);
        check(DEPLOYMENT, &recreate, &parameters, &["spec.strategy.type excludes rollingUpdate"]);
        check(DEPLOYMENT, &recreate, &rolling, &[]);
        check(DEPLOYMENT, &rolling, &parameters, &[]);
        check(["apps/v1", "StatefulSet"], &rolling, &recreate, &[]);
    }

    #[test]
    fn a_disruption_budget_has_one_limit() {
        let (min, max) = (json!({"minAvailable": 1}), json!({"maxUnavailable": 1}));
        let budget = ["policy/v1", "PodDisruptionBudget"];
        check(budget, &min, &max, &["spec.minAvailable excludes maxUnavailable"]);
        check(DEPLOYMENT, &min, &max, &[]);
    }

    #[test]
    fn the_command_replaces_the_fields_by_the_declared_ones() {
        let env = |first: Value, second: Value| {
            let item = |name: &str, mut variable: Value| {
                variable["name"] = json!(name);
                variable
            };
            object(DEPLOYMENT, &json!({"env": [item("A", first), item("B", second)]}))
        };
        let field = json!({"valueFrom": {"fieldRef": {"fieldPath": "it's"}}});
        let (live, declared) = (env(json!({"value": "x"}), json!({"value": "y"})), env(field.clone(), field));
        let found = exclusions(&live, &declared, &ListTypes::default());
        let item = |name: &str| {
            let field = r#"{"fieldRef":{"fieldPath":"it\u0027s"}}"#;
            format!(r#"{{"name":"{name}","value":null,"valueFrom":{field}}}"#)
        };
        let expect = format!(
            r#"kubectl patch deployment.apps web --namespace n --patch '{{"spec":{{"env":[{},{}]}}}}'"#,
            item("A"),
            item("B")
        );
        assert_eq!(removal_command(&live, &declared, &found), expect);
    }
}
