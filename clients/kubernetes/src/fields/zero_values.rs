//! Finds declared zero values that a live object lacks: values that the API server does not store, and empty maps
//! and lists that were removed from the object. Pure.
//!
//! The API server does not store many zero values of optional fields (`hostNetwork: false`, `nodeSelector: {}`), and
//! replaces others with a default (`timeoutSeconds: 0`). Server-side apply records them in `managedFields`
//! nevertheless, and a writer that changes or removes a field takes it from its owners. Therefore a zero value that
//! is not stored, but that we still own, needs no write.
//!
//! Old servers (Kubernetes 1.20) do not record empty maps. An empty map that is neither stored nor recorded counts as
//! removed only where servers store empty maps: in custom resources, except those of OpenShift, and in selectors.

use std::borrow::Cow;
use std::collections::HashMap;

use qontract_kinds::group_of;
use serde_json::{Map, Value};

use super::atomic_maps::is_custom;
use super::lists::field_name;
use super::{FieldPath, FieldSet, ListTypes, ManagedFieldsEntry, display_path};

/// Whether an object was written since its declaration was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclarationState {
    /// The last write wrote this declaration.
    Written,
    /// The last write wrote another declaration, or there was no write.
    Changed,
}

/// The declared zero values that a live object lacks.
#[derive(Clone, PartialEq)]
pub struct ZeroValues<'a> {
    /// The live object, with the declared zero values that the API server did not store.
    pub live: Cow<'a, Value>,
    /// The declared empty maps and lists that were removed from the object, with their paths.
    pub removed: Vec<(String, Value)>,
}

/// Finds the zero values of `declared` that `live` lacks. `state` and `entries` are only computed if there may be any.
pub(super) fn zero_values<'a>(
    live: &'a Value,
    declared: &Value,
    manager: &str,
    state: impl FnOnce() -> DeclarationState,
    entries: impl FnOnce() -> VersionedEntries,
) -> ZeroValues<'a> {
    if live["kind"] == "Secret" || !lacks_zero_value(live, declared) {
        return ZeroValues { live: Cow::Borrowed(live), removed: Vec::new() };
    }
    let VersionedEntries { entries, is_versioned } = entries();
    let own = entries.iter().find(|entry| entry.manager == manager && entry.is_applied);
    let mut search = ZeroValueSearch {
        own: own.map(|own| &own.fields),
        lists: ListTypes::of(entries.iter().map(|entry| &entry.fields)),
        is_written: state() == DeclarationState::Written,
        has_recorded_changes: is_versioned,
        stores_empty_maps: is_custom(declared) && !is_of_openshift(declared),
        path: FieldPath::new(),
        removed: Vec::new(),
    };
    let mut complete = live.clone();
    search.value(&mut complete, declared, Coverage::Unknown);
    ZeroValues { live: Cow::Owned(complete), removed: search.removed }
}

/// The entries of `managedFields`.
pub(super) struct VersionedEntries {
    pub entries: Vec<ManagedFieldsEntry>,
    /// Whether the entries name API versions. The entries of a sandbox do not, and changes of its files are not
    /// recorded in the entries.
    pub is_versioned: bool,
}

/// Whether a value is in a list or map that we own as a whole, and that was not changed since we wrote it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coverage {
    Whole,
    Unknown,
}

struct ZeroValueSearch<'a> {
    /// The fields that we applied; `None` if we have not applied the object.
    own: Option<&'a FieldSet>,
    lists: ListTypes,
    is_written: bool,
    /// Whether a writer that changes a field takes it from its owners.
    has_recorded_changes: bool,
    /// Whether the API server stores all empty maps of the kind.
    stores_empty_maps: bool,
    /// The path of the current value.
    path: FieldPath,
    removed: Vec<(String, Value)>,
}

