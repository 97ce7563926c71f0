//! A shard with its plan of one pass, and its entry in the outcome of the run.

use std::collections::BTreeSet;

use qontract_access::Mode;

use super::redaction::ShardRedactor;
use crate::fault::Fault;
use crate::guard::{JudgedShard, PlannedSteps, ShardFacts};
use crate::key::ShardKey;
use crate::outcome::ShardOutcome;
use crate::plan::{Change, ChangeKind, HeldPlanChange, Plan, StepGroup};
use crate::run_request::Bodies;
use crate::type_erasure::OpaqueValue;

/// A shard with its plan of one pass.
pub struct PlannedShard {
    /// The key of the shard.
    pub key: ShardKey,
    /// Its plan.
    pub plan: Plan<OpaqueValue>,
    /// The facts that guards need.
    pub facts: ShardFacts,
    /// Faults of single objects and scopes.
    pub faults: Vec<Fault>,
    /// Objects that are not planned because one of their inputs is not approved yet.
    pub not_planned: Vec<String>,
    /// Redacts the secrets that the shard has read.
    pub redactor: ShardRedactor,
    /// Whether the run may write to targets.
    pub mode: Mode,
    /// Whether changes that create an object show all of its fields.
    pub bodies: Bodies,
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
    /// A change for reports: redacted, and with the diff that the mode allows.
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
pub fn record_plan(
    shard: &mut ShardOutcome,
    judged: &JudgedShard<'_, PlannedShard>,
    counts: impl Fn(&Change) -> bool,
) {
    let planned = judged.shard();
    let redactor = &planned.redactor;
    shard.held = planned.plan.held.iter().map(|held| redactor.held(held.clone())).collect();
    shard.waits = planned.plan.waits.iter().map(|wait| redactor.wait(wait.clone())).collect();
    let degraded = planned.plan.degraded.iter();
    shard.degraded = degraded.map(|degraded| redactor.degradation(degraded.clone())).collect();
    shard.hints = planned.plan.hints.iter().map(|hint| redactor.hint(hint.clone())).collect();
    let reported: BTreeSet<String> = shard.faults.iter().map(|fault| fault.text.clone()).collect();
    let faults = planned.faults.iter().map(|fault| redactor.fault(fault.clone()));
    shard.faults.extend(faults.filter(|fault| !reported.contains(&fault.text)));
    shard.not_planned = planned.not_planned.len();
    let notes = planned.not_planned.iter().map(|note| redactor.text(note.clone()));
    let notes: Vec<String> = notes.filter(|note| !shard.notes.contains(note)).collect();
    shard.notes.extend(notes);
    for step in judged.steps() {
        for change in step.changes() {
            let Some(refusal) = step.refusal() else {
                shard.removed += usize::from(counts(change));
                // A change that is planned again because it was stale is reported once.
                let change = planned.reported(change);
                if !shard.changes.iter().any(|reported| reported.is_same(&change)) {
                    shard.changes.push(change);
                }
                continue;
            };
            let (change, why) = (planned.reported(change), redactor.text(refusal.why()));
            shard.held.push(HeldPlanChange { change, why, hold: refusal.hold() });
        }
    }
}
