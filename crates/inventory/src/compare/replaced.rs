//! Finds list items whose declared content is an empty map that the live item has replaced by something else: the
//! volume `{name: a, emptyDir: {}}` that became `{name: a, hostPath: …}`, or the network policy peer
//! `{podSelector: {}}` that became `{namespaceSelector: {}}`.
//!
//! Elsewhere, an absent empty map does not count as a difference, because API servers drop many empty maps.

use serde_json::{Map, Value};

use crate::difference::{DifferenceSide, FieldDifference, Visibility};

/// The replaced empty maps of an object.
pub(super) fn replaced_empty_maps(desired: &Value, live: &Value, show: Visibility) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    walk(desired, live, "", &mut found);
    let difference = |path| FieldDifference {
        path,
        before: DifferenceSide::Absent,
        after: DifferenceSide::of(Some(&Value::Object(Map::new())), show),
    };
    found.into_iter().map(difference).collect()
}

fn walk(desired: &Value, live: &Value, path: &str, found: &mut Vec<String>) {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            for (key, value) in desired {
                if let Some(live) = live.get(key) {
                    let dot = if path.is_empty() { "" } else { "." };
                    walk(value, live, &format!("{path}{dot}{key}"), found);
                }
            }
        }
        (Value::Array(desired), Value::Array(live)) => {
            for (index, item) in desired.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str);
                let is_named = |other: &&Value| other.get("name").and_then(Value::as_str) == name;
                let other = if name.is_some() { live.iter().find(is_named) } else { live.get(index) };
                let Some(other) = other else { continue };
                let path = format!("{path}[{}]", name.map_or_else(|| index.to_string(), str::to_owned));
                if let (Value::Object(item), Value::Object(other)) = (item, other) {
                    found.extend(replaced_maps(item, other).map(|key| format!("{path}.{key}")));
                }
                walk(item, other, &path, found);
            }
        }
        _ => {}
    }
}

/// The fields of a list item that consists of empty maps, if the live item has other fields in their place.
fn replaced_maps<'d>(
    desired: &'d Map<String, Value>,
    live: &Map<String, Value>,
) -> impl Iterator<Item = &'d String> {
    let is_content = |key: &String| key != "name";
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let mut content = desired.iter().filter(|(key, _)| is_content(key));
    let is_replaced = content.all(|(key, value)| is_empty(value) && !live.contains_key(key))
        && live.keys().any(|key| is_content(key) && !desired.contains_key(key));
    desired.keys().filter(move |key| is_replaced && is_content(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(desired: &Value, live: &Value, expect: &[&str]) {
        let found = replaced_empty_maps(desired, live, Visibility::Values);
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, expect, "{desired} {live}");
    }

    #[test]
    fn an_empty_map_that_another_field_replaced_is_a_difference() {
        let volume = json!({"volumes": [{"name": "a", "emptyDir": {}}]});
        let host =
            json!({"volumes": [{"name": "b", "emptyDir": {}}, {"name": "a", "hostPath": {"path": "/x"}}]});
        check(&volume, &host, &["volumes[a].emptyDir"]);
        check(&volume, &volume, &[]);
        check(&volume, &json!({"volumes": [{"name": "a"}]}), &[]);
        let peers = |peer: Value| json!({"spec": {"ingress": [{"from": [peer]}]}});
        let pods = || peers(json!({"podSelector": {}}));
        check(&pods(), &peers(json!({"namespaceSelector": {}})), &["spec.ingress[0].from[0].podSelector"]);
        check(&pods(), &peers(json!({"podSelector": {"matchLabels": {"a": "b"}}})), &[]);
    }

    #[test]
    fn empty_maps_that_servers_drop_are_no_differences() {
        let container = json!({"containers": [{"name": "a", "image": "x", "resources": {}}]});
        check(&container, &json!({"containers": [{"name": "a", "image": "x", "tty": true}]}), &[]);
        check(&json!({"nodeSelector": {}, "a": 1}), &json!({"a": 1, "b": 2}), &[]);
        check(&json!({"rules": [{}]}), &json!({"rules": [{"verbs": ["*"]}]}), &[]);
    }
}
