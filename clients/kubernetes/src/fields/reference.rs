//! A naive implementation of server-side apply: every path is looked up separately, by a scan of each list on
//! the way. Tests apply random inputs with it and with [`apply`](super::apply) and compare the results.

use std::collections::BTreeMap;

use qontract_testkit::SeededRng;
use serde_json::{Map, Value, json};

use super::item_index::tests::SCANNED_ITEMS;
use super::lists::{is_key, key_value};
use super::{FieldSet, ListTypes, ManagedFieldsEntry, apply, display_path, is_overruled};
use crate::error::ConflictingManager;

/// The position of the item that a path part identifies.
pub(super) fn position(items: &[Value], part: &str) -> Option<usize> {
    match part.split_once(':')? {
        ("k", keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            let has =
                |item: &Value| keys.iter().all(|(key, value)| key_value(item, key).as_ref() == Some(value));
            items.iter().position(has)
        }
        ("v", value) => {
            let value: Value = serde_json::from_str(value).ok()?;
            items.iter().position(|item| *item == value)
        }
        _ => None,
    }
}

fn find<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, part| match part.split_once(':')? {
        ("f", key) => value.get(key),
        _ => value.as_array().and_then(|items| items.get(position(items, part)?)),
    })
}

fn merge(live: &mut Value, declared: &Value, path: &mut Vec<String>, lists: &ListTypes) {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) if !declared.is_empty() => {
            for (key, value) in declared {
                path.push(format!("f:{key}"));
                merge(live.entry(key.clone()).or_insert(Value::Null), value, path, lists);
                path.pop();
            }
        }
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

