//! Plans the changes of a namespace's labels. Pure.
//!
//! **Invariant:** a label of another owner is neither changed nor removed (`cases/conflict.md`,
//! `cases/change.md`).

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::{Cluster, Draft, Fields, Object, Onto};
use qontract_runtime::guard::FieldLoss;
use qontract_runtime::{
    Change, ChangeKind, Fault, FieldChange, FieldDiff, Observed, Plan, Wait, Want, Wanted, World,
};
use serde_json::{Value, json};

/// The annotation that lists our labels.
pub const RECORD: &str = "qontract.namespace_labels";

/// The desired labels of a namespace.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its cluster.
    pub cluster: Cluster,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// The action of a step. It is complete: execution makes no decisions.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes the namespace with all of our labels, and nothing else.
    Put(Cluster, Box<Draft>),
    /// Waits for the namespace of this name, which another integration creates.
    Await(String),
}

/// Plans the changes.
pub fn plan(wanted: &[Want<Item>], world: &World<Object>) -> Plan<Step> {
    let mut plan = Plan::default();
    for want in wanted {
        // A scope that could not be read is not planned for; the runner reports why.
        let (Wanted::Present(item), Some(Observed::Known(all))) =
            (&want.wanted, world.get(&want.thing.scope))
        else {
            continue;
        };
        let name = &want.thing.name;
        match all.iter().find(|object| object.address.name == *name) {
            Some(object) if object.is_going() => {
                let text = format!("Namespace `{name}` is being removed");
                plan.waits.push(Wait { text, place: want.place.clone() });
            }
            Some(object) => label(&mut plan, want, item, object),
            None if item.labels.is_empty() => {}
            None => {
                let diff = item.labels.iter().map(|(key, value)| field(key, None, Some(value))).collect();
                plan.step(change(want, "label Namespace", diff), Step::Await(name.clone()));
            }
        }
    }
    plan
}

fn change(want: &Want<Item>, what: &str, diff: Vec<FieldDiff>) -> Change {
    Change::new(ChangeKind::Change, want.thing.clone(), what).with_diff(diff).at(want.place.clone())
}

fn label(plan: &mut Plan<Step>, want: &Want<Item>, item: &Item, object: &Object) {
    let recorded = recorded(&object.body);
    let live = &object.body["metadata"]["labels"];
    let mut labels = BTreeMap::new();
    let mut diff = Vec::new();
    for (key, value) in &item.labels {
        match live[key].as_str() {
            Some(other) if other != value && !recorded.contains(key.as_str()) => {
                let name = &want.thing.name;
                let why =
                    format!("the label `{key}` of Namespace `{name}` is `{other}`, set by another owner");
                let hint =
                    format!("the data says `{value}`: remove the label from the namespace, or from the data");
                plan.faults.push(Fault::author(why).hint(hint).at(want.place.clone()));
                continue;
            }
            Some(same) if same == value => {}
            before => diff.push(field(key, before, Some(value))),
        }
        labels.insert(key.as_str(), value.as_str());
    }
    let dropped = recorded.iter().filter(|key| !item.labels.contains_key(**key));
    let dropped: Vec<FieldDiff> =
        dropped.filter_map(|key| Some(field(key, Some(live[key].as_str()?), None))).collect();
    let lost = dropped.len();
    diff.splice(0..0, dropped);
    let record: BTreeSet<&str> = labels.keys().copied().collect();
    if diff.is_empty() && record == recorded {
        return;
    }
    let what = if diff.is_empty() { "record the labels of Namespace" } else { "label Namespace" };
    let draft = Box::new(draft(object, &labels, &record));
    let mut change = change(want, what, diff);
    let loss = FieldLoss { lost, of: recorded.len(), ..FieldLoss::default() };
    change.loss = (lost > 0).then_some(loss);
    plan.step(change, Step::Put(item.cluster.clone(), draft));
}

/// The namespace to write: labels that we wrote before and no longer declare are removed, labels of others
/// stay.
fn draft(object: &Object, labels: &BTreeMap<&str, &str>, record: &BTreeSet<&str>) -> Draft {
    let mut metadata = json!({"name": object.address.name});
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
        let keys: Vec<&str> = record.iter().copied().collect();
        metadata["annotations"] = json!({RECORD: keys.join(",")});
    }
    Draft {
        address: object.address.clone(),
        body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
        onto: Onto::Version(object.version.clone(), Fields::Settled),
        is_sensitive: false,
    }
}

/// Our labels, from the annotation.
fn recorded(body: &Value) -> BTreeSet<&str> {
    let note = body["metadata"]["annotations"][RECORD].as_str().unwrap_or_default();
    note.split(',').filter(|key| !key.is_empty()).collect()
}

fn field(key: &str, before: Option<&str>, after: Option<&str>) -> FieldDiff {
    let change = match (before, after) {
        (None, _) => FieldChange::Added,
        (Some(_), None) => FieldChange::Removed,
        (Some(_), Some(_)) => FieldChange::Changed,
    };
    let path = format!("metadata.labels.{key}");
    FieldDiff { change, path, before: before.map(Value::from), after: after.map(Value::from) }
}
