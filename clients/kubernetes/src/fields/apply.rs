//! Server-side apply on values: removes fields that a manager declared before and no longer declares, and
//! keeps fields of other managers. Pure.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::exclusion::ExcludingField;
use super::item_index::ItemIndex;
use super::lists::field_name;
use super::removal::remove;
use super::residue::residue;
use super::{FieldPath, FieldSet, ListTypes, ManagedFieldsEntry, display_path, is_overruled};
use crate::error::ConflictingManager;

/// The object and its entries after `manager` applied `declared` to `live`. Fails with the managers that own
/// fields which the apply would change.
pub(crate) fn apply(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> Result<(Value, Vec<ManagedFieldsEntry>), Vec<ConflictingManager>> {
    let lists = ListTypes::of_write(live, entries, declared);
    let wanted = FieldSet::declared(declared, &lists);
    let is_own = |entry: &ManagedFieldsEntry| entry.manager == manager && entry.is_applied;
    let (own, mut others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_own);
    let conflicts = find_conflicts(live, &mut others, declared, &wanted);
    if !conflicts.refused.is_empty() {
        return Err(conflicts.refused);
    }
    let all: Vec<ManagedFieldsEntry> = own.into_iter().chain(others.iter().cloned()).collect();
    let (object, wanted) = merge_applied(live, &all, manager, declared);
    others.retain(|entry| !entry.fields.0.is_empty());
    others.push(ManagedFieldsEntry { manager: manager.to_owned(), is_applied: true, fields: wanted });
    others.sort();
    Ok((object, others))
}

/// The result of [`apply`], without the residue that server-side apply leaves behind.
pub(crate) fn apply_without_residue(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> Result<(Value, Vec<ManagedFieldsEntry>), Vec<ConflictingManager>> {
    let residue = residue(live, entries, manager, declared);
    if !residue.refused.is_empty() {
        return Err(residue.refused);
    }
    let (mut object, mut after) = apply(live, entries, manager, declared)?;
    residue.remove_from(&mut object);
    residue.remove_owners(&mut after);
    Ok((object, after))
}

/// The object after `manager` applied `declared` to `live`, and the fields that `manager` then owns.
/// Conflicting managers are overruled.
pub(super) fn merge_applied(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> (Value, FieldSet) {
    let lists = ListTypes::of_write(live, entries, declared);
    let wanted = FieldSet::declared(declared, &lists);
    let mut object = live.clone();
    merge(&mut object, declared, &mut Vec::new(), &lists);
    let (mut before, mut retained) = (FieldSet::default(), wanted.clone());
    for entry in entries {
        let side = if entry.manager == manager && entry.is_applied { &mut before } else { &mut retained };
        side.0.extend(entry.fields.0.iter().cloned());
    }
    // The deepest paths come first, so that an item of a list is removed after its fields.
    let removed: Vec<&FieldPath> =
        before.0.iter().rev().filter(|path| is_released(path, &retained)).collect();
    remove(&mut object, &removed, 0, &retained);
    (object, wanted)
}

/// The other managers that own fields which a write changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldConflicts {
    /// Managers whose fields must not be overruled: the write is refused.
    pub refused: Vec<ConflictingManager>,
    /// Managers whose fields exclude declared fields and are not removed: the write is refused.
    pub excluding: Vec<ConflictingManager>,
    /// Managers whose fields become ours, unless the write is refused.
    pub overruled: Vec<ConflictingManager>,
    /// Fields that exclude declared fields and are removed, unless the write is refused.
    pub removed: Vec<ExcludingField>,
    /// Managers of manual changes whose fields are not declared and stay.
    pub kept: Vec<ConflictingManager>,
}

/// The conflicts of a write of `declared` to `live` by `manager`.
pub(super) fn conflicts(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    manager: &str,
    declared: &Value,
) -> FieldConflicts {
    let lists = ListTypes::of_write(live, entries, declared);
    let wanted = FieldSet::declared(declared, &lists);
    let mut others: Vec<_> = entries.iter().filter(|entry| entry.manager != manager).cloned().collect();
    find_conflicts(live, &mut others, declared, &wanted)
}

/// Finds the conflicts, and removes the changed fields from managers that may be overruled.
fn find_conflicts(
    live: &Value,
    others: &mut [ManagedFieldsEntry],
    declared: &Value,
    wanted: &FieldSet,
) -> FieldConflicts {
    let (mut refused, mut overruled) = (BTreeMap::new(), BTreeMap::new());
    for other in others {
        let shared = other.fields.0.intersection(&wanted.0);
        let shared: Vec<&FieldPath> = shared.filter(|path| !ends_in_item(path)).collect();
        let mut changed: Vec<&FieldPath> = Vec::new();
        find_changed([Some(live), Some(declared)], &shared, 0, &mut changed);
        let changed: Vec<FieldPath> = changed.into_iter().cloned().collect();
        if changed.is_empty() {
            continue;
        }
        let side = if is_overruled(&other.manager) {
            for path in &changed {
                other.fields.0.remove(path);
            }
            &mut overruled
        } else {
            &mut refused
        };
        let fields: &mut Vec<String> = side.entry(other.manager.clone()).or_default();
        fields.extend(changed.iter().map(|path| format!("`{}`", display_path(path))));
    }
    let managers = |side: BTreeMap<String, Vec<String>>| {
        side.into_iter()
            .map(|(manager, fields)| ConflictingManager { manager, fields, excludes: None })
            .collect()
    };
    FieldConflicts { refused: managers(refused), overruled: managers(overruled), ..FieldConflicts::default() }
}

/// Whether a path that is no longer declared is removed. A list item is kept only if another manager owns the item:
/// a manager that owns only fields in it, such as one that changed a field, loses them with the item.
fn is_released(path: &FieldPath, retained: &FieldSet) -> bool {
    if ends_in_item(path) { !retained.0.contains(path) } else { !retained.contains_below(path) }
}

fn ends_in_item(path: &[String]) -> bool {
    path.last().is_some_and(|last| !last.starts_with("f:"))
}

/// Adds to `changed` those of `paths` at which the two sides differ. The paths are sorted and share their
/// first `depth` parts; `sides` are the values at these parts. Therefore, each list on the way is indexed
/// only once.
fn find_changed<'a>(
    sides: [Option<&Value>; 2],
    paths: &[&'a FieldPath],
    depth: usize,
    changed: &mut Vec<&'a FieldPath>,
) {
    if sides == [None; 2] {
        return;
    }
    let (here, below) = paths.split_at(paths.iter().take_while(|path| path.len() == depth).count());
    if sides[0] != sides[1] {
        changed.extend(here);
    }
    let mut indexes: [ItemIndex; 2] = Default::default();
    for group in below.chunk_by(|one, other| one[depth] == other[depth]) {
        let part = &group[0][depth];
        let [live, declared] = &mut indexes;
        let sides = [child(sides[0], part, live), child(sides[1], part, declared)];
        find_changed(sides, group, depth + 1, changed);
    }
}

/// The value at a part of a path.
fn child<'a>(value: Option<&'a Value>, part: &str, index: &mut ItemIndex) -> Option<&'a Value> {
    match (value?, field_name(part)) {
        (value, Some(key)) => value.get(key),
        (value, None) => index.find(value.as_array()?, part),
    }
}

