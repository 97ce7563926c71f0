//! Finds the maps that server-side apply replaces as a whole, from `managedFields`. Pure.
//!
//! The schema of a kind defines whether the API server merges a map field by field (granular), or replaces it as
//! a whole (atomic: label selectors, untyped maps of custom resources). An atomic map is one field in
//! `managedFields`. So is a granular map that was applied as `{}`, which may have defaults in it.
//!
//! **Invariant:** a map in which any manager owns a single field is granular
//! (`a_map_in_which_a_field_is_owned_is_granular`).

use std::collections::{BTreeMap, BTreeSet};

use qontract_kinds::group_of;
use serde_json::Value;

use super::lists::{field_name, generic_path};
use super::{FieldPath, FieldSet, ListTypes, ManagedFieldsEntry};

/// Maps of built-in kinds that are atomic, by the ends of their names: `podSelector`, `secretKeyRef`. None of
/// them has defaults if it is empty.
const ATOMIC_NAME_ENDS: [&str; 3] = ["selector", "Selector", "Ref"];

/// The atomic maps of `live`, as paths without item identities, for a write of `declared`. `lists` are the list
/// types.
///
/// A map with content that is one field in `managedFields` is atomic if
/// - an update set it, because an update owns each field of a granular map, including defaults; or
/// - its name is that of an atomic map of the built-in kinds; or
/// - the kind is a custom one, and `declared` has content for the map. A granular map of a custom kind can only
///   be one field if it was applied as `{}`, so this decision is wrong at most once, for the write that adds the
///   first field to a map with defaults.
pub(super) fn atomic_maps(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    declared: &Value,
    lists: &ListTypes,
) -> BTreeSet<FieldPath> {
    let (mut leaves, mut granular) = (BTreeMap::new(), BTreeSet::new());
    for entry in entries {
        for path in &entry.fields.0 {
            add_prefixes(path, &mut granular);
            *leaves.entry(generic_path(path)).or_insert(false) |= !entry.is_applied;
        }
    }
    leaves.retain(|path, _| !granular.contains(path));
    let mut found = BTreeSet::new();
    let search = AtomicMapSearch { leaves: &leaves, granular: &granular, lists };
    search.collect(live, &mut Vec::new(), &mut found);
    if found.is_empty() {
        return found;
    }
    let mut with_content = BTreeSet::new();
    if is_custom(declared) {
        for path in &FieldSet::declared(declared, lists).0 {
            add_prefixes(path, &mut with_content);
        }
    }
    let is_named_atomic = |path: &FieldPath| {
        let name = path.last().and_then(|part| field_name(part));
        name.is_some_and(|name| ATOMIC_NAME_ENDS.iter().any(|end| name.ends_with(end)))
    };
    found.retain(|path| {
        leaves.get(path) == Some(&true) || is_named_atomic(path) || with_content.contains(path)
    });
    found
}

/// Whether the cluster, and not Kubernetes, defines the kind of an object.
pub(super) fn is_custom(object: &Value) -> bool {
    let group = group_of(object["apiVersion"].as_str().unwrap_or_default());
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Adds the paths of all maps and lists that contain `path`.
fn add_prefixes(path: &FieldPath, prefixes: &mut BTreeSet<FieldPath>) {
    let path = generic_path(path);
    for end in (1..path.len()).rev() {
        if !prefixes.insert(path[..end].to_vec()) {
            return;
        }
    }
}

struct AtomicMapSearch<'a> {
    /// The paths at which a manager owns one field, and whether an update set it.
    leaves: &'a BTreeMap<FieldPath, bool>,
    /// The paths of maps and lists in which a manager owns a field.
    granular: &'a BTreeSet<FieldPath>,
    lists: &'a ListTypes,
}

