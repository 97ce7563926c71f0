//! List types, which determine the lists that the API server merges item by item, and the identity of their
//! items; and the maps that the API server replaces as a whole.
//!
//! The schema defines the type of a list (`x-kubernetes-list-type`), and `managedFields` reflect it: the path
//! of an item is `k:{"name":"web"}` in a list with keys and `v:"a"` in a set. A list without entries in
//! `managedFields` is recognized by its name; otherwise it counts as atomic.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::atomic_maps::atomic_maps;
use super::{FieldPath, FieldSet, ManagedFieldsEntry};

/// Lists whose items are identified by name if `managedFields` do not mention them.
const NAMED_LISTS: [&str; 6] =
    ["containers", "initContainers", "ephemeralContainers", "env", "volumes", "imagePullSecrets"];

/// The type of a list, which decides how it is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListType {
    /// Items are identified by these fields.
    Keys(BTreeSet<String>),
    /// Items are identified by their values.
    Set,
    /// The list is replaced as a whole.
    Atomic,
}

/// The types of the lists of an object, and its atomic maps, by paths without item identities.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListTypes {
    lists: BTreeMap<FieldPath, ListType>,
    /// The maps that a write replaces as a whole.
    atomic_maps: BTreeSet<FieldPath>,
}

impl ListTypes {
    /// Derives list types from these sets of fields.
    pub fn of<'a>(sets: impl Iterator<Item = &'a FieldSet>) -> Self {
        let mut types: BTreeMap<FieldPath, ListType> = BTreeMap::new();
        let mut leaves: BTreeSet<FieldPath> = BTreeSet::new();
        for path in sets.flat_map(|set| &set.0) {
            for (at, part) in path.iter().enumerate() {
                let list_type = match part.split_once(':') {
                    Some(("k", keys)) => {
                        let keys = serde_json::from_str::<Map<String, Value>>(keys).unwrap_or_default();
                        ListType::Keys(keys.into_iter().map(|(key, _)| key).collect())
                    }
                    Some(("v", _)) => ListType::Set,
                    _ => continue,
                };
                types.insert(generic_path(&path[..at]), list_type);
            }
            leaves.insert(generic_path(path));
        }
        for leaf in leaves {
            types.entry(leaf).or_insert(ListType::Atomic);
        }
        Self { lists: types, atomic_maps: BTreeSet::new() }
    }

    /// The list types and the atomic maps that matter for a write of `declared` to `live`.
    pub fn of_write(live: &Value, entries: &[ManagedFieldsEntry], declared: &Value) -> Self {
        let mut types = Self::of(entries.iter().map(|entry| &entry.fields));
        types.atomic_maps = atomic_maps(live, entries, declared, &types);
        types
    }

    /// Whether a write replaces the map at `path` as a whole.
    pub fn is_atomic_map(&self, path: &[String]) -> bool {
        !self.atomic_maps.is_empty() && self.atomic_maps.contains(&generic_path(path))
    }

    /// The path parts of the items of the list at `path`; `None` if the list is atomic.
    pub fn parts(&self, path: &[String], items: &[Value]) -> Option<Vec<String>> {
        let declared = self.lists.get(&generic_path(path)).cloned();
        let by_name =
            || path.last().is_some_and(|last| NAMED_LISTS.iter().any(|name| field_name(last) == Some(name)));
        let list_type = match declared {
            Some(ListType::Atomic) | None if !by_name() => return None,
            Some(ListType::Atomic) | None => ListType::Keys(BTreeSet::from(["name".to_owned()])),
            Some(list_type) => list_type,
        };
        let part = |item: &Value| match &list_type {
            ListType::Keys(keys) => {
                let keys: Option<Map<String, Value>> =
                    keys.iter().map(|key| Some((key.clone(), key_value(item, key)?))).collect();
                Some(format!("k:{}", Value::Object(keys?)))
            }
            ListType::Set => Some(format!("v:{item}")),
            ListType::Atomic => None,
        };
        let parts: Vec<String> = items.iter().map(part).collect::<Option<_>>()?;
        let distinct: BTreeSet<&String> = parts.iter().collect();
        (!items.is_empty() && distinct.len() == parts.len()).then_some(parts)
    }
}

