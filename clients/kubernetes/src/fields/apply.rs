//! Server-side apply on values: what a manager declared before and does not declare now goes, what others own stays. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::lists::{is_key, position};
use super::{Entry, FieldSet, ListTypes, is_overruled, shown};
use crate::error::Contender;

/// The object and its entries after `manager` applied `declared` onto `live`; or who else owns fields that it would change.
pub(crate) fn apply(
    live: &Value,
    entries: &[Entry],
    manager: &str,
    declared: &Value,
) -> Result<(Value, Vec<Entry>), Vec<Contender>> {
    let lists = ListTypes::of(entries.iter().map(|entry| &entry.fields));
    let wanted = FieldSet::declared(declared, &lists);
    let is_own = |entry: &Entry| entry.manager == manager && entry.is_applied;
    let (own, mut others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_own);
    contend(live, &mut others, declared, &wanted)?;
    let all: Vec<Entry> = own.into_iter().chain(others.iter().cloned()).collect();
    let (object, wanted) = merged(live, &all, manager, declared);
    others.retain(|entry| !entry.fields.0.is_empty());
    others.push(Entry { manager: manager.to_owned(), is_applied: true, fields: wanted });
    others.sort();
    Ok((object, others))
}

/// The object after `manager` applied `declared` onto `live`, and what it owns then; managers that stand against it are overruled.
pub(super) fn merged(live: &Value, entries: &[Entry], manager: &str, declared: &Value) -> (Value, FieldSet) {
    let lists = ListTypes::of(entries.iter().map(|entry| &entry.fields));
    let wanted = FieldSet::declared(declared, &lists);
    let mut object = live.clone();
    merge(&mut object, declared, &mut Vec::new(), &lists);
    let (mut before, mut kept) = (FieldSet::default(), wanted.clone());
    for entry in entries {
        let side = if entry.manager == manager && entry.is_applied { &mut before } else { &mut kept };
        side.0.extend(entry.fields.0.iter().cloned());
    }
    // The deepest come first: an item of a list goes after what is in it.
    for path in before.0.iter().rev().filter(|path| !kept.reaches(path)) {
        remove(&mut object, path, &mut Vec::new(), &kept);
    }
    (object, wanted)
}

/// Takes from those who may be overruled what is to change; tells the others.
fn contend(
    live: &Value,
    others: &mut [Entry],
    declared: &Value,
    wanted: &FieldSet,
) -> Result<(), Vec<Contender>> {
    let mut contenders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for other in others {
        let changes = |path: &&Vec<String>| find(live, path) != find(declared, path);
        let shared = other.fields.0.intersection(&wanted.0);
        let changed: Vec<_> = shared.filter(|path| !ends_in_item(path)).filter(changes).cloned().collect();
        if is_overruled(&other.manager) {
            for path in &changed {
                other.fields.0.remove(path);
            }
        } else if !changed.is_empty() {
            let fields = contenders.entry(other.manager.clone()).or_default();
            fields.extend(changed.iter().map(|path| format!("`{}`", shown(path))));
        }
    }
    if contenders.is_empty() {
        return Ok(());
    }
    Err(contenders.into_iter().map(|(manager, fields)| Contender { manager, fields }).collect())
}

fn ends_in_item(path: &[String]) -> bool {
    path.last().is_some_and(|last| !last.starts_with("f:"))
}

/// What is at a path.
fn find<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, part| match part.split_once(':')? {
        ("f", key) => value.get(key),
        _ => value.as_array().and_then(|items| items.get(position(items, part)?)),
    })
}

