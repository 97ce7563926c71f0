//! Plans the changes: makes a plan from the decisions of `qontract-inventory`, one for each object.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qontract_client_kubernetes::{Kind, WritePrecondition};
use qontract_inventory::{
    ApplyOrder, ApplyPhase, FieldDifference, ObjectIntent, PresentIntent, PreviousOwner, RolloutStatus,
    SHA256SUM, Verdict, body_differences, decide, rollout_status,
};
use qontract_runtime::{
    Change, ChangeKind, CurrentState, DesiredItem, DesiredState, DiffEntry, Fault, ObjectKey, Observed, Plan,
    PlanHint, PlanStage, Rollout, RolloutProgress, Scope, StepGroup, Wait,
};

use super::apply::{ObjectAction, ObjectPut};
use super::diff;
use super::observe::LiveObject;
use super::recycle;
use super::zero_values::CompleteObject;
use crate::scope::DesiredObject;

/// The live objects by scope and name.
type LiveIndex<'w> = BTreeMap<(&'w Scope, &'w str), &'w LiveObject>;

/// Plans the changes that take the current state to the desired state. Pure.
pub fn plan_objects(
    wanted: &[DesiredItem<DesiredObject>],
    current: &CurrentState<LiveObject>,
) -> Plan<ObjectAction> {
    let index = index(current);
    let mut plan = Plan::default();
    for want in wanted {
        // A scope that could not be read is not planned; the runner reports the reason.
        let Some(Observed::Known(_)) = current.get(&want.object.scope) else { continue };
        let seen = index.get(&(&want.object.scope, want.object.name.as_str())).copied();
        match &want.state {
            DesiredState::Present(item) => plan_desired(&mut plan, want, item, seen),
            DesiredState::Delete => plan_deletion(&mut plan, want, seen),
            DesiredState::Unresolved(_) => {}
        }
    }
    let named: BTreeSet<(&Scope, &str)> =
        wanted.iter().map(|want| (&want.object.scope, want.object.name.as_str())).collect();
    for (key, seen) in index.iter().filter(|(key, _)| !named.contains(*key)) {
        plan_undeclared(&mut plan, key.0, seen);
    }
    recycle::plan(wanted, current, &mut plan);
    plan.hints.extend(hints(wanted));
    mark_awaited_kinds(&mut plan);
    plan.groups.sort_by_key(|group| (group.stage, is_replacement(group)));
    plan
}

/// Whether a group replaces an object. Objects that are missing are created before others are replaced: they may be
/// workloads whose replacement was interrupted.
fn is_replacement(group: &StepGroup<ObjectAction>) -> bool {
    let mut changes = group.steps.iter().flat_map(|step| &step.changes);
    changes.any(|change| change.kind == ChangeKind::Replace)
}

/// The hints about the declarations of the objects, each once.
fn hints(wanted: &[DesiredItem<DesiredObject>]) -> Vec<PlanHint> {
    let mut hints: Vec<PlanHint> = Vec::new();
    for want in wanted {
        let DesiredState::Present(item) = &want.state else { continue };
        for hint in &item.hints {
            if !hints.contains(hint) {
                hints.push(hint.clone());
            }
        }
    }
    hints
}

/// Marks the writes whose kind the same plan creates. Such a write waits until the kind is served.
fn mark_awaited_kinds(plan: &mut Plan<ObjectAction>) {
    let mut created_kinds: BTreeSet<Kind> = BTreeSet::new();
    for step in plan.groups.iter().flat_map(|group| &group.steps) {
        if let ObjectAction::Put(put) = &step.action
            && put.body["kind"] == "CustomResourceDefinition"
        {
            let spec = &put.body["spec"];
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            created_kinds
                .insert(Kind { name: text(&spec["names"]["kind"]), group: Some(text(&spec["group"])) });
        }
    }
    for step in plan.groups.iter_mut().flat_map(|group| &mut group.steps) {
        if let ObjectAction::Put(put) = &mut step.action {
            put.awaits_kind = Kind::of(&put.body).is_some_and(|kind| created_kinds.contains(&kind));
        }
    }
}

