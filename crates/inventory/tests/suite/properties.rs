//! Properties on random objects: additions to a written object are tolerated, and removals and changes are
//! detected.

use std::collections::BTreeSet;

use qontract_inventory::{
    Callers, DesiredBody, Disclosure, LiveBody, ObjectComparison, ObjectIntent, Owner, PresentIntent,
    Replacement, Verdict, compare, decide, to_write,
};
use qontract_testkit::SeededRng;
use serde_json::{Map, Value, json};

const SEEDS: u64 = 400;

/// Kinds with special rules, and one without.
const KINDS: [(&str, &str); 8] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("route.openshift.io/v1", "Route"),
    ("v1", "LimitRange"),
    ("example.com/v1", "Widget"),
];

fn key(chance: &mut SeededRng) -> String {
    let keys = [
        "alpha",
        "beta",
        "gamma",
        "requests",
        "limits",
        "ports",
        "env",
        "containers",
        "initContainers",
        "a.b/c",
    ];
    keys[chance.below(keys.len())].to_owned()
}

fn scalar(chance: &mut SeededRng) -> Value {
    match chance.below(5) {
        0 => json!(chance.percent(50)),
        1 => json!(chance.below(1000)),
        2 => json!(format!("{}m", chance.below(1000))),
        3 => json!(0.5),
        _ => json!(format!("text {}", chance.below(1000))),
    }
}

/// A value that is not empty.
fn value(chance: &mut SeededRng, depth: usize) -> Value {
    match (depth, chance.below(4)) {
        (0, _) | (_, 0) => scalar(chance),
        (_, 1) => {
            let named = chance.percent(70);
            let item = |index: usize, chance: &mut SeededRng| {
                let mut item = value(chance, depth - 1);
                if let (true, Some(map)) = (named, item.as_object_mut()) {
                    map.insert("name".to_owned(), format!("item-{index}").into());
                }
                item
            };
            (0..=chance.below(3)).map(|index| item(index, chance)).collect()
        }
        _ => {
            let keys = (0..=chance.below(3)).map(|_| key(chance)).collect::<Vec<_>>();
            Value::Object(keys.into_iter().map(|key| (key, value(chance, depth - 1))).collect())
        }
    }
}

fn map(chance: &mut SeededRng) -> Value {
    let keys = (0..=chance.below(3)).map(|_| key(chance)).collect::<Vec<_>>();
    Value::Object(keys.into_iter().map(|key| (key, value(chance, 3))).collect())
}

fn object(chance: &mut SeededRng) -> DesiredBody {
    let (version, kind) = KINDS[chance.below(KINDS.len())];
    let mut body =
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "labels": {"app": "a"}}});
    body[if chance.percent(50) { "data" } else { "spec" }] = map(chance);
    DesiredBody::new(body).unwrap()
}

/// Additions of a cluster and of others: fields everywhere, and items at the end of lists.
fn add(value: &mut Value, chance: &mut SeededRng) {
    match value {
        Value::Object(map) => {
            for child in map.values_mut() {
                add(child, chance);
            }
            if chance.percent(50) {
                map.insert(format!("added{}", chance.below(9)), scalar(chance));
            }
        }
        Value::Array(items) => {
            for child in items.iter_mut() {
                add(child, chance);
            }
            if chance.percent(50) {
                items.push(json!({"name": "added", "x": 1}));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn with_additions(written: Value, chance: &mut SeededRng) -> Value {
    let mut live = written;
    for part in ["data", "spec"] {
        if let Some(part) = live.get_mut(part) {
            add(part, chance);
        }
    }
    live["status"] = map(chance);
    live["metadata"]["uid"] = "1".into();
    live["metadata"]["namespace"] = "b".into();
    live["metadata"]["labels"]["added"] = "x".into();
    live["metadata"]["annotations"]["added"] = "x".into();
    live
}

/// The pointers of all scalars.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                leaves(child, &format!("{at}/{}", escaped(key)), found);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                leaves(child, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => found.push(at.to_owned()),
    }
}

/// Removes the value at a pointer.
fn remove_at(object: &mut Value, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Object(map) => drop(map.remove(&key.replace("~1", "/").replace("~0", "~"))),
        Value::Array(items) => drop(items.remove(key.parse().unwrap())),
        other => panic!("{other} has no parts"),
    }
}

fn owner() -> Owner {
    Owner::of("openshift-resources", Some("one".to_owned())).unwrap()
}

fn verdict(desired: &DesiredBody, live: &LiveBody) -> Verdict {
    let wanted = ObjectIntent::Present(PresentIntent {
        body: desired,
        moved_from: &BTreeSet::new(),
        disclosure: Disclosure::Everything,
        replacement: Replacement::WithoutPods,
    });
    decide(&owner(), &Callers::Unknown, wanted, Some(live))
}

#[test]
fn additions_to_a_written_object_are_tolerated() {
    for seed in 0..SEEDS {
        let chance = &mut SeededRng::new(seed);
        let desired = object(chance);
        let written = to_write(&desired, None, &owner(), "2024-05-01T12:00:00");
        assert_eq!(verdict(&desired, &LiveBody::new(written.clone())), Verdict::Keep, "seed {seed}");
        let live = LiveBody::new(with_additions(written, chance));
        assert_eq!(
            compare(&desired, &live, Disclosure::Everything),
            ObjectComparison::Equal,
            "seed {seed}: {} {}",
            desired.body(),
            live.body()
        );
        assert_eq!(verdict(&desired, &live), Verdict::Keep, "seed {seed}");
    }
}

#[test]
fn removals_and_changes_are_detected() {
    let mut compared = 0;
    for seed in 0..SEEDS {
        let chance = &mut SeededRng::new(seed);
        let desired = object(chance);
        let live = with_additions(to_write(&desired, None, &owner(), "2024-05-01T12:00:00"), chance);
        let mut places = Vec::new();
        for part in ["data", "spec", "metadata"] {
            if let Some(value) = desired.body().get(part) {
                leaves(value, &format!("/{part}"), &mut places);
            }
        }
        for place in places {
            let mut without = live.clone();
            remove_at(&mut without, &place);
            let mut other = live.clone();
            *other.pointer_mut(&place).unwrap() = "something else".into();
            for changed in [without, other] {
                let found = compare(&desired, &LiveBody::new(changed.clone()), Disclosure::Everything);
                assert!(
                    matches!(found, ObjectComparison::Differs(_)),
                    "seed {seed}: {place} of {} in {changed}",
                    desired.body()
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn values_of_a_sensitive_object_are_not_printed() {
    for seed in 0..SEEDS {
        let chance = &mut SeededRng::new(seed);
        let desired = object(chance);
        let other = LiveBody::new(
            json!({"apiVersion": "v1", "kind": desired.kind(), "metadata": {"name": "b"}, "data": map(chance)}),
        );
        let printed = format!("{:?}", compare(&desired, &other, Disclosure::Paths));
        assert!(!printed.contains("text ") && !printed.contains("Shown"), "seed {seed}: {printed}");
    }
}

#[test]
fn the_hash_does_not_depend_on_the_order_of_fields() {
    for seed in 0..SEEDS {
        let desired = object(&mut SeededRng::new(seed));
        let mut turned = Map::new();
        for (key, value) in desired.body().as_object().unwrap().iter().rev() {
            turned.insert(key.clone(), value.clone());
        }
        assert_eq!(DesiredBody::new(Value::Object(turned)).unwrap().canonical(), desired.canonical());
    }
}
