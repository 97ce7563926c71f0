//! Field ownership: sets of fields and their managers, in the format of Kubernetes. Pure.

mod apply;
mod atomic_maps;
mod csa_migration;
mod entry;
mod exclusion;
mod item_index;
mod kept;
mod legacy;
mod lists;
mod ownership;
mod projection;
#[cfg(test)]
mod reference;
mod removal;
mod residue;
mod zero_values;

use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};

use qontract_kinds::is_free_form;
use serde_json::{Map, Value, json};

pub use apply::FieldConflicts;
pub(crate) use apply::{apply, apply_without_residue};
pub(crate) use csa_migration::{field_ownership, migrate, migrate_declared};
pub(crate) use entry::ManagedFieldsEntry;
pub use exclusion::ExcludingField;
pub(crate) use legacy::is_overruled;
pub(crate) use lists::ListTypes;
pub use ownership::{ManagedFields, Preview};
pub use zero_values::{DeclarationState, ZeroValues};

/// The annotation in which client-side apply stores the applied object.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields of `metadata` that have no owner: the server sets them, or they identify the object.
const UNOWNED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "selfLink",
];

/// A field path: `f:spec`, `k:{"name":"web"}`.
pub(crate) type FieldPath = Vec<String>;

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldSet(pub BTreeSet<FieldPath>);

impl FieldSet {
    /// Parses `fieldsV1`.
    pub fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        set.collect(fields, &mut Vec::new());
        set
    }

    fn collect(&mut self, fields: &Value, path: &mut FieldPath) {
        for (key, below) in fields.as_object().into_iter().flatten() {
            if key == "." {
                self.0.insert(path.clone());
                continue;
            }
            path.push(key.clone());
            if below.as_object().is_none_or(Map::is_empty) {
                self.0.insert(path.clone());
            } else {
                self.collect(below, path);
            }
            path.pop();
        }
    }

    /// Prints the set as `fieldsV1`.
    pub fn print(&self) -> Value {
        let mut root = json!({});
        for path in &self.0 {
            let mut level = &mut root;
            for part in path {
                level = &mut level[part.as_str()];
                if level.is_null() {
                    *level = json!({});
                }
            }
            // Paths below this one come next, because a path sorts before its continuations.
            if self.0.range::<FieldPath, _>(path..).nth(1).is_some_and(|next| next.starts_with(path)) {
                level["."] = json!({});
            }
        }
        root
    }

    /// The fields that an object declares, without knowledge of its list types.
    pub fn of(body: &Value) -> Self {
        Self::declared(body, &ListTypes::default())
    }

    /// The fields that an object declares. An atomic map is one field.
    pub fn declared(body: &Value, lists: &ListTypes) -> Self {
        let mut set = Self::default();
        for (key, value) in body.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("apiVersion" | "kind" | "status", _) => {}
                ("metadata", Value::Object(metadata)) => {
                    for (key, value) in
                        metadata.iter().filter(|(key, _)| !UNOWNED_METADATA.contains(&key.as_str()))
                    {
                        let path = &mut vec!["f:metadata".to_owned(), format!("f:{key}")];
                        set.add(value, path, lists);
                    }
                }
                (key, value) => set.add(value, &mut vec![format!("f:{key}")], lists),
            }
        }
        set
    }

    fn add(&mut self, value: &Value, path: &mut FieldPath, lists: &ListTypes) {
        match value {
            Value::Object(map) if !map.is_empty() && !lists.is_atomic_map(path) => {
                for (key, value) in map {
                    path.push(format!("f:{key}"));
                    self.add(value, path, lists);
                    path.pop();
                }
                return;
            }
            Value::Array(items) => {
                if let Some(parts) = lists.parts(path, items) {
                    for (part, item) in parts.into_iter().zip(items) {
                        path.push(part);
                        self.0.insert(path.clone());
                        if item.is_object() {
                            self.add(item, path, lists);
                        }
                        path.pop();
                    }
                    return;
                }
            }
            _ => {}
        }
        self.0.insert(path.clone());
    }

    /// The union of both sets.
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Whether the set has a path at or below this one.
    pub fn contains_below(&self, path: &[String]) -> bool {
        let mut from = self.0.range::<[String], _>((Included(path), Unbounded));
        from.next().is_some_and(|next| next.starts_with(path))
    }

    /// Whether the set has a list above the path of an item as one field.
    pub fn contains_list_above(&self, path: &[String]) -> bool {
        let is_item = |end: &usize| !path[*end].starts_with("f:");
        (1..path.len()).filter(is_item).any(|end| self.0.contains(&path[..end]))
    }
}

/// The path of the last-applied annotation.
pub(crate) fn last_applied() -> FieldPath {
    ["f:metadata".to_owned(), "f:annotations".to_owned(), format!("f:{LAST_APPLIED}")].into()
}

/// A path for messages: `spec.template.spec.containers[web].image`, `spec.hard["limits.cpu"]`.
pub(crate) fn display_path(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        match part.split_once(':') {
            Some(("f", name)) if !is_plain(name) => text.push_str(&format!("[{}]", Value::from(name))),
            Some(("f", name)) if text.is_empty() => text.push_str(name),
            Some(("f", name)) => text.push_str(&format!(".{name}")),
            Some(("k", key)) => {
                let name = serde_json::from_str::<Value>(key).ok();
                let name = name.as_ref().and_then(|key| key["name"].as_str());
                text.push_str(&format!("[{}]", name.unwrap_or(key)));
            }
            Some(("i", position)) => text.push_str(&format!("[{position}]")),
            _ => text.push_str(&format!("[{part}]")),
        }
    }
    text
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'-' | b'_'))
}

/// The path of a field up to the first map with free-form keys.
pub(crate) fn without_keys(field: &str) -> &str {
    let mut start = 0;
    for part in field.split_inclusive(['.', '[']) {
        let name = part.trim_end_matches(['.', '[']);
        if is_free_form(name) {
            return &field[..start + name.len()];
        }
        start += part.len();
    }
    field
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldSet, display_path};

    fn check(body: &serde_json::Value, expect: &[&str]) {
        let set = FieldSet::of(body);
        assert_eq!(set.0.iter().map(|path| display_path(path)).collect::<Vec<_>>(), expect);
        assert_eq!(FieldSet::read(&set.print()), set, "{}", set.print());
    }

    #[test]
    fn identifying_and_server_fields_have_no_owner() {
        check(
            &json!({"apiVersion": "v1", "kind": "X", "status": {"a": 1}, "metadata": {"name": "a", "namespace": "b",
                "uid": "c", "labels": {"x": "y"}}}),
            &["metadata.labels.x"],
        );
    }

    #[test]
    fn maps_are_granular_and_lists_are_atomic() {
        check(
            &json!({"data": {"a": "1", "b.c": "2"}, "empty": {}, "list": [{"name": "a"}]}),
            &["data.a", "data[\"b.c\"]", "empty", "list"],
        );
    }

    #[test]
    fn lists_of_pods_are_by_name() {
        let containers = json!({"containers": [{"name": "web", "image": "i"}]});
        check(&containers, &["containers[web]", "containers[web].image", "containers[web].name"]);
        check(&json!({"containers": [{"name": "web"}, {"name": "web"}]}), &["containers"]);
    }

    #[test]
    fn the_kubernetes_format_round_trips() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:ports": {".": {},
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}, "f:immutable": {}});
        assert_eq!(FieldSet::read(&fields).print(), fields);
    }
}
