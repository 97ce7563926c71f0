//! Finds the fields of manual changes that a write keeps. Pure.
//!
//! A manual change of a declared field takes the field from us. If the data drops the field before the next write,
//! server-side apply keeps it: the manager of the manual change is its only owner.

use super::legacy::{is_overruled, writes_whole_objects};
use super::{FieldPath, FieldSet, ListTypes, ManagedFieldsEntry, display_path};
use crate::error::ConflictingManager;
use serde_json::Value;

/// The managers of manual changes, with their fields that are not declared and that exist in `after`, the object
/// after the write. Only fields beside those that `manager` owns or declares are listed.
pub(super) fn kept_fields(
    after: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> Vec<ConflictingManager> {
    let is_manual = |entry: &&ManagedFieldsEntry| {
        let name = entry.manager.as_str();
        !entry.is_applied && name != manager && is_overruled(name) && !writes_whole_objects(name)
    };
    let manual: Vec<&ManagedFieldsEntry> = entries.iter().filter(is_manual).collect();
    if manual.is_empty() {
        return Vec::new();
    }
    let lists = ListTypes::of_write(after, entries, declared);
    let mut ours = FieldSet::declared(declared, &lists);
    for entry in entries.iter().filter(|entry| entry.manager == manager) {
        ours.0.extend(entry.fields.0.iter().cloned());
    }
    let existing = FieldSet::declared(after, &lists);
    let is_kept = |path: &FieldPath| {
        let is_beside_ours = path.len() > 1 && ours.contains_below(&path[..path.len() - 1]);
        is_beside_ours && !ours.contains_below(path) && existing.contains_below(path)
    };
    let kept = manual.into_iter().filter_map(|entry| {
        let mut fields: Vec<&FieldPath> = Vec::new();
        for path in entry.fields.0.iter().filter(|path| is_kept(path)) {
            if !fields.last().is_some_and(|last| path.starts_with(last)) {
                fields.push(path);
            }
        }
        let fields: Vec<String> =
            fields.into_iter().map(|path| format!("`{}`", display_path(path))).collect();
        let manager = entry.manager.clone();
        (!fields.is_empty()).then_some(ConflictingManager { manager, fields, excludes: None })
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::kept_fields;
    use crate::fields::{FieldSet, ManagedFieldsEntry};

    #[track_caller]
    fn check(manager: &str, after: &Value, fields: &Value, expect: &[&str]) {
        let entry = |manager: &str, is_applied: bool, fields: &Value| ManagedFieldsEntry {
            manager: manager.to_owned(),
            is_applied,
            fields: FieldSet::of(fields),
        };
        let ours = json!({"data": {"a": "1"}, "spec": {"env": [{"name": "A", "value": "1"}]}});
        let entries = [entry("qontract", true, &ours), entry(manager, false, fields)];
        let kept = kept_fields(after, &entries, "qontract", &json!({"data": {"a": "1"}}));
        assert_eq!(kept.into_iter().flat_map(|one| one.fields).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn fields_of_manual_changes_beside_ours_are_kept() {
        let manual = json!({"data": {"a": "2", "b": "2"}, "other": {"c": 1}});
        check("kubectl-edit", &manual, &manual, &["`data.b`"]);
        check("kubectl-edit", &json!({"data": {"a": "2"}}), &manual, &[]);
        check("helm", &manual, &manual, &[]);
        check("kubectl-create", &manual, &manual, &[]);
        let item = json!({"spec": {"env": [{"name": "B", "value": "2"}]}});
        check("kubectl-set", &item, &item, &["`spec.env[B]`"]);
    }
}
