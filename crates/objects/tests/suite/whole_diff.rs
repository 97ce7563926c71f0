//! On random objects: exactly the fields that a diff shows as removed are gone after the write, however the
//! object was written before.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use qontract_access::{Mode, Permits};
use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, MANAGER, Object, ObjectAddress, ObjectDraft, ObjectReader as _,
    ObjectWriter as _, Sandbox, WritePrecondition,
};
use qontract_inventory::{DesiredBody, DifferenceSide, Disclosure, LiveBody, LiveWriter, ObjectWrite, diff};
use qontract_testkit::{Scratch, SeededRng, chaos_count, permits};
use serde_json::{Map, Value, json};

const SEEDS: u64 = 150;

fn map(chance: &mut SeededRng, depth: usize) -> Value {
    let mut map = Map::new();
    for number in 0..=chance.below(5) {
        let value = match chance.below(if depth == 0 { 2 } else { 5 }) {
            0 | 1 => json!(chance.below(9)),
            2 => json!((0..=chance.below(3)).map(|item| format!("item {item}")).collect::<Vec<_>>()),
            3 => {
                let container = |number: usize, chance: &mut SeededRng| {
                    let mut item = self::map(chance, depth - 1);
                    item["name"] = format!("c{number}").into();
                    item
                };
                let items: Vec<Value> =
                    (0..=chance.below(3)).map(|number| container(number, chance)).collect();
                map.insert("containers".to_owned(), json!(items));
                continue;
            }
            _ => self::map(chance, depth - 1),
        };
        map.insert(format!("k{number}"), value);
    }
    Value::Object(map)
}

/// The next declaration: fields and items are dropped, scalars change, fields are added.
fn next(value: &Value, chance: &mut SeededRng) -> Value {
    match value {
        Value::Object(map) => {
            let kept = |(key, value): (&String, &Value)| {
                let is_dropped = key != "name" && chance.percent(25);
                (!is_dropped).then(|| (key.clone(), next(value, chance)))
            };
            let mut map: Map<String, Value> = map.iter().filter_map(kept).collect();
            if chance.percent(30) {
                map.insert("new".to_owned(), json!("new"));
            }
            Value::Object(map)
        }
        Value::Array(items) => {
            let kept = |item: &Value| (!chance.percent(30)).then(|| item.clone());
            let items: Vec<Value> = items.iter().filter_map(kept).collect();
            Value::Array(items)
        }
        Value::Number(_) if chance.percent(30) => json!(chance.below(9)),
        other => other.clone(),
    }
}

/// Adds fields without an owner, as a server does, to maps in maps.
fn add_defaults(value: &mut Value, chance: &mut SeededRng) {
    for inner in value.as_object_mut().into_iter().flat_map(Map::values_mut).filter(|inner| inner.is_object())
    {
        if chance.percent(50) {
            inner["default"] = json!("by a server");
        }
        add_defaults(inner, chance);
    }
}