/// The managed live objects by scope and name. Workloads that are only observed are omitted.
fn index(current: &CurrentState<LiveObject>) -> LiveIndex<'_> {
    let managed = current.iter().filter(|(scope, _)| !recycle::is_workload_scope(scope));
    let mut index = LiveIndex::new();
    for (scope, observed) in managed {
        if let Observed::Known(all) = observed {
            index.extend(all.iter().map(|seen| ((scope, seen.address.name.as_str()), seen)));
        }
    }
    index
}

/// Plans for an object that is desired.
fn plan_desired(
    plan: &mut Plan<ObjectAction>,
    want: &DesiredItem<DesiredObject>,
    item: &DesiredObject,
    seen: Option<&LiveObject>,
) {
    let managed_scope = &item.managed_scope;
    let kind = item.desired.kind();
    let complete = seen.map(|seen| CompleteObject::new(seen, &item.desired));
    let seen = complete.as_ref().map(|complete| &*complete.live);
    let decide = |disclosure| {
        let intent = PresentIntent {
            body: &item.desired,
            moved_from: &item.moved_from,
            disclosure,
            replacement: managed_scope.replacement,
        };
        let (owner, callers) = (&managed_scope.owner, &managed_scope.callers);
        decide(owner, callers, ObjectIntent::Present(intent), seen.map(|seen| &seen.live))
    };
    let removed = complete.as_ref().map(|complete| complete.differences(item.sensitivity.disclosure()));
    let write = match decide(item.sensitivity.disclosure()) {
        Verdict::Keep if let Some(differences) = removed.filter(|removed| !removed.is_empty()) => {
            object_change(kind, Verdict::Change { differences })
        }
        Verdict::Keep => {
            match seen.and_then(|seen| rollout(want, seen)) {
                Some(rollout) if item.awaits_rollout && rollout.progress == RolloutProgress::InProgress => {
                    plan.waits.push(Wait { text: rollout.to_string(), place: want.place.clone() });
                }
                rollout => plan.rollouts.extend(rollout),
            }
            return;
        }
        Verdict::Leave(_) | Verdict::Remove => return,
        Verdict::Wait(text) => {
            plan.waits.push(Wait { text, place: want.place.clone() });
            return;
        }
        Verdict::Refuse(text) => {
            plan.refuse_write(&want.object, Fault::author(text).at(want.place.clone()));
            return;
        }
        verdict => object_change(kind, verdict),
    };
    let Some(ObjectChange { kind: how, summary: what, notes, decided }) = write else { return };
    let update = seen.and_then(|seen| match how {
        ChangeKind::Add => None,
        ChangeKind::Replace => Some(diff::ObjectUpdate::replacement(item, seen)),
        ChangeKind::Change | ChangeKind::Remove => Some(diff::ObjectUpdate::in_place(item, seen)),
    });
    let onto = match (&update, seen) {
        (Some(update), _) => update.precondition.clone(),
        (None, Some(seen)) => WritePrecondition::Removing(seen.version.clone()),
        (None, None) => WritePrecondition::Absent,
    };
    let address = seen.map_or_else(
        || managed_scope.address(&item.kind, want.object.name.clone()),
        |seen| seen.address.clone(),
    );
    let pending = recycle::pending_note(item, seen);
    let live = seen.map(|seen| &seen.live);
    let mut put = ObjectPut::new(item, live, address, onto, pending.as_deref());
    let mut change = Change::new(how, want.object.clone(), what).at(want.place.clone());
    match (update, seen) {
        (None, _) | (_, None) => {
            change.diff = notes;
            change.body = diff::body_entries(&body_differences(&item.desired, item.sensitivity.disclosure()));
        }
        (Some(written), Some(seen)) => {
            let conflict = written.conflict();
            put.conflict = conflict.refusal;
            let notes = [notes, conflict.notes].concat();
            change.diff.clone_from(&notes);
            change.diff.extend(written.entries(&decided, item.sensitivity.disclosure()));
            if let Some(disclosure) = item.sensitivity.disclosure_in_record() {
                change.diff_by_name = notes;
                change.diff_by_name.extend(written.entries(&decided, disclosure));
            }
            change.loss = written.loss().filter(|_| how == ChangeKind::Change);
            change.incarnation = Some(seen.version.to_string());
        }
    }
    let stage = ApplyPhase::of(kind, item.desired.group());
    plan.add_step_in(plan_stage(ApplyOrder::Write(stage)), change, ObjectAction::Put(Box::new(put)));
}

