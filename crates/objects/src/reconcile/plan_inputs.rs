//! The inputs of object plans as plain data, for replays.
//!
//! **Invariant:** recorded inputs contain a value only if a report could show it. The values of Secrets, of
//! objects that are or were rendered from secrets, and of objects that others wrote are replaced by
//! fingerprints, unless the data declares the same value. The names of the fields of a Secret are replaced in
//! the same way. For an object that was rendered from secrets, not even the structure is stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, ManagedFields, ObjectAddress, ObjectVersion,
};
use qontract_inventory::{
    Callers, DesiredBody, Disclosure, LiveBody, Owner, Replacement, SENSITIVE, SHA256SUM, canonical, compare,
    preserve_restarts,
};
use qontract_runtime::replay::{Fingerprints, PlanInputs, RecordedInputs};
use qontract_runtime::{CurrentState, DesiredItem, DesiredState, ObjectKey, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::masking::{Masking, identity_only};
use super::observe::LiveObject;
use super::recycle::is_workload_scope;
use super::zero_values::CompleteObject;
use crate::scope::{DesiredObject, ManagedScope, Sensitivity, WriteVersion};

/// The parts of a [`ManagedScope`] on which a plan depends.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedContext {
    cluster: String,
    namespace: Option<String>,
    integration: String,
    version: String,
    caller: Option<String>,
    callers: Option<BTreeSet<String>>,
    adopts_unmarked: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replaces_workloads: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedDesired {
    kind: RecordedKind,
    body: Value,
    sensitivity: RecordedSensitivity,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    moved_from: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    awaits_rollout: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedSensitivity {
    Public,
    Template,
    Filled(Value),
    Entry(Value),
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedKind {
    name: String,
    group: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedLive {
    kind: RecordedKind,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
    resource_version: String,
    ownership: RecordedOwnership,
    managed_fields: String,
    body: Value,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedOwnership {
    Ours,
    Applied,
    Updated,
}

/// Records the inputs of a plan.
pub fn record_inputs(
    wanted: &[DesiredItem<DesiredObject>],
    current: &CurrentState<LiveObject>,
    fingerprints: &Fingerprints,
) -> Option<Value> {
    let desired_of = |scope: &Scope, name: &str| {
        wanted.iter().find_map(|want| match &want.state {
            DesiredState::Present(item) if want.object.scope == *scope && want.object.name == name => {
                Some(item)
            }
            DesiredState::Present(_) | DesiredState::Delete | DesiredState::Unresolved(_) => None,
        })
    };
    let desired = |_: &ObjectKey, item: &DesiredObject| {
        serde_json::to_value(recorded_desired(item, fingerprints)).unwrap_or_default()
    };
    let live = |scope: &Scope, live: &LiveObject| {
        let item = desired_of(scope, &live.address.name);
        let recorded = recorded_live(live, item, is_workload_scope(scope), fingerprints);
        serde_json::to_value(recorded).unwrap_or_default()
    };
    let managed_scope = wanted
        .iter()
        .find_map(|want| match &want.state {
            DesiredState::Present(item) => Some(&item.managed_scope),
            DesiredState::Delete | DesiredState::Unresolved(_) => None,
        })
        .or_else(|| current.values().find_map(|observed| Some(&known(observed)?.first()?.managed_scope)));
    let mut inputs = RecordedInputs::new(wanted, current, desired, live);
    if let Some(managed_scope) = managed_scope {
        inputs.context = serde_json::to_value(recorded_context(managed_scope)).ok()?;
    }
    serde_json::to_value(inputs).ok()
}

/// The inputs that were recorded; `None` if the recorded value cannot be parsed.
pub fn restore_inputs(recorded: &Value) -> Option<PlanInputs<DesiredObject, LiveObject>> {
    let inputs = RecordedInputs::deserialize(recorded).ok()?;
    // Without a context, there is neither a desired nor a live object.
    let managed_scope = match &inputs.context {
        Value::Null => None,
        context => Some(Arc::new(restored_scope(RecordedContext::deserialize(context).ok()?)?)),
    };
    inputs.restore(
        |value| {
            let RecordedDesired { kind, body, sensitivity, moved_from, awaits_rollout } =
                RecordedDesired::deserialize(value).ok()?;
            let sensitivity = match sensitivity {
                RecordedSensitivity::Public => Sensitivity::Public,
                RecordedSensitivity::Template => Sensitivity::Template,
                RecordedSensitivity::Filled(declared) => Sensitivity::Filled(Arc::new(declared)),
                RecordedSensitivity::Entry(declared) => Sensitivity::Entry(Arc::new(declared)),
            };
            let (desired, managed_scope) = (DesiredBody::new(body).ok()?, managed_scope.clone()?);
            let kind = kind.into();
            let hints = Vec::new();
            Some(DesiredObject {
                managed_scope,
                kind,
                desired,
                sensitivity,
                moved_from,
                awaits_rollout,
                hints,
            })
        },
        |value| {
            let recorded = RecordedLive::deserialize(value).ok()?;
            let (kind, namespace, name) = (recorded.kind.into(), recorded.namespace, recorded.name);
            Some(LiveObject {
                managed_scope: managed_scope.clone()?,
                address: ObjectAddress { kind, namespace, name },
                version: ObjectVersion { uid: recorded.uid, resource_version: recorded.resource_version },
                field_ownership: match recorded.ownership {
                    RecordedOwnership::Ours => FieldOwnership::Ours,
                    RecordedOwnership::Applied => FieldOwnership::ClientSideApplied,
                    RecordedOwnership::Updated => FieldOwnership::Updated,
                },
                managed_fields: ManagedFields::from_json(recorded.managed_fields),
                live: LiveBody::new(recorded.body),
            })
        },
    )
}

fn known<T>(observed: &qontract_runtime::Observed<T>) -> Option<&Vec<T>> {
    match observed {
        qontract_runtime::Observed::Known(objects) => Some(objects),
        qontract_runtime::Observed::Unknown(_) => None,
    }
}

fn recorded_context(managed_scope: &ManagedScope) -> RecordedContext {
    let ManagedScope {
        cluster,
        namespace,
        kinds: _,
        owner,
        callers,
        adopts_unmarked,
        is_shared: _,
        replacement,
        // The version does not affect the plan.
        write_version: _,
    } = managed_scope;
    RecordedContext {
        cluster: cluster.name.clone(),
        namespace: namespace.clone(),
        integration: owner.integration().to_owned(),
        version: owner.version().to_owned(),
        caller: owner.caller().map(str::to_owned),
        callers: match &**callers {
            Callers::Unknown => None,
            Callers::Whole(callers) => Some(callers.clone()),
        },
        adopts_unmarked: *adopts_unmarked,
        replaces_workloads: *replacement == Replacement::WithPods,
    }
}

fn restored_scope(context: RecordedContext) -> Option<ManagedScope> {
    let RecordedContext {
        cluster,
        namespace,
        integration,
        version,
        caller,
        callers,
        adopts_unmarked,
        replaces_workloads,
    } = context;
    let replacement = if replaces_workloads { Replacement::WithPods } else { Replacement::WithoutPods };
    Some(ManagedScope {
        cluster: Cluster { name: cluster, server: String::new(), token: None },
        namespace,
        kinds: Vec::new(),
        owner: Arc::new(Owner::new(integration, version, caller).ok()?),
        callers: Arc::new(callers.map_or(Callers::Unknown, Callers::Whole)),
        adopts_unmarked,
        is_shared: false,
        replacement,
        write_version: WriteVersion::default(),
    })
}

fn recorded_desired(item: &DesiredObject, fingerprints: &Fingerprints) -> RecordedDesired {
    let DesiredObject { managed_scope: _, kind, desired, sensitivity, moved_from, awaits_rollout, hints: _ } =
        item;
    let (recorded, declared) = match sensitivity {
        Sensitivity::Public => (RecordedSensitivity::Public, None),
        Sensitivity::Template => (RecordedSensitivity::Template, None),
        Sensitivity::Filled(declared) => (RecordedSensitivity::Filled((**declared).clone()), Some(declared)),
        Sensitivity::Entry(declared) => (RecordedSensitivity::Entry((**declared).clone()), Some(declared)),
    };
    let masking = Masking { fingerprints, public: declared.map(|declared| &**declared) };
    let body = match sensitivity {
        Sensitivity::Public => desired.body().clone(),
        Sensitivity::Template => masking.opaque(desired.body(), desired.body()),
        Sensitivity::Filled(_) | Sensitivity::Entry(_) => masking.object(desired.body()),
    };
    let (moved_from, awaits_rollout) = (moved_from.clone(), *awaits_rollout);
    RecordedDesired { kind: kind.into(), body, sensitivity: recorded, moved_from, awaits_rollout }
}

fn recorded_live(
    live: &LiveObject,
    item: Option<&DesiredObject>,
    is_workload: bool,
    fingerprints: &Fingerprints,
) -> RecordedLive {
    let complete = item.map(|item| CompleteObject::new(live, &item.desired));
    let lacks_empty_values = complete.as_ref().is_some_and(CompleteObject::lacks_empty_values);
    let live = complete.as_ref().map_or(live, |complete| &*complete.live);
    let LiveObject { managed_scope, address, version, field_ownership, managed_fields, live: body } = live;
    let masking = |public| Masking { fingerprints, public };
    let masked = match item {
        _ if is_workload => Some(masking(None).workload(body.body())),
        Some(item) => match &item.sensitivity {
            Sensitivity::Public if is_open(body, managed_scope) => None,
            Sensitivity::Public => Some(masking(Some(item.desired.body())).object(body.body())),
            Sensitivity::Filled(declared) | Sensitivity::Entry(declared) => {
                Some(masking(Some(&**declared)).object(body.body()))
            }
            Sensitivity::Template => {
                let is_equal = !lacks_empty_values && holds(&item.desired, body);
                let content = if is_equal { item.desired.body() } else { body.body() };
                Some(masking(None).opaque(body.body(), content))
            }
        },
        // For an undeclared object, only the identity and the owner are relevant.
        None => Some(identity_only(&masking(None).object(body.body()))),
    };
    let is_opaque = item.is_some_and(|item| matches!(item.sensitivity, Sensitivity::Template));
    let managed_fields = match &masked {
        Some(_) if is_opaque => "[]".to_owned(),
        Some(_) => {
            let declared = item.map(|item| match &item.sensitivity {
                Sensitivity::Public | Sensitivity::Template => item.desired.body(),
                Sensitivity::Filled(declared) | Sensitivity::Entry(declared) => &**declared,
            });
            masking(declared).managed_fields(body.body(), managed_fields.as_json())
        }
        None => managed_fields.as_json().to_owned(),
    };
    let mut recorded = masked.unwrap_or_else(|| body.body().clone());
    if let Some(fields) = recorded.as_object_mut() {
        fields.remove("status");
    }
    restore_hash(&mut recorded, live, item, fingerprints);
    RecordedLive {
        kind: (&address.kind).into(),
        namespace: address.namespace.clone(),
        name: address.name.clone(),
        uid: version.uid.clone(),
        resource_version: version.resource_version.clone(),
        ownership: match field_ownership {
            FieldOwnership::Ours => RecordedOwnership::Ours,
            FieldOwnership::ClientSideApplied => RecordedOwnership::Applied,
            FieldOwnership::Updated => RecordedOwnership::Updated,
        },
        managed_fields,
        body: recorded,
    }
}

/// Whether every declared field is equal, regardless of the hash annotation.
fn holds(desired: &DesiredBody, live: &LiveBody) -> bool {
    let differences = compare(desired, live, Disclosure::Paths).differences();
    differences.iter().all(|difference| difference.path == SHA256SUM)
}

/// Whether a report may show the values of a live object.
fn is_open(live: &LiveBody, managed_scope: &ManagedScope) -> bool {
    let body = live.body();
    let is_ours = live.mark().is_some_and(|mark| mark.integration == managed_scope.owner.integration());
    is_ours && body["kind"] != "Secret" && body["metadata"]["annotations"][SENSITIVE] != "true"
}

/// Restores the hash annotation of a masked object. The annotation matches the masked desired object if it
/// matched the desired object before masking.
fn restore_hash(
    recorded: &mut Value,
    live: &LiveObject,
    item: Option<&DesiredObject>,
    fingerprints: &Fingerprints,
) {
    let Some(stored) = live.live.mark().and_then(|mark| mark.sha256sum.clone()) else { return };
    let hash = |desired: &DesiredBody, live: &LiveBody| {
        canonical(&preserve_restarts(desired, live)).ok().map(|form| form.sha256.to_string())
    };
    let restored = item.and_then(|item| {
        if hash(&item.desired, &live.live).as_deref() != Some(stored.as_str()) {
            return None;
        }
        let desired = DesiredBody::new(recorded_desired(item, fingerprints).body).ok()?;
        hash(&desired, &LiveBody::new(recorded.clone()))
    });
    let is_public =
        item.is_some_and(|item| !item.sensitivity.is_sensitive()) && is_open(&live.live, &live.managed_scope);
    let hash = match restored {
        Some(hash) => hash,
        None if is_public => stored,
        // The hash is replaced by a fingerprint, because the hash of a secret would confirm a correct guess
        // of the secret.
        None => fingerprints.of(stored.as_bytes()),
    };
    recorded["metadata"]["annotations"][SHA256SUM] = hash.into();
}

impl From<&Kind> for RecordedKind {
    fn from(kind: &Kind) -> Self {
        Self { name: kind.name.clone(), group: kind.group.clone() }
    }
}

impl From<RecordedKind> for Kind {
    fn from(kind: RecordedKind) -> Self {
        Self { name: kind.name, group: kind.group }
    }
}
