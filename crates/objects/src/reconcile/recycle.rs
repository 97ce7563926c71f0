//! Restarts the workloads that use a changed ConfigMap or Secret.
//!
//! A ConfigMap or Secret with the annotation `qontract.recycle: "true"` is written together with a note that
//! the workloads that use it have to be restarted. The restarts are planned when that note is observed, in
//! the next round or run. The note is removed when every such workload has restarted.
//!
//! **Invariant:** a crash neither loses a restart nor repeats it (`tests/suite/recycle.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use qontract_bundle::Sha256;
use qontract_client_kubernetes::{Kind, RECYCLED_ANNOTATION, WorkloadRestart, WritePrecondition};
use qontract_inventory::{RECYCLE_PENDING, canonical, uses, wants_recycle};
use qontract_runtime::{
    Change, ChangeKind, CurrentState, DesiredItem, DesiredState, Observed, Plan, PlanStage, Scope, Wait,
};
use serde_json::Value;

use super::apply::{ObjectAction, ObjectPut};
use super::observe::LiveObject;
use crate::scope::{DesiredObject, ManagedScope};

/// The annotation with the pending-restart note. Its value distinguishes one change from the next.
pub const PENDING: &str = RECYCLE_PENDING;

/// Prefix of the note's value for a created object: only older workloads are restarted.
const CREATED: &str = "created-";

/// The key that distinguishes the scopes of workloads from those of managed kinds.
const WORKLOADS: &str = "workloads";

/// An object to be recycled.
#[derive(Clone, Copy)]
struct RecycleCandidate<'a> {
    /// The desired item, with its provenance.
    want: &'a DesiredItem<DesiredObject>,
    /// The desired object.
    item: &'a DesiredObject,
    /// The live object.
    seen: &'a LiveObject,
}

/// The kinds of workloads that can be restarted.
pub fn kinds() -> [Kind; 4] {
    let kind = |name: &str, group: &str| Kind { name: name.to_owned(), group: Some(group.to_owned()) };
    [
        kind("DaemonSet", "apps"),
        kind("Deployment", "apps"),
        kind("DeploymentConfig", "apps.openshift.io"),
        kind("StatefulSet", "apps"),
    ]
}

/// The scope of workloads that are observed but not managed.
pub fn workload_scope(managed_scope: &ManagedScope, kind: &Kind) -> Scope {
    let (namespace, label) = (managed_scope.namespace.as_deref().unwrap_or_default(), kind.to_string());
    Scope::new([
        ("cluster", managed_scope.cluster.name.as_str()),
        ("namespace", namespace),
        (WORKLOADS, &label),
    ])
}

/// Whether a scope is that of workloads.
pub fn is_workload_scope(scope: &Scope) -> bool {
    scope.get(WORKLOADS).is_some()
}

/// The restart note that is written with an object: the cause for restarting the workloads that use it.
///
/// A created object also gets a note, because workloads may still run with the object that it replaces, or
/// without any object.
pub fn pending_note(item: &DesiredObject, seen: Option<&LiveObject>) -> Option<String> {
    if !wants_recycle(item.desired.body()) {
        return None;
    }
    let declared = item.desired.canonical().sha256;
    let Some(seen) = seen else {
        return Some(format!("{CREATED}{}", short_hash(declared.to_string().as_bytes())));
    };
    if changes_content(item, seen) {
        // The version distinguishes this change from a later change with equal content.
        return Some(short_hash(format!("{declared} {}", seen.version).as_bytes()));
    }
    pending(seen).map(str::to_owned)
}

fn short_hash(bytes: &[u8]) -> String {
    Sha256::of(bytes).to_string().chars().take(12).collect()
}

fn pending(seen: &LiveObject) -> Option<&str> {
    seen.live.body()["metadata"]["annotations"][PENDING].as_str()
}

/// Whether the write changes the content that pods see: a declared key has another value, or a key exists
/// only in the cluster and may have been declared before.
fn changes_content(item: &DesiredObject, seen: &LiveObject) -> bool {
    let form = |object: &Value| canonical(object).map(|form| form.object).unwrap_or_default();
    let (desired, live) = (form(item.desired.body()), form(seen.live.body()));
    let stored = seen.live.mark().and_then(|mark| mark.sha256sum.clone());
    let is_redeclared = stored.as_deref() != Some(item.desired.canonical().sha256.to_string().as_str());
    let keys = |object: &Value, field: &str| object[field].as_object().cloned().unwrap_or_default();
    ["data", "binaryData"].iter().any(|field| {
        let (desired, live) = (keys(&desired, field), keys(&live, field));
        let differs = desired.iter().any(|(key, value)| live.get(key) != Some(value));
        differs || is_redeclared && live.keys().any(|key| !desired.contains_key(key))
    })
}

/// Whether the workloads have to be observed, because a restart may be needed.
pub fn may_restart(wanted: &[DesiredItem<DesiredObject>], current: &CurrentState<LiveObject>) -> bool {
    recycle_candidates(wanted, current)
        .any(|RecycleCandidate { item, seen, .. }| pending(seen).is_some() || changes_content(item, seen))
}

/// The desired, existing objects that are to be recycled.
fn recycle_candidates<'a>(
    wanted: &'a [DesiredItem<DesiredObject>],
    current: &'a CurrentState<LiveObject>,
) -> impl Iterator<Item = RecycleCandidate<'a>> {
    wanted.iter().filter_map(|want| {
        let DesiredState::Present(item) = &want.state else { return None };
        if !wants_recycle(item.desired.body()) {
            return None;
        }
        let Some(Observed::Known(all)) = current.get(&want.object.scope) else { return None };
        let seen = all.iter().find(|seen| seen.address.name == want.object.name)?;
        Some(RecycleCandidate { want, item, seen })
    })
}

