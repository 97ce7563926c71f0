//! A shard with the plan of one pass, and the entry of this plan in the outcome of the run.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use qontract_access::Mode;
use qontract_diagnostics::pluralize;

use super::renamed_target::ObservedObjects;
use crate::fault::Fault;
use crate::guard::{Clearance, JudgedChange, JudgedShard, PlannedSteps, ShardFacts};
use crate::key::ShardKey;
use crate::outcome::ShardOutcome;
use crate::plan::{Change, ChangeKind, HeldPlanChange, Hold, Plan, PlanDigest, PlanOutline, StepGroup};
use crate::recording::RecordedShard;
use crate::redaction::ShardRedactor;
use crate::run_request::Bodies;
use crate::type_erasure::OpaqueValue;
use crate::unplanned::UnplannedItem;

/// A shard with the plan of one pass.
pub struct PlannedShard {
    /// The key of the shard.
    pub key: ShardKey,
    /// The plan of the shard.
    pub plan: Plan<OpaqueValue>,
    /// The digests of the steps of the plan.
    pub outline: Arc<PlanOutline>,
    /// The time that the integration used for the plan.
    pub planned_at: Timestamp,
    /// The facts that guards need about the shard.
    pub facts: ShardFacts,
    /// The objects of the shard that the pass observed.
    pub observed: ObservedObjects,
    /// Faults of individual objects and scopes.
    pub faults: Vec<Fault>,
    /// Objects and scopes that are not planned because one of their inputs is not approved yet.
    pub unplanned: Vec<UnplannedItem>,
    /// Redacts the secrets that the shard has read.
    pub redactor: ShardRedactor,
    /// Whether the run may write to targets.
    pub mode: Mode,
    /// Whether changes that create an object show all of its fields.
    pub bodies: Bodies,
    /// The inputs of the plan, if they are recorded.
    pub inputs: Option<serde_json::Value>,
    /// The recorded inputs, without secrets.
    pub recorded: Option<RecordedShard>,
}

impl PlannedSteps for PlannedShard {
    type Action = OpaqueValue;

    fn key(&self) -> &ShardKey {
        &self.key
    }

    fn facts(&self) -> &ShardFacts {
        &self.facts
    }

    fn groups(&self) -> &[StepGroup<OpaqueValue>] {
        &self.plan.groups
    }
}

impl PlannedShard {
    /// The digest of the plan that the next run has if the data and the target stay unchanged: in a dry run the
    /// digest of this plan, and in a real run the digest of the held steps.
    fn next_plan(&self, judged: &JudgedShard<'_, Self>) -> PlanDigest {
        if self.mode == Mode::DryRun {
            return self.outline.digest();
        }
        self.outline.digest_of(|group, step| {
            let step = judged.groups().get(group).and_then(|group| group.steps().get(step));
            step.is_some_and(|step| step.refusal().is_some())
        })
    }

    /// Prepares a change for reports: redacts it, and keeps only the diff that the mode allows.
    fn reported(&self, change: &Change) -> Change {
        let mut change = self.redactor.change(change.clone());
        if self.mode == Mode::Real && !change.diff_by_name.is_empty() {
            change.diff = std::mem::take(&mut change.diff_by_name);
        }
        if self.bodies == Bodies::Shown && change.kind == ChangeKind::Add && change.diff.is_empty() {
            change.diff = std::mem::take(&mut change.body);
        }
        change
    }
}

/// Records the plan of a round in the outcome of the shard.
pub fn record_plan(shard: &mut ShardOutcome, judged: &JudgedShard<'_, PlannedShard>) {
    let planned = judged.shard();
    let redactor = &planned.redactor;
    // Only the first plan is recorded, because the changes of further rounds follow from those of the first round.
    shard.planned_at.get_or_insert(planned.planned_at);
    shard.plan_digest.get_or_insert_with(|| planned.outline.digest());
    shard.held = planned.plan.held.iter().map(|held| redactor.held(held.clone())).collect();
    shard.waits = planned.plan.waits.iter().map(|wait| redactor.wait(wait.clone())).collect();
    let degraded = planned.plan.degraded.iter();
    shard.degraded = degraded.map(|degraded| redactor.degradation(degraded.clone())).collect();
    shard.hints = planned.plan.hints.iter().map(|hint| redactor.hint(hint.clone())).collect();
    let reported: BTreeSet<String> = shard.faults.iter().map(|fault| fault.text.clone()).collect();
    let faults = planned.faults.iter().map(|fault| redactor.fault(fault.clone()));
    shard.faults.extend(faults.filter(|fault| !reported.contains(&fault.text)));
    shard.unplanned = planned.unplanned.iter().map(|item| redactor.unplanned(item.clone())).collect();
    shard.consented = 0;
    shard.approval = planned.plan.approval.clone().map(|text| redactor.text(text));
    let next_plan = planned.next_plan(judged);
    for step in judged.steps() {
        for JudgedChange { change, clearance } in step.judged_changes() {
            let Some(refusal) = step.refusal() else {
                shard.removed += usize::from(clearance.is_counted());
                shard.consented += usize::from(*clearance == Clearance::Consented);
                // A change that is planned again because it was stale is reported only once.
                let change = planned.reported(change);
                if !shard.changes.iter().any(|reported| reported.is_same(&change)) {
                    shard.changes.push(change);
                }
                continue;
            };
            let mut why = refusal.why();
            if let Some(mismatch) = clearance.mismatch() {
                why = format!("{why}; {mismatch}");
            }
            let (change, why, hold) = (planned.reported(change), redactor.text(why), refusal.hold());
            let plan = (hold == Hold::Approval).then(|| next_plan.clone());
            shard.held.push(HeldPlanChange { change, why, hold, plan, remedy: None });
        }
    }
    if shard.consented > 0 {
        let text = format!(
            "{} approved as a whole by the declaration of the shard",
            pluralize(shard.consented, "removal")
        );
        if !shard.notes.contains(&text) {
            shard.notes.push(text);
        }
    }
}