impl AtomicMapSearch<'_> {
    /// Adds the maps with content, in `value` at `path`, that are one field.
    fn collect(&self, value: &Value, path: &mut FieldPath, found: &mut BTreeSet<FieldPath>) {
        let generic = generic_path(path);
        if !path.is_empty() && !self.granular.contains(&generic) {
            if value.as_object().is_some_and(|map| !map.is_empty()) && self.leaves.contains_key(&generic) {
                found.insert(generic);
            }
            return;
        }
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (format!("f:{key}"), value)).collect(),
            Value::Array(items) => {
                self.lists.parts(path, items).unwrap_or_default().into_iter().zip(items).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
        for (part, value) in children {
            path.push(part);
            self.collect(value, path, found);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::atomic_maps;
    use crate::fields::{FieldSet, ListTypes, ManagedFieldsEntry, display_path};

    /// `entries` are the fields that we applied, and those that another manager set by an update.
    #[track_caller]
    fn check(api_version: &str, live: &Value, entries: [&Value; 2], declared: &Value, expect: &[&str]) {
        let entries = [("qontract", true, entries[0]), ("kubectl-edit", false, entries[1])];
        let entries = entries.map(|(manager, is_applied, fields)| ManagedFieldsEntry {
            manager: manager.to_owned(),
            is_applied,
            fields: FieldSet::read(fields),
        });
        let mut declared = declared.clone();
        declared["apiVersion"] = api_version.into();
        let lists = ListTypes::of(entries.iter().map(|entry| &entry.fields));
        let found = atomic_maps(live, &entries, &declared, &lists);
        assert_eq!(found.iter().map(|path| display_path(path)).collect::<Vec<_>>(), expect);
    }

    const POLICY: &str = "networking.k8s.io/v1";
    const WIDGET: &str = "example.com/v1";

    #[test]
    fn a_selector_that_is_one_field_is_atomic() {
        let live = json!({"spec": {"podSelector": {"matchLabels": {"a": "1"}}}});
        let ours = json!({"f:spec": {"f:podSelector": {}}});
        for declared in [json!({"spec": {"podSelector": {}}}), json!({}), live.clone()] {
            check(POLICY, &live, [&ours, &json!({})], &declared, &["spec.podSelector"]);
        }
        check(POLICY, &json!({"spec": {"podSelector": {}}}), [&ours, &json!({})], &live, &[]);
    }

    #[test]
    fn a_map_in_which_a_field_is_owned_is_granular() {
        let live = json!({"spec": {"podSelector": {"matchLabels": {"a": "1"}}}});
        let ours = json!({"f:spec": {"f:podSelector": {}}});
        let other = json!({"f:spec": {"f:podSelector": {"f:matchLabels": {}}}});
        check(POLICY, &live, [&ours, &other], &live, &["spec.podSelector.matchLabels"]);
        let item = |name: &str, fields: Value| json!({format!("k:{{\"name\":\"{name}\"}}"): {"f:c": fields}});
        let live = json!({"l": [{"name": "a", "c": {"x": 1}}, {"name": "b", "c": {"x": 1}}]});
        let ours = json!({"f:l": item("a", json!({}))});
        check(WIDGET, &live, [&ours, &json!({"f:l": item("b", json!({"f:x": {}}))})], &live, &[]);
        check(WIDGET, &live, [&ours, &json!({})], &live, &["l[*].c"]);
    }

    #[test]
    fn a_map_that_was_applied_as_empty_may_have_defaults() {
        let live = json!({"spec": {"strategy": {"type": "RollingUpdate"}}});
        let ours = json!({"f:spec": {"f:strategy": {}}});
        let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
        check("apps/v1", &live, [&ours, &json!({})], &recreate, &[]);
        check("apps/v1", &live, [&json!({}), &ours], &recreate, &["spec.strategy"]);
    }

    #[test]
    fn an_untyped_map_of_a_custom_kind_is_atomic_if_it_is_declared_with_content() {
        let live = json!({"spec": {"config": {"a": 1, "b": 2}}});
        let ours = json!({"f:spec": {"f:config": {}}});
        check(WIDGET, &live, [&ours, &json!({})], &json!({"spec": {"config": {"a": 1}}}), &["spec.config"]);
        check(WIDGET, &live, [&ours, &json!({})], &json!({"spec": {"config": {}}}), &[]);
        check(WIDGET, &live, [&ours, &json!({})], &json!({"spec": {}}), &[]);
    }
}