/// Plans the restarts whose cause was observed. Adds a wait for each restart that will follow from the writes
/// of this plan.
pub fn plan(
    wanted: &[DesiredItem<DesiredObject>],
    current: &CurrentState<LiveObject>,
    plan: &mut Plan<ObjectAction>,
) {
    let Some(workloads) = workloads(current) else { return };
    let mut due: Vec<RecycleCandidate<'_>> = Vec::new();
    for candidate in recycle_candidates(wanted, current) {
        let RecycleCandidate { want, item, seen } = candidate;
        if changes_content(item, seen) {
            for workload in workloads.iter().filter(|workload| is_user(workload, seen)) {
                let text = format!("{} will be restarted after {} changes", workload.address, seen.address);
                plan.waits.push(Wait { text, place: want.place.clone() });
            }
        } else if pending(seen).is_some() {
            due.push(candidate);
        }
    }
    for workload in &workloads {
        restart(plan, workload, &due);
    }
    for candidate @ RecycleCandidate { seen, .. } in &due {
        let is_done = |workload: &&LiveObject| {
            !is_due(workload, seen) || restart_causes(workload).contains(&*restart_cause(seen))
        };
        if workloads.iter().all(is_done) {
            clear_note(plan, candidate);
        }
    }
}

/// Restarts a workload once for all changed objects that it uses.
fn restart(plan: &mut Plan<ObjectAction>, workload: &LiveObject, due: &[RecycleCandidate<'_>]) {
    let handled = restart_causes(workload);
    let is_new = |candidate: &&RecycleCandidate<'_>| {
        is_due(workload, candidate.seen) && !handled.contains(&*restart_cause(candidate.seen))
    };
    let new: Vec<&RecycleCandidate<'_>> = due.iter().filter(is_new).collect();
    let Some(RecycleCandidate { want: first, item, .. }) = new.first() else { return };
    // The annotation keeps causes that were already handled but are still noted. If the process crashes after
    // a restart and before the note is removed, the workload is not restarted again.
    let retained = due
        .iter()
        .map(|candidate| restart_cause(candidate.seen))
        .filter(|cause| handled.contains(cause.as_str()));
    let causes: BTreeSet<String> =
        new.iter().map(|candidate| restart_cause(candidate.seen)).chain(retained).collect();
    let cause = causes.into_iter().collect::<Vec<_>>().join(" ");
    let kind = &workload.address.kind;
    let key = item.managed_scope.object_key(kind, workload.address.name.clone());
    let diff = new.iter().map(|candidate| format!("it uses {}, which changed", candidate.seen.address));
    let change = Change::new(ChangeKind::Change, key, format!("restart {}", kind.name))
        .with_diff(diff)
        .at(first.place.clone());
    let (address, version) = (workload.address.clone(), workload.version.clone());
    let restart = WorkloadRestart { address, version, cause };
    plan.add_step_in(
        PlanStage::AfterWrites,
        change,
        ObjectAction::Restart(Arc::clone(&item.managed_scope), restart),
    );
}

/// Removes the note from an object once all workloads that use it have restarted.
fn clear_note(plan: &mut Plan<ObjectAction>, candidate: &RecycleCandidate<'_>) {
    let RecycleCandidate { want, item, seen } = candidate;
    let what = format!("clear the restart note of {}", seen.address.kind.name);
    let change = Change::new(ChangeKind::Change, want.object.clone(), what).at(want.place.clone());
    let precondition = WritePrecondition::Version(seen.version.clone(), seen.field_ownership);
    let put = ObjectPut::new(item, None, seen.address.clone(), precondition, None);
    plan.add_step_in(PlanStage::AfterWrites, change, ObjectAction::Put(Box::new(put)));
}

/// All workloads; `None` if they were not observed or some could not be read.
fn workloads(current: &CurrentState<LiveObject>) -> Option<Vec<&LiveObject>> {
    let mut all = Vec::new();
    let mut is_observed = false;
    for (_, observed) in current.iter().filter(|(scope, _)| is_workload_scope(scope)) {
        is_observed = true;
        let Observed::Known(seen) = observed else { return None };
        all.extend(seen);
    }
    is_observed.then_some(all)
}

fn is_user(workload: &LiveObject, used: &LiveObject) -> bool {
    !workload.live.is_terminating() && uses(workload.live.body(), &used.address.kind.name, &used.address.name)
}

/// Whether a workload is to be restarted for an object's note. For a created object, only workloads that are
/// older than the object are restarted.
fn is_due(workload: &LiveObject, used: &LiveObject) -> bool {
    let creation_time =
        |seen: &LiveObject| seen.live.body()["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    let is_created = pending(used).is_some_and(|note| note.starts_with(CREATED));
    is_user(workload, used)
        && (!is_created
            || matches!((creation_time(workload), creation_time(used)), (Some(one), Some(other)) if one < other))
}

/// The causes of a workload's last restart.
fn restart_causes(workload: &LiveObject) -> BTreeSet<&str> {
    let note = &workload.live.body()["spec"]["template"]["metadata"]["annotations"][RECYCLED_ANNOTATION];
    note.as_str().unwrap_or_default().split(' ').collect()
}

/// The cause for which workloads are restarted. Each cause restarts a workload once.
fn restart_cause(used: &LiveObject) -> String {
    format!("{}/{}@{}", used.address.kind.name, used.address.name, pending(used).unwrap_or_default())
}