impl ZeroValueSearch<'_> {
    /// Adds the declared zero values that the API server did not store to `live`.
    fn value(&mut self, live: &mut Value, declared: &Value, coverage: Coverage) {
        let coverage = if self.is_owned_whole() { Coverage::Whole } else { coverage };
        match (live, declared) {
            // The comparison reports the replaced maps.
            (Value::Object(live), Value::Object(declared)) if self.is_replaced(live, declared) => {}
            (Value::Object(live), Value::Object(declared)) => {
                for (key, value) in declared {
                    if self.path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind" | "status") {
                        continue;
                    }
                    self.path.push(format!("f:{key}"));
                    self.field(live, key, value, coverage);
                    self.path.pop();
                }
            }
            (Value::Array(live), Value::Array(declared)) => self.items(live, declared, coverage),
            _ => {}
        }
    }

    fn items(&mut self, live: &mut [Value], declared: &[Value], coverage: Coverage) {
        let parts = self.lists.parts(&self.path, declared).zip(self.lists.parts(&self.path, live));
        let Some((parts, live_parts)) = parts else {
            if live.len() == declared.len() {
                for (position, (live, declared)) in live.iter_mut().zip(declared).enumerate() {
                    self.path.push(format!("i:{position}"));
                    self.value(live, declared, coverage);
                    self.path.pop();
                }
            }
            return;
        };
        let positions: HashMap<String, usize> = live_parts.into_iter().zip(0..).collect();
        for (part, declared) in parts.into_iter().zip(declared) {
            if let Some(position) = positions.get(&part) {
                self.path.push(part);
                self.value(&mut live[*position], declared, coverage);
                self.path.pop();
            }
        }
    }

    /// Handles one declared field of a map.
    fn field(&mut self, live: &mut Map<String, Value>, key: &str, declared: &Value, coverage: Coverage) {
        let is_ours =
            coverage == Coverage::Whole || self.own.is_some_and(|own| own.contains_below(&self.path));
        match live.get_mut(key).filter(|live| !live.is_null()) {
            None if is_empty(declared) => {
                if self.own.is_some() && !is_ours && self.is_stored_if_empty() {
                    self.removed.push((display_path(&self.path), declared.clone()));
                } else {
                    live.insert(key.to_owned(), declared.clone());
                }
            }
            None if is_zero_scalar(declared) && is_ours => {
                live.insert(key.to_owned(), declared.clone());
            }
            // A map that contains only zero values.
            None if declared.is_object() => {
                let mut map = Value::Object(Map::new());
                self.value(&mut map, declared, coverage);
                if map == *declared {
                    live.insert(key.to_owned(), map);
                }
            }
            None => {}
            Some(value) if is_zero_scalar(declared) => {
                let is_default = is_ours && self.is_written && self.has_recorded_changes;
                if is_default && !value.is_object() && !value.is_array() {
                    value.clone_from(declared);
                }
            }
            Some(value) => self.value(value, declared, coverage),
        }
    }

    /// Whether we own the value at the current path as one field. If the declaration was changed since the last
    /// write, the last write may not have declared the content of the value.
    fn is_owned_whole(&self) -> bool {
        self.is_written
            && self.own.is_some_and(|own| {
                let mut from = own.0.range(self.path.clone()..);
                from.next() == Some(&self.path)
                    && from.next().is_none_or(|next| !next.starts_with(&self.path))
            })
    }

    /// Whether the current value is a list item that consists of empty maps, and that has other fields in their
    /// place: `{name: a, emptyDir: {}}` became `{name: a, hostPath: …}`.
    fn is_replaced(&self, live: &Map<String, Value>, declared: &Map<String, Value>) -> bool {
        let is_content = |key: &String| key != "name";
        self.path.last().is_some_and(|part| field_name(part).is_none())
            && declared.iter().filter(|(key, _)| is_content(key)).all(|(_, value)| is_empty(value))
            && live.keys().any(|key| is_content(key) && !declared.contains_key(key))
    }

    /// Whether every server stores the map or list at the current path if it is empty.
    fn is_stored_if_empty(&self) -> bool {
        let name = self.path.last().and_then(|part| field_name(part)).unwrap_or_default();
        self.stores_empty_maps || name.ends_with("Selector") && name != "nodeSelector"
    }
}

/// Whether the kind of an object belongs to OpenShift. Many of these kinds have servers of their own, which store
/// objects like the built-in kinds.
fn is_of_openshift(object: &Value) -> bool {
    group_of(object["apiVersion"].as_str().unwrap_or_default()).ends_with(".openshift.io")
}

/// Whether `live` may lack a zero value of `declared`.
fn lacks_zero_value(live: &Value, declared: &Value) -> bool {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) if !declared.is_empty() => {
            declared.iter().any(|(key, value)| match live.get(key) {
                None | Some(Value::Null) => has_zero_value(value),
                Some(live) => lacks_zero_value(live, value),
            })
        }
        (live, declared) => live != declared && has_zero_value(declared),
    }
}

