//! The inputs of plans as plain data, for replays: the labels of a namespace, and the annotation that records
//! our labels.

use std::collections::BTreeMap;

use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, ManagedFields, Object, ObjectAddress, ObjectVersion,
};
use qontract_runtime::replay::{PlanInputs, RecordedInputs};
use qontract_runtime::{CurrentState, DesiredItem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::plan::{DesiredLabels, LABELS_ANNOTATION};

#[derive(Serialize, Deserialize)]
struct RecordedNamespace {
    name: String,
    uid: Option<String>,
    resource_version: String,
    is_terminating: bool,
    labels: Value,
    /// The annotation with our labels.
    record: Value,
}

/// Records the inputs of a plan.
pub fn record(wanted: &[DesiredItem<DesiredLabels>], current: &CurrentState<Object>) -> Option<Value> {
    let namespace = |object: &Object| RecordedNamespace {
        name: object.address.name.clone(),
        uid: object.version.uid.clone(),
        resource_version: object.version.resource_version.clone(),
        is_terminating: object.is_terminating(),
        labels: object.body["metadata"]["labels"].clone(),
        record: object.body["metadata"]["annotations"][LABELS_ANNOTATION].clone(),
    };
    let inputs = RecordedInputs::new(
        wanted,
        current,
        |_, item| json!(item.labels),
        |_, object| serde_json::to_value(namespace(object)).unwrap_or_default(),
    );
    serde_json::to_value(inputs).ok()
}

/// The inputs that were recorded; `None` if the recorded value cannot be parsed.
pub fn restore(recorded: &Value) -> Option<PlanInputs<DesiredLabels, Object>> {
    RecordedInputs::deserialize(recorded).ok()?.restore(
        |value| {
            let labels = BTreeMap::deserialize(value).ok()?;
            let cluster = Cluster { name: String::new(), server: String::new(), token: None };
            Some(DesiredLabels { cluster, labels })
        },
        |value| {
            let RecordedNamespace { name, uid, resource_version, is_terminating, labels, record } =
                RecordedNamespace::deserialize(value).ok()?;
            let metadata = json!({"labels": labels, "annotations": {LABELS_ANNOTATION: record}});
            let phase = if is_terminating { "Terminating" } else { "Active" };
            Some(Object {
                address: ObjectAddress::cluster_scoped(Kind::namespace(), name),
                version: ObjectVersion { uid, resource_version },
                field_ownership: FieldOwnership::Ours,
                managed_fields: ManagedFields::from_json("[]"),
                body: json!({"metadata": metadata, "status": {"phase": phase}}),
            })
        },
    )
}