/// Merges the declared value into the live value.
fn merge(live: &mut Value, declared: &Value, path: &mut Vec<String>, lists: &ListTypes) {
    match (live, declared) {
        (live, declared) if lists.is_atomic_map(path) => live.clone_from(declared),
        (Value::Object(live), Value::Object(declared)) if !declared.is_empty() => {
            for (key, value) in declared {
                path.push(format!("f:{key}"));
                merge(live.entry(key.clone()).or_insert(Value::Null), value, path, lists);
                path.pop();
            }
        }
        // Declaring an empty map means that the map exists, not that it is empty.
        (Value::Object(_), Value::Object(_)) => {}
        (Value::Array(live), Value::Array(declared)) => {
            let Some((parts, live_parts)) = lists.parts(path, declared).zip(lists.parts(path, live)) else {
                live.clone_from(declared);
                return;
            };
            let positions: HashMap<String, usize> = live_parts.into_iter().zip(0..).collect();
            for (part, item) in parts.into_iter().zip(declared) {
                let found = positions.get(&part);
                path.push(part);
                match found {
                    Some(index) => merge(&mut live[*index], item, path, lists),
                    None => live.push(item.clone()),
                }
                path.pop();
            }
        }
        (live, declared) => *live = declared.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ManagedFieldsEntry, apply};
    use crate::fields::FieldSet;

    fn entry(manager: &str, is_applied: bool, fields: &Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry { manager: manager.to_owned(), is_applied, fields: FieldSet::of(fields) }
    }

    #[track_caller]
    fn check(live: &Value, entries: &[ManagedFieldsEntry], declared: &Value, expect: Result<&Value, &str>) {
        let applied = apply(live, entries, "qontract", declared)
            .map_err(|contenders| contenders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        let object = applied.as_ref().map(|(object, _)| object).map_err(String::as_str);
        assert_eq!(object, expect);
        if let Ok((object, entries)) = &applied {
            let again = apply(object, entries, "qontract", declared).unwrap();
            assert_eq!((&again.0, &again.1), (object, entries), "applying twice equals applying once");
        }
    }

    #[test]
    fn fields_that_are_no_longer_declared_are_removed_and_others_stay() {
        let ours = entry(
            "qontract",
            true,
            &json!({"data": {"a": "1", "b": "2"}, "metadata": {"labels": {"x": "y"}}}),
        );
        check(
            &json!({"data": {"a": "1", "b": "2", "c": "3"}, "metadata": {"name": "n", "labels": {"x": "y"}}}),
            &[ours],
            &json!({"data": {"a": "0"}}),
            Ok(&json!({"data": {"a": "0", "c": "3"}, "metadata": {"name": "n"}})),
        );
    }

    #[test]
    fn shared_fields_stay() {
        let both = json!({"data": {"a": "1"}});
        let entries = [entry("qontract", true, &both), entry("helm", true, &both)];
        check(&both, &entries, &json!({}), Ok(&both));
    }

    #[test]
    fn fields_of_others_are_not_changed() {
        let live = json!({"data": {"a": "1", "b": "2"}});
        let others = [entry("helm", true, &live)];
        check(&live, &others, &json!({"data": {"a": "0", "b": "2"}}), Err("`helm` owns `data.a`"));
        check(&live, &others, &json!({"data": {"a": "1"}}), Ok(&live));
    }

    #[test]
    fn manual_changes_of_declared_fields_are_reverted() {
        let live = json!({"data": {"a": "1", "b": "2"}});
        let others = [entry("kubectl-edit", false, &live)];
        let expect = json!({"data": {"a": "0", "b": "2"}});
        check(&live, &others, &json!({"data": {"a": "0"}}), Ok(&expect));
    }

    #[test]
    fn named_items_are_added_and_removed_individually() {
        let live = json!({"spec": {"containers": [{"name": "web", "image": "1", "tty": true}, {"name": "side", "image": "2"},
            {"name": "injected", "image": "3"}]}});
        let ours =
            json!({"spec": {"containers": [{"name": "web", "image": "1"}, {"name": "side", "image": "2"}]}});
        let declared =
            json!({"spec": {"containers": [{"name": "web", "image": "4"}, {"name": "new", "image": "5"}]}});
        let expect = json!({"spec": {"containers": [{"name": "web", "image": "4", "tty": true},
            {"name": "injected", "image": "3"}, {"name": "new", "image": "5"}]}});
        check(&live, &[entry("qontract", true, &ours)], &declared, Ok(&expect));
    }

    #[test]
    fn other_lists_are_atomic() {
        let live = json!({"subjects": [{"name": "a"}, {"name": "b"}]});
        let declared = json!({"subjects": [{"name": "a"}]});
        check(&live, &[entry("qontract", true, &live)], &declared, Ok(&declared));
    }

    #[test]
    fn a_value_may_become_a_map() {
        let declared = json!({"a": {"b": 1}});
        check(&json!({"a": 1}), &[entry("qontract", true, &json!({"a": 1}))], &declared, Ok(&declared));
        check(&declared, &[entry("qontract", true, &declared)], &json!({"a": 1}), Ok(&json!({"a": 1})));
    }
}