/// The rollout of an object that needs no write, unless it is complete.
fn rollout(want: &DesiredItem<DesiredObject>, seen: &LiveObject) -> Option<Rollout> {
    let (progress, text) = match rollout_status(seen.live.body())? {
        RolloutStatus::Complete => return None,
        RolloutStatus::InProgress(text) => (RolloutProgress::InProgress, text),
        RolloutStatus::Failed(text) => (RolloutProgress::Failed, text),
    };
    Some(Rollout { object: want.object.clone(), progress, text, place: want.place.clone() })
}

/// A write that follows from a verdict.
struct ObjectChange {
    kind: ChangeKind,
    summary: String,
    /// Notes that precede the fields that differ.
    notes: Vec<DiffEntry>,
    /// The differences that caused the write, without marks.
    decided: Vec<FieldDifference>,
}

/// The write that follows from a verdict, if any.
fn object_change(kind: &str, verdict: Verdict) -> Option<ObjectChange> {
    let (how, verb, notes, differences) = match verdict {
        Verdict::Create => (ChangeKind::Add, "create", Vec::new(), Vec::new()),
        Verdict::Recreate => {
            let note = DiffEntry::Note("when the old object is gone, which is being removed".to_owned());
            (ChangeKind::Add, "create", vec![note], Vec::new())
        }
        Verdict::Change { differences } => {
            (ChangeKind::Change, "change", mark_entries(&differences), differences)
        }
        Verdict::Adopt { differences } => (ChangeKind::Change, "adopt", Vec::new(), differences),
        Verdict::TakeOver { from, differences } => {
            let from = match from {
                PreviousOwner::Caller(caller) => {
                    format!("from the caller `{caller}`, which no longer exists")
                }
                PreviousOwner::Integration(name) => {
                    format!("from the integration `{name}`, as declared in the data")
                }
            };
            (ChangeKind::Change, "take over", vec![from.into()], differences)
        }
        Verdict::Replace { fields, differences } => {
            let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            let mut notes = vec![DiffEntry::Note(format!("{} cannot change in place", fields.join(", ")))];
            notes.extend(mark_entries(&differences));
            (ChangeKind::Replace, "replace", notes, differences)
        }
        Verdict::Keep | Verdict::Leave(_) | Verdict::Remove | Verdict::Wait(_) | Verdict::Refuse(_) => {
            return None;
        }
    };
    let is_mark = |difference: &FieldDifference| is_mark(&difference.path) && difference.path != SHA256SUM;
    let decided: Vec<FieldDifference> =
        differences.into_iter().filter(|difference| !is_mark(difference)).collect();
    Some(ObjectChange { kind: how, summary: format!("{verb} {kind}"), notes, decided })
}