fn has_zero_value(value: &Value) -> bool {
    match value {
        value if is_empty(value) || is_zero_scalar(value) => true,
        Value::Object(map) => map.values().any(has_zero_value),
        Value::Array(items) => items.iter().any(has_zero_value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a value is an empty map or list.
fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn is_zero_scalar(value: &Value) -> bool {
    match value {
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DeclarationState, VersionedEntries, ZeroValues, zero_values};
    use crate::fields::{FieldSet, ManagedFieldsEntry};

    /// A declaration that was written, and the live object; returns the live object with zero values that are not
    /// stored, and the paths of removed values.
    fn find(
        [api_version, manager]: [&str; 2],
        live: &Value,
        fields: &Value,
        declared: &Value,
        state: DeclarationState,
    ) -> (Value, Vec<String>) {
        let mut declared = declared.clone();
        declared["apiVersion"] = api_version.into();
        let fields = FieldSet::read(fields);
        let entry = ManagedFieldsEntry { manager: manager.to_owned(), is_applied: true, fields };
        let entries = || VersionedEntries { entries: vec![entry], is_versioned: true };
        let ZeroValues { live, removed } = zero_values(live, &declared, "qontract", || state, entries);
        (live.into_owned(), removed.into_iter().map(|(path, _)| path).collect())
    }

    #[track_caller]
    fn check(live: &Value, fields: &Value, declared: &Value, expect: &Value) {
        let names = ["apps/v1", "qontract"];
        let found = find(names, live, fields, declared, DeclarationState::Written);
        assert_eq!(found, (expect.clone(), Vec::new()));
    }

    #[track_caller]
    fn check_removed(api_version: &str, live: &Value, fields: &Value, declared: &Value, expect: &[&str]) {
        let (_, removed) = find([api_version, "qontract"], live, fields, declared, DeclarationState::Written);
        assert_eq!(removed, expect);
        let (_, removed) = find([api_version, "other"], live, fields, declared, DeclarationState::Written);
        assert!(removed.is_empty(), "the object was not applied");
    }

    #[test]
    fn zero_values_that_we_own_are_not_stored() {
        let declared = json!({"spec": {"a": false, "b": 0, "c": "", "d": [], "e": {}, "f": {"g": 0.0}}});
        let live = json!({"spec": {"x": 1}});
        let fields = json!({"f:spec": {"f:a": {}, "f:b": {}, "f:c": {}, "f:d": {}, "f:f": {"f:g": {}}}});
        let expect =
            json!({"spec": {"a": false, "b": 0, "c": "", "d": [], "e": {}, "f": {"g": 0.0}, "x": 1}});
        check(&live, &fields, &declared, &expect);
    }

    #[test]
    fn zero_values_that_were_removed_are_missing() {
        let declared = json!({"spec": {"a": false, "b": {"c": 0}, "d": true}});
        let live = json!({"spec": {"x": 1}});
        check(&live, &json!({"f:spec": {"f:x": {}}}), &declared, &live);
        check(&live, &json!({"f:spec": {"f:d": {}}}), &declared, &live);
    }

    #[test]
    fn a_zero_value_that_is_replaced_with_a_default_is_not_stored() {
        let (declared, live) = (json!({"spec": {"a": 0, "b": 5}}), json!({"spec": {"a": 1, "b": 2}}));
        let fields = json!({"f:spec": {"f:a": {}, "f:b": {}}});
        check(&live, &fields, &declared, &json!({"spec": {"a": 0, "b": 2}}));
        check(&live, &json!({"f:spec": {"f:b": {}}}), &declared, &live);
        let found = find(["apps/v1", "qontract"], &live, &fields, &declared, DeclarationState::Changed);
        assert_eq!(found.0, live, "the value may be that of the former declaration");
    }

    #[test]
    fn zero_values_in_a_list_that_we_own_are_not_stored() {
        let (declared, live) = (json!({"l": [{"a": 1, "b": false}]}), json!({"l": [{"a": 1}]}));
        check(&live, &json!({"f:l": {}}), &declared, &declared);
        check(&live, &json!({"f:m": {}}), &declared, &live);
        let found =
            find(["apps/v1", "qontract"], &live, &json!({"f:l": {}}), &declared, DeclarationState::Changed);
        assert_eq!(found.0, live, "the former declaration may have lacked the value");
        let item = json!({"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:b": {}}});
        let (declared, live) =
            (json!({"env": [{"name": "x", "b": ""}]}), json!({"env": [{"name": "y"}, {"name": "x"}]}));
        let expect = json!({"env": [{"name": "y"}, {"name": "x", "b": ""}]});
        check(&live, &json!({"f:env": item}), &declared, &expect);
    }

    #[test]
    fn empty_maps_that_servers_store_and_no_manager_owns_were_removed() {
        let (live, fields) = (json!({"spec": {"x": 1}}), json!({"f:spec": {"f:x": {}}}));
        let declared = json!({"spec": {"podSelector": {}, "nodeSelector": {}, "affinity": {}, "list": []}});
        let all = ["spec.affinity", "spec.list", "spec.nodeSelector", "spec.podSelector"];
        check_removed("example.com/v1", &live, &fields, &declared, &all);
        for version in ["networking.k8s.io/v1", "apps.openshift.io/v1"] {
            check_removed(version, &live, &fields, &declared, &["spec.podSelector"]);
        }
        let fields =
            json!({"f:spec": {"f:podSelector": {}, "f:list": {}, "f:affinity": {}, "f:nodeSelector": {}}});
        check_removed("example.com/v1", &live, &fields, &declared, &[]);
    }

    #[test]
    fn an_empty_map_that_was_replaced_is_missing() {
        let declared = json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]});
        let live = json!({"volumes": [{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b"}]});
        let expect =
            json!({"volumes": [{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b", "emptyDir": {}}]});
        check(&live, &json!({}), &declared, &expect);
    }

    #[test]
    fn an_empty_map_in_a_list_of_another_owner_was_removed() {
        let peers = |peer: Value| json!({"spec": {"ingress": [{"from": [peer]}]}});
        let live = peers(json!({"podSelector": {"matchLabels": {"a": "b"}}}));
        let declared = peers(json!({"podSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}));
        let path = "spec.ingress[0].from[0].namespaceSelector";
        let group = "networking.k8s.io/v1";
        check_removed(group, &live, &json!({"f:spec": {"f:podSelector": {}}}), &declared, &[path]);
        check_removed(group, &live, &json!({"f:spec": {"f:ingress": {}}}), &declared, &[]);
    }
}