/// Whether `field_part` is one of the keys with which a path part identifies an item.
pub(super) fn is_key(part: &str, field_part: &str) -> bool {
    let keys = part.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Map<String, Value>>(keys).ok());
    keys.zip(field_name(field_part)).is_some_and(|(keys, field)| keys.contains_key(field))
}

/// The value of an item's key. The protocol of a port defaults to TCP, as in the Kubernetes schema.
pub(super) fn key_value(item: &Value, key: &str) -> Option<Value> {
    let value = item.get(key).filter(|value| !value.is_null()).cloned();
    value.or_else(|| (key == "protocol" && item.is_object()).then(|| json!("TCP")))
}

/// The field name in a path part; `None` if the part denotes an item.
pub(super) fn field_name(part: &str) -> Option<&str> {
    part.strip_prefix("f:")
}

/// A path in which all items of a list are equal.
pub(super) fn generic_path(path: &[String]) -> FieldPath {
    let part = |part: &String| if part.starts_with("f:") { part.clone() } else { "*".to_owned() };
    path.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FieldSet, ListTypes};
    use crate::fields::item_index::ItemIndex;

    #[track_caller]
    fn check(fields: &Value, path: &[&str], items: &Value, expect: Option<&[&str]>) {
        let set = FieldSet::read(fields);
        let types = ListTypes::of([&set].into_iter());
        let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        let items = items.as_array().unwrap();
        let parts = types.parts(&path, items);
        for (index, part) in parts.iter().flatten().enumerate() {
            assert_eq!(ItemIndex::default().positions(items, part), [index], "{part}");
        }
        assert_eq!(
            parts.as_deref(),
            expect.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>()).as_deref()
        );
    }

    #[test]
    fn keys_come_from_the_managed_fields() {
        let ports = json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}});
        let items = json!([{"port": 80}, {"port": 80, "protocol": "UDP"}]);
        let expect = ["k:{\"port\":80,\"protocol\":\"TCP\"}", "k:{\"port\":80,\"protocol\":\"UDP\"}"];
        check(&ports, &["f:ports"], &items, Some(&expect));
        check(&ports, &["f:other"], &items, None);
        check(&ports, &["f:ports"], &json!([{"port": 80}, {"port": 80, "protocol": "TCP"}]), None);
        check(&ports, &["f:ports"], &json!([{"name": "a"}]), None);
        check(&ports, &["f:ports"], &json!([]), None);
    }

    #[test]
    fn items_of_a_set_are_identified_by_their_values() {
        let fields = json!({"f:finalizers": {".": {}, "v:\"a\"": {}}});
        check(&fields, &["f:finalizers"], &json!(["a", "b"]), Some(&["v:\"a\"", "v:\"b\""]));
        check(&fields, &["f:finalizers"], &json!(["a", "a"]), None);
    }

    #[test]
    fn lists_within_items_do_not_depend_on_the_item() {
        let fields = json!({"f:spec": {"k:{\"name\":\"a\"}": {"f:m": {"k:{\"p\":1}": {"f:p": {}}}}}});
        let path = ["f:spec", "k:{\"name\":\"other\"}", "f:m"];
        check(&fields, &path, &json!([{"p": 2}]), Some(&["k:{\"p\":2}"]));
    }

    #[test]
    fn unknown_lists_are_recognized_by_their_names() {
        check(&json!({}), &["f:env"], &json!([{"name": "A"}]), Some(&["k:{\"name\":\"A\"}"]));
        check(&json!({"f:env": {}}), &["f:env"], &json!([{"name": "A"}]), Some(&["k:{\"name\":\"A\"}"]));
        check(&json!({}), &["f:args"], &json!(["a"]), None);
        check(&json!({"f:list": {}}), &["f:list"], &json!([{"name": "A"}]), None);
    }
}