/// Puts what is declared over what is there.
fn merge(live: &mut Value, declared: &Value, path: &mut Vec<String>, lists: &ListTypes) {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) if !declared.is_empty() => {
            for (key, value) in declared {
                path.push(format!("f:{key}"));
                merge(live.entry(key.clone()).or_insert(Value::Null), value, path, lists);
                path.pop();
            }
        }
        // An empty map says that there is a map, not that there is nothing in it.
        (Value::Object(_), Value::Object(_)) => {}
        (Value::Array(live), Value::Array(declared)) => {
            let parts = lists.parts(path, declared).filter(|_| lists.parts(path, live).is_some());
            let Some(parts) = parts else {
                live.clone_from(declared);
                return;
            };
            for (part, item) in parts.into_iter().zip(declared) {
                let found = position(live, &part);
                path.push(part);
                match found {
                    Some(index) => merge(&mut live[index], item, path, lists),
                    None => live.push(item.clone()),
                }
                path.pop();
            }
        }
        (live, declared) => *live = declared.clone(),
    }
}

/// Removes what is at `rest` below `value`, which is at `path`; and maps and lists that are empty because of it.
fn remove(value: &mut Value, rest: &[String], path: &mut Vec<String>, kept: &FieldSet) {
    let Some((part, below)) = rest.split_first() else { return };
    path.push(part.clone());
    let is_done = |value: &Value, path: &[String]| {
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        below.is_empty() || is_empty && !kept.reaches(path)
    };
    match (value, part.split_once(':')) {
        (Value::Object(map), Some(("f", key))) => {
            if let Some(inner) = map.get_mut(key) {
                remove(inner, below, path, kept);
                if is_done(inner, path) {
                    map.remove(key);
                }
            }
        }
        (Value::Array(items), Some(("k" | "v", _))) => {
            if let Some(index) = position(items, part) {
                // What names the item stays as long as the item does: without it the item could not be found.
                let is_name = below.len() == 1 && is_key(part, &below[0]);
                if !is_name {
                    remove(&mut items[index], below, path, kept);
                }
                if !is_name && is_done(&items[index], path) {
                    items.remove(index);
                }
            }
        }
        _ => {}
    }
    path.pop();
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Entry, apply};
    use crate::fields::FieldSet;

    fn entry(manager: &str, is_applied: bool, fields: &Value) -> Entry {
        Entry { manager: manager.to_owned(), is_applied, fields: FieldSet::of(fields) }
    }

    #[track_caller]
    fn check(live: &Value, entries: &[Entry], declared: &Value, expect: Result<&Value, &str>) {
        let applied = apply(live, entries, "qontract", declared)
            .map_err(|contenders| contenders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        let object = applied.as_ref().map(|(object, _)| object).map_err(String::as_str);
        assert_eq!(object, expect);
        if let Ok((object, entries)) = &applied {
            let again = apply(object, entries, "qontract", declared).unwrap();
            assert_eq!((&again.0, &again.1), (object, entries), "twice is as once");
        }
    }

    #[test]
    fn what_was_declared_and_is_not_any_more_goes_and_the_rest_stays() {
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
    fn what_others_own_too_stays() {
        let both = json!({"data": {"a": "1"}});
        let entries = [entry("qontract", true, &both), entry("helm", true, &both)];
        check(&both, &entries, &json!({}), Ok(&both));
    }

    #[test]
    fn what_others_own_is_not_changed() {
        let live = json!({"data": {"a": "1", "b": "2"}});
        let others = [entry("helm", true, &live)];
        check(&live, &others, &json!({"data": {"a": "0", "b": "2"}}), Err("`helm` owns `data.a`"));
        check(&live, &others, &json!({"data": {"a": "1"}}), Ok(&live));
    }

    #[test]
    fn what_was_changed_by_hand_is_put_right() {
        let live = json!({"data": {"a": "1", "b": "2"}});
        let others = [entry("kubectl-edit", false, &live)];
        let expect = json!({"data": {"a": "0", "b": "2"}});
        check(&live, &others, &json!({"data": {"a": "0"}}), Ok(&expect));
    }

    #[test]
    fn items_with_names_come_and_go_alone() {
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
    fn other_lists_are_one_value() {
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