/// The paths of values in `before` that are not in `after`, as a diff prints them.
fn gone(before: &Value, after: Option<&Value>, path: &str, paths: &mut BTreeSet<String>) {
    match before {
        value if is_nothing(value) => {}
        Value::Object(map) => {
            for (key, value) in map {
                gone(value, after.and_then(|after| after.get(key)), &format!("{path}.{key}"), paths);
            }
        }
        Value::Array(items) => {
            let rest: &[Value] = after.and_then(Value::as_array).map_or(&[], Vec::as_slice);
            for (index, item) in items.iter().enumerate() {
                let name = item["name"].as_str();
                let same = |other: &&Value| name.map_or(*other == item, |name| other["name"] == name);
                let label = name.map_or_else(|| index.to_string(), str::to_owned);
                let path = format!("{path}[{label}]");
                match rest.iter().find(same) {
                    Some(other) if name.is_some() => gone(item, Some(other), &path, paths),
                    Some(_) => {}
                    None => drop(paths.insert(path)),
                }
            }
        }
        _ if after.is_none_or(is_nothing) => drop(paths.insert(path.to_owned())),
        _ => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

struct DiffFixture {
    scratch: Scratch,
    sandbox: Sandbox,
    permits: Permits,
    cluster: Cluster,
}

impl DiffFixture {
    fn new() -> Self {
        let scratch = Scratch::new();
        let sandbox = Sandbox::new(scratch.path());
        let cluster = Cluster { name: "c".to_owned(), server: String::new(), token: None };
        let fixture = Self { scratch, sandbox, permits: permits(Mode::Real), cluster };
        fixture.put(
            MANAGER,
            &ObjectAddress::cluster_scoped(Kind::namespace(), "n"),
            json!({}),
            WritePrecondition::Absent,
        );
        fixture
    }

    fn put(&self, manager: &str, address: &ObjectAddress, body: Value, onto: WritePrecondition) {
        let draft = ObjectDraft { address: address.clone(), body, precondition: onto, is_sensitive: false };
        let write = self.permits.write.as_ref().unwrap();
        self.sandbox.put(write, &self.cluster, manager, &draft).now_or_never().unwrap().unwrap();
    }

    fn get(&self, address: &ObjectAddress) -> Object {
        let got = self.sandbox.get(&self.permits.read, &self.cluster, address).now_or_never().unwrap();
        got.unwrap().unwrap()
    }

    /// Creates an object that we or another tool wrote, and to which another manager may have added fields.
    fn start(&self, address: &ObjectAddress, first: &Value, chance: &mut SeededRng) {
        match chance.below(4) {
            0 => {
                let mut body = first.clone();
                let annotations =
                    json!({"kubectl.kubernetes.io/last-applied-configuration": first.to_string()});
                body["metadata"]["annotations"] = annotations;
                body["spec"]["added"] = json!("by a server");
                add_defaults(&mut body["spec"], chance);
                self.scratch
                    .write(&format!("clusters/c/n/ConfigMap/{}.yaml", address.name), body.to_string());
            }
            1 => self.put("kubectl-create", address, first.clone(), WritePrecondition::Absent),
            _ => self.put(MANAGER, address, first.clone(), WritePrecondition::Absent),
        }
        if chance.percent(50) {
            let live = self.get(address);
            let mut shared = first.clone();
            shared["spec"] = json!({"helm": 1, "k0": first["spec"]["k0"]});
            if shared["spec"]["k0"].is_null() {
                shared["spec"] = json!({"helm": 1});
            }
            self.put("helm", address, shared, WritePrecondition::Version(live.version, FieldOwnership::Ours));
        }
    }
}

#[test]
fn fields_shown_as_removed_are_gone_after_the_write() {
    let fixture = DiffFixture::new();
    let (mut removed, mut written, mut rewritten) = (0, 0, 0);
    for seed in 0..chaos_count(SEEDS) {
        let chance = &mut SeededRng::new(seed);
        let address = ObjectAddress::in_namespace(Kind::named("ConfigMap"), "n", format!("a{seed}"));
        let object = |spec: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": address.name}, "spec": spec});
        let first = object(map(chance, 3));
        fixture.start(&address, &first, chance);
        let second = object(next(&first["spec"], chance));
        let live = fixture.get(&address);
        let fields = [live.field_ownership, FieldOwnership::Ours][usize::from(chance.percent(20))];
        let preview = live.managed_fields.preview(&live.body, MANAGER, fields, &second);
        let (desired, before) = (DesiredBody::new(second.clone()).unwrap(), LiveBody::new(live.body.clone()));
        let write = ObjectWrite {
            desired: &desired,
            live: &before,
            after: &preview.after,
            ours: &preview.ours,
            declared: &preview.declared,
            writer: LiveWriter::Us,
        };
        let diff = diff(&write, Disclosure::Everything);
        let is_removed = |it: &&qontract_inventory::FieldDifference| it.after == DifferenceSide::Absent;
        let shown: BTreeSet<String> =
            diff.differences.iter().filter(is_removed).map(|it| it.path.clone()).collect();
        let draft = ObjectDraft {
            address: address.clone(),
            body: second,
            precondition: preview.precondition(live.version.clone(), fields),
            is_sensitive: false,
        };
        let write = fixture.permits.write.as_ref().unwrap();
        let done = fixture.sandbox.put(write, &fixture.cluster, MANAGER, &draft).now_or_never().unwrap();
        if done.is_err() {
            // Another manager conflicts: nothing is written.
            continue;
        }
        let after = fixture.get(&address).body;
        let mut expect = BTreeSet::new();
        gone(&live.body["spec"], after.get("spec"), "spec", &mut expect);
        assert_eq!(shown, expect, "seed {seed}: {} {}", live.body, after);
        assert!(
            (preview.needs_rewrite || diff.loss.lost >= shown.len()) && diff.loss.of >= diff.loss.lost,
            "seed {seed}: {:?}",
            diff.loss
        );
        removed += shown.len();
        written += 1;
        rewritten += usize::from(preview.needs_rewrite);
    }
    assert!(
        removed > 200 && written > 100 && rewritten > 5,
        "{removed} removed, {written} written, {rewritten} rewritten"
    );
}
