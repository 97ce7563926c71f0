//! Plans the changes to a namespace's labels. Pure.
//!
//! **Invariant:** a label of another owner is neither changed nor removed (`cases/conflict.md`,
//! `cases/change.md`).

use std::collections::{BTreeMap, BTreeSet};

use qontract_client_kubernetes::{Cluster, FieldOwnership, Object, ObjectDraft, WritePrecondition};
use qontract_objects::{ExpectedConflict, Sensitivity};
use qontract_runtime::{
    Change, ChangeKind, CurrentState, DesiredItem, DesiredState, Fault, FieldChange, FieldDiff, FieldLoss,
    Observed, Plan, Wait,
};
use serde_json::{Value, json};

use crate::MANAGER;

/// The annotation that lists the labels that we manage.
pub const LABELS_ANNOTATION: &str = "qontract.namespace_labels";

/// The desired labels of a namespace.
#[derive(Clone, Debug)]
pub struct DesiredLabels {
    /// The cluster.
    pub cluster: Cluster,
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// The action of a step. The action is complete: executing it needs no further decisions.
#[derive(Clone, Debug)]
pub enum LabelAction {
    /// Writes the namespace with all our labels and no other field.
    Put(Box<LabelPut>),
    /// Waits for the namespace of this name, which another integration creates.
    Await(String),
}

/// A write of the labels of a namespace.
#[derive(Clone, Debug)]
pub struct LabelPut {
    /// The cluster.
    pub cluster: Cluster,
    /// The namespace with our labels.
    pub draft: ObjectDraft,
    /// The refusal that is expected because other field managers own labels.
    pub conflict: Option<Fault>,
}

/// Plans the changes.
pub fn plan(wanted: &[DesiredItem<DesiredLabels>], current: &CurrentState<Object>) -> Plan<LabelAction> {
    let mut plan = Plan::default();
    for want in wanted {
        // A scope that could not be read is not planned; the runner reports the reason.
        let (DesiredState::Present(item), Some(Observed::Known(all))) =
            (&want.state, current.get(&want.object.scope))
        else {
            continue;
        };
        let name = &want.object.name;
        match all.iter().find(|object| object.address.name == *name) {
            Some(object) if object.is_terminating() => {
                let text = format!("Namespace `{name}` is being removed");
                plan.waits.push(Wait { text, place: want.place.clone() });
            }
            Some(object) => plan_labels(&mut plan, want, item, object),
            None if item.labels.is_empty() => {}
            None => {
                let diff = item.labels.iter().map(|(key, value)| field(key, None, Some(value))).collect();
                plan.add_step(change(want, "label Namespace", diff), LabelAction::Await(name.clone()));
            }
        }
    }
    plan
}

fn change(want: &DesiredItem<DesiredLabels>, what: &str, diff: Vec<FieldDiff>) -> Change {
    Change::new(ChangeKind::Change, want.object.clone(), what).with_diff(diff).at(want.place.clone())
}

fn plan_labels(
    plan: &mut Plan<LabelAction>,
    want: &DesiredItem<DesiredLabels>,
    item: &DesiredLabels,
    object: &Object,
) {
    let recorded = recorded_labels(&object.body);
    let live = &object.body["metadata"]["labels"];
    let mut labels = BTreeMap::new();
    let mut diff = Vec::new();
    for (key, value) in &item.labels {
        match live[key].as_str() {
            Some(other) if other != value && !recorded.contains(key.as_str()) => {
                let name = &want.object.name;
                let why =
                    format!("the label `{key}` of Namespace `{name}` is `{other}`, set by another owner");
                let hint = format!(
                    "the data declares `{value}`: remove the label from the namespace, or from the data"
                );
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
    let draft = draft(object, &labels, &record);
    let preview = object.managed_fields.preview(&object.body, MANAGER, FieldOwnership::Ours, &draft.body);
    let conflict = ExpectedConflict::new(&object.address, &preview.conflicts, &Sensitivity::Public);
    let mut change = change(want, what, diff);
    change.diff.splice(0..0, conflict.notes);
    let loss = FieldLoss { lost, of: recorded.len(), ..FieldLoss::default() };
    change.loss = (lost > 0).then_some(loss);
    let put = LabelPut { cluster: item.cluster.clone(), draft, conflict: conflict.refusal };
    plan.add_step(change, LabelAction::Put(Box::new(put)));
}

/// The namespace to write. The write removes labels that we wrote before and no longer declare, and keeps the
/// labels of other owners.
fn draft(object: &Object, labels: &BTreeMap<&str, &str>, record: &BTreeSet<&str>) -> ObjectDraft {
    let mut metadata = json!({"name": object.address.name});
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
        let keys: Vec<&str> = record.iter().copied().collect();
        metadata["annotations"] = json!({LABELS_ANNOTATION: keys.join(",")});
    }
    ObjectDraft {
        address: object.address.clone(),
        body: json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
        precondition: WritePrecondition::Version(object.version.clone(), FieldOwnership::Ours),
        is_sensitive: false,
    }
}

/// The names of our labels, from the annotation.
fn recorded_labels(body: &Value) -> BTreeSet<&str> {
    let note = body["metadata"]["annotations"][LABELS_ANNOTATION].as_str().unwrap_or_default();
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