fn remove(value: &mut Value, rest: &[String], path: &mut Vec<String>, retained: &FieldSet) {
    let Some((part, below)) = rest.split_first() else { return };
    path.push(part.clone());
    let is_done = |value: &Value, path: &[String]| {
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        below.is_empty() || is_empty && !retained.contains_below(path)
    };
    match (value, part.split_once(':')) {
        (Value::Object(map), Some(("f", key))) => {
            if let Some(inner) = map.get_mut(key) {
                remove(inner, below, path, retained);
                if is_done(inner, path) {
                    map.remove(key);
                }
            }
        }
        (Value::Array(items), Some(("k" | "v", _))) => {
            if let Some(index) = position(items, part) {
                let is_name = below.len() == 1 && is_key(part, &below[0]);
                if !is_name {
                    remove(&mut items[index], below, path, retained);
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

fn find_conflicts(
    live: &Value,
    others: &mut [ManagedFieldsEntry],
    declared: &Value,
    wanted: &FieldSet,
) -> Vec<ConflictingManager> {
    let mut contenders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for other in others {
        let changes = |path: &&Vec<String>| find(live, path) != find(declared, path);
        let is_field = |path: &&Vec<String>| path.last().is_none_or(|last| last.starts_with("f:"));
        let shared = other.fields.0.intersection(&wanted.0);
        let changed: Vec<_> = shared.filter(is_field).filter(changes).cloned().collect();
        if is_overruled(&other.manager) {
            other.fields.0.retain(|path| !changed.contains(path));
        } else if !changed.is_empty() {
            let fields = contenders.entry(other.manager.clone()).or_default();
            fields.extend(changed.iter().map(|path| format!("`{}`", display_path(path))));
        }
    }
    contenders
        .into_iter()
        .map(|(manager, fields)| ConflictingManager { manager, fields, excludes: None })
        .collect()
}

fn apply_naively(
    live: &Value,
    entries: &[ManagedFieldsEntry],
    declared: &Value,
) -> Result<(Value, Vec<ManagedFieldsEntry>), String> {
    let lists = ListTypes::of(entries.iter().map(|entry| &entry.fields));
    let wanted = FieldSet::declared(declared, &lists);
    let is_own = |entry: &ManagedFieldsEntry| entry.manager == "qontract" && entry.is_applied;
    let (own, mut others): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(is_own);
    let contenders = find_conflicts(live, &mut others, declared, &wanted);
    if !contenders.is_empty() {
        return Err(print(&contenders));
    }
    let lists = ListTypes::of(own.iter().chain(&others).map(|entry| &entry.fields));
    let wanted = FieldSet::declared(declared, &lists);
    let mut object = live.clone();
    merge(&mut object, declared, &mut Vec::new(), &lists);
    let mut before = FieldSet::default();
    for entry in &own {
        before.0.extend(entry.fields.0.iter().cloned());
    }
    let mut retained = wanted.clone();
    for entry in &others {
        retained.0.extend(entry.fields.0.iter().cloned());
    }
    let is_item = |path: &[String]| path.last().is_some_and(|last| !last.starts_with("f:"));
    let is_released = |path: &Vec<String>| {
        if is_item(path) { !retained.0.contains(path) } else { !retained.contains_below(path) }
    };
    for path in before.0.iter().rev().filter(|path| is_released(path)) {
        remove(&mut object, path, &mut Vec::new(), &retained);
    }
    others.retain(|entry| !entry.fields.0.is_empty());
    others.push(ManagedFieldsEntry { manager: "qontract".to_owned(), is_applied: true, fields: wanted });
    others.sort();
    Ok((object, others))
}

fn print(contenders: &[ConflictingManager]) -> String {
    contenders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The list types of [`body`].
fn list_types() -> FieldSet {
    let ports = json!({"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}});
    let containers = json!({"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:ports": ports}});
    FieldSet::read(
        &json!({"f:spec": {"f:containers": containers, "f:ports": ports, "f:set": {"v:\"a\"": {}}}}),
    )
}

/// Items with random numbers in random order, some of them twice.
fn items(
    chance: &mut SeededRng,
    repeats: usize,
    item: impl Fn(usize, &mut SeededRng) -> Value,
) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for number in 0..6 {
        for _ in 0..usize::from(chance.percent(60)) + usize::from(chance.percent(repeats)) {
            let item = item(number, chance);
            items.insert(chance.below(items.len() + 1), item);
        }
    }
    items
}

fn body(chance: &mut SeededRng, repeats: usize) -> Value {
    let port = |number: usize, chance: &mut SeededRng| match chance.below(4) {
        0 => json!({"port": number, "protocol": "UDP"}),
        1 => json!({"port": number, "protocol": "TCP", "target": chance.below(3)}),
        2 => json!({"port": number, "name": format!("p{}", chance.below(2))}),
        _ => json!({"port": number}),
    };
    let variable = |number: usize, chance: &mut SeededRng| {
        let mut variable = json!({"name": format!("V{number}")});
        if chance.percent(80) {
            variable["value"] = json!(chance.below(3));
        }
        variable
    };
    let container = |number: usize, chance: &mut SeededRng| {
        let mut container = json!({"name": format!("c{number}"), "image": chance.below(2)});
        if chance.percent(70) {
            container["env"] = json!(items(chance, repeats, variable));
        }
        if chance.percent(50) {
            container["ports"] = json!(items(chance, repeats, port));
        }
        container
    };
    let mut spec = Map::new();
    for key in ["containers", "ports", "set", "atomic", "map", "value"] {
        if chance.percent(20) {
            continue;
        }
        let value = match key {
            "containers" => json!(items(chance, repeats, container)),
            "ports" => json!(items(chance, repeats, port)),
            "set" => json!(items(chance, repeats, |number, _| json!(format!("s{number}")))),
            "atomic" => json!(items(chance, repeats, |_, chance| json!({"name": chance.below(3)}))),
            "map" => json!({"a": chance.below(2), "b": {}, "c": {"d": chance.below(2)}}),
            _ => json!(chance.below(2)),
        };
        spec.insert(key.to_owned(), value);
    }
    json!({"apiVersion": "v1", "kind": "X", "spec": spec})
}

#[test]
fn random_objects_are_applied_as_by_the_naive_implementation() {
    let types = list_types();
    let lists = ListTypes::of([&types].into_iter());
    let (mut applied, mut refused, mut removed) = (0, 0, 0);
    for seed in 0..300 {
        let chance = &mut SeededRng::new(seed);
        let repeats = [0, 0, 15][chance.below(3)];
        let live = body(chance, repeats);
        let mut entries = vec![ManagedFieldsEntry {
            manager: "types".to_owned(),
            is_applied: false,
            fields: types.clone(),
        }];
        let managers = [("qontract", true), ("qontract", true), ("helm", true), ("kubectl-edit", false)];
        for (manager, is_applied) in managers {
            let source = if chance.percent(60) { live.clone() } else { body(chance, repeats) };
            let mut fields = FieldSet::declared(&source, &lists);
            let share = if manager == "helm" { chance.below(15) } else { 20 + chance.below(80) };
            fields.0.retain(|_| chance.percent(share));
            entries.push(ManagedFieldsEntry { manager: manager.to_owned(), is_applied, fields });
        }
        let declared = if chance.percent(20) { json!({"kind": "X"}) } else { body(chance, repeats / 5) };
        let result = apply(&live, &entries, "qontract", &declared).map_err(|contenders| print(&contenders));
        assert_eq!(result, apply_naively(&live, &entries, &declared), "seed {seed}");
        match result {
            Ok((object, _)) => {
                applied += 1;
                removed += usize::from(object.to_string().len() < live.to_string().len());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(applied > 50 && refused > 50 && removed > 20, "{applied} {refused} {removed}");
}

#[test]
fn the_work_grows_with_the_length_of_a_list_and_not_with_its_square() {
    let variable = |number: usize, value: usize| json!({"name": format!("V{number}"), "value": value});
    let object = |range: std::ops::Range<usize>, value: usize| {
        let env: Vec<Value> = range.map(|number| variable(number, value)).collect();
        json!({"kind": "X", "spec": {"containers": [{"name": "c", "env": env}]}})
    };
    let count = 2_000;
    let live = object(0..count, 1);
    let entries = [("qontract", true), ("kubectl-edit", false)].map(|(manager, is_applied)| {
        let fields = FieldSet::of(&object(count / 4..count, 1));
        ManagedFieldsEntry { manager: manager.to_owned(), is_applied, fields }
    });
    let declared = object(count / 2..count, 2);
    SCANNED_ITEMS.set(0);
    let (after, _) = apply(&live, &entries[..1], "qontract", &declared).unwrap();
    assert_eq!(after["spec"]["containers"][0]["env"].as_array().unwrap().len(), count * 3 / 4);
    assert!(SCANNED_ITEMS.get() <= 2 * count, "{} items were scanned", SCANNED_ITEMS.get());
    SCANNED_ITEMS.set(0);
    apply(&live, &entries, "qontract", &declared).unwrap();
    assert!(SCANNED_ITEMS.get() <= 3 * count, "{} items were scanned", SCANNED_ITEMS.get());
}