/// Plans for an object that the data explicitly deletes.
fn plan_deletion(
    plan: &mut Plan<ObjectAction>,
    want: &DesiredItem<DesiredObject>,
    seen: Option<&LiveObject>,
) {
    let Some(seen) = seen else {
        let ObjectKey { kind, name, .. } = &want.object;
        let text = format!("{kind} `{name}` does not exist: its entry with `delete: true` can be removed");
        plan.hints.push(PlanHint { text, place: want.place.clone() });
        return;
    };
    match decide(
        &seen.managed_scope.owner,
        &seen.managed_scope.callers,
        ObjectIntent::Delete,
        Some(&seen.live),
    ) {
        Verdict::Remove => {
            let what = format!("remove {}", seen.address.kind.name);
            let change = Change::new(ChangeKind::Remove, want.object.clone(), what).at(want.place.clone());
            remove(plan, change, seen);
        }
        Verdict::Wait(text) => plan.waits.push(Wait { text, place: want.place.clone() }),
        Verdict::Refuse(text) => plan.faults.push(Fault::author(text).at(want.place.clone())),
        // The object is not ours, or the verdict is to write it, which a deletion never does.
        Verdict::Leave(_)
        | Verdict::Keep
        | Verdict::Create
        | Verdict::Recreate
        | Verdict::Change { .. }
        | Verdict::Adopt { .. }
        | Verdict::TakeOver { .. }
        | Verdict::Replace { .. } => {}
    }
}

/// Plans for a live object that is not declared.
fn plan_undeclared(plan: &mut Plan<ObjectAction>, scope: &Scope, seen: &LiveObject) {
    // If the scope adopts unmarked objects, an unmarked object is removed as if the data deleted it. The
    // removal is not declared, so the guards check it.
    let intent = if seen.managed_scope.adopts_unmarked && seen.live.mark().is_none() {
        ObjectIntent::Delete
    } else {
        ObjectIntent::Absent
    };
    match decide(&seen.managed_scope.owner, &seen.managed_scope.callers, intent, Some(&seen.live)) {
        Verdict::Remove => {
            let (kind, name) = (&seen.address.kind, seen.address.name.clone());
            let key = ObjectKey { scope: scope.clone(), kind: kind.to_string(), name };
            remove(plan, Change::new(ChangeKind::Remove, key, format!("remove {}", kind.name)), seen);
        }
        Verdict::Wait(text) => plan.waits.push(Wait { text, place: None }),
        // The object is left to its owner. All other verdicts are ignored, because an undeclared object is
        // never written.
        Verdict::Leave(_)
        | Verdict::Refuse(_)
        | Verdict::Keep
        | Verdict::Create
        | Verdict::Recreate
        | Verdict::Change { .. }
        | Verdict::Adopt { .. }
        | Verdict::TakeOver { .. }
        | Verdict::Replace { .. } => {}
    }
}

fn remove(plan: &mut Plan<ObjectAction>, mut change: Change, seen: &LiveObject) {
    let uid = seen.version.uid.as_ref().unwrap_or(&seen.version.resource_version);
    change.incarnation = Some(uid.clone());
    let Kind { name, group } = &seen.address.kind;
    let order = ApplyOrder::removal(ApplyPhase::of(name, group.as_deref().unwrap_or_default()));
    let action =
        ObjectAction::Remove(Arc::clone(&seen.managed_scope), seen.address.clone(), seen.version.clone());
    plan.add_step_in(plan_stage(order), change, action);
}

/// The marks that differ, except the hash, which differs whenever the declaration differs.
fn mark_entries(differences: &[FieldDifference]) -> Vec<DiffEntry> {
    let marks = differences.iter().filter(|it| is_mark(&it.path) && it.path != SHA256SUM).cloned();
    diff::entries(&marks.collect::<Vec<_>>())
}

fn is_mark(path: &str) -> bool {
    path.starts_with("qontract.")
}

/// The plan stage for an apply order of the inventory.
fn plan_stage(order: ApplyOrder) -> PlanStage {
    match order {
        ApplyOrder::Write(stage) => PlanStage::Write(stage as u32),
        ApplyOrder::Remove(Reverse(stage)) => PlanStage::Remove(Reverse(stage as u32)),
    }
}
