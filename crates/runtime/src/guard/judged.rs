//! The input and the result of judging: planned shards, and the same shards with a refusal for each held step.
//!
//! **Invariant:** a step and its refusal are one value, which only guards create and change. Code that
//! applies, rehearses, records or reserves steps takes judged steps, so a step cannot be paired with the
//! refusal of another step, and no step can be omitted.

use std::collections::{BTreeMap, BTreeSet};

use super::{Clearance, Refusal, RemovalConsent};
use crate::key::{Scope, ShardKey};
use crate::plan::{Change, ObjectKey, PlanDigest, PlanStage, Step, StepGroup};

/// The facts that guards need about a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardFacts {
    /// Objects that the data deletes explicitly.
    pub deletes: BTreeSet<ObjectKey>,
    /// Scopes in which nothing may be removed, with the reason.
    pub blocked: BTreeMap<Scope, String>,
    /// Number of objects in each scope.
    pub counts: BTreeMap<Scope, usize>,
    /// The objects that any caller declares, without the caller. The former caller does not remove an object that
    /// moves to another caller.
    pub declared: BTreeSet<ObjectKey>,
    /// Objects whose removal is approved by an observation of the integration.
    pub approved: BTreeSet<ObjectKey>,
    /// The removals that the declaration of the shard approves as a whole.
    pub consent: RemovalConsent,
    /// The plans of the shard to which the approval of a removal can be bound.
    pub plans: ShardPlans,
    /// Desired objects that cannot be written. An object that one of them may replace is not removed.
    pub refused: BTreeSet<ObjectKey>,
    /// Objects that the shard does not remove, by incarnation, with the reason.
    pub kept: BTreeMap<String, String>,
    /// The reason why no step of the shard may be applied. Nothing is removed from the scopes of the shard, not even
    /// by other shards.
    pub postponed: Option<String>,
}

/// The plans of a shard to which an approval can be bound: the plan of this round and, for removals that are in both
/// plans, the plan of the first round of the run. (Steps that were applied in an earlier round are not in later
/// plans, but the approval was given for the plan with these steps.)
#[derive(Clone, Debug, Default)]
pub struct ShardPlans {
    current: Option<PlanDigest>,
    first: Option<PlanDigest>,
    /// Objects that the current plan and the first one change in the same way.
    unchanged: BTreeSet<ObjectKey>,
}

impl ShardPlans {
    /// Creates the value for the first round, in which there is no earlier plan.
    pub fn first(plan: PlanDigest) -> Self {
        Self { current: Some(plan), first: None, unchanged: BTreeSet::new() }
    }

    /// Creates the plans of a later round. `unchanged` contains the objects that the current plan changes in the same
    /// way as the plan of the first round.
    pub fn later(current: PlanDigest, first: PlanDigest, unchanged: BTreeSet<ObjectKey>) -> Self {
        Self { current: Some(current), first: Some(first), unchanged }
    }

    /// The plan of this round.
    pub fn current(&self) -> Option<&PlanDigest> {
        self.current.as_ref()
    }

    /// Whether an approval that is bound to `plan` approves this change.
    pub fn allow(&self, plan: &PlanDigest, change: &Change) -> bool {
        let is_first = || self.first.as_ref() == Some(plan) && self.unchanged.contains(&change.object);
        self.current.as_ref() == Some(plan) || is_first()
    }
}

/// A planned shard, as guards see it.
pub trait PlannedSteps {
    /// The action of each step.
    type Action;

    /// The key of the shard.
    fn key(&self) -> &ShardKey;

    /// The facts about the shard.
    fn facts(&self) -> &ShardFacts;

    /// The steps of the shard, in groups.
    fn groups(&self) -> &[StepGroup<Self::Action>];
}

/// The planned steps of a shard, reduced to the data that guards need.
#[derive(Debug)]
pub struct Proposal<A = ()> {
    /// The key of the shard.
    pub key: ShardKey,
    /// The facts about the shard.
    pub facts: ShardFacts,
    /// The steps of the shard, in groups.
    pub groups: Vec<StepGroup<A>>,
}

impl<A> PlannedSteps for Proposal<A> {
    type Action = A;

    fn key(&self) -> &ShardKey {
        &self.key
    }

    fn facts(&self) -> &ShardFacts {
        &self.facts
    }

    fn groups(&self) -> &[StepGroup<A>] {
        &self.groups
    }
}

/// A planned shard whose steps were judged.
pub struct JudgedShard<'p, S: PlannedSteps> {
    shard: &'p S,
    pub(super) groups: Vec<JudgedGroup<'p, S::Action>>,
}

impl<'p, S: PlannedSteps> JudgedShard<'p, S> {
    /// Judges each step of the shard independently.
    pub(super) fn new(
        shard: &'p S,
        clearance: impl Fn(&Change) -> Clearance,
        refusal: impl Fn(&[JudgedChange<'_>]) -> Option<Refusal>,
    ) -> Self {
        let judged = |step: &'p Step<S::Action>| {
            let clearances: Vec<Clearance> = step.changes.iter().map(&clearance).collect();
            let changes: Vec<JudgedChange<'_>> = judged_changes(&step.changes, &clearances).collect();
            JudgedStep { step, refusal: refusal(&changes), clearances }
        };
        let groups = shard.groups().iter().map(|group| JudgedGroup {
            name: &group.name,
            stage: group.stage,
            steps: group.steps.iter().map(&judged).collect(),
        });
        Self { shard, groups: groups.collect() }
    }

    /// The planned shard.
    pub fn shard(&self) -> &'p S {
        self.shard
    }

    /// The judged steps of the shard, in groups.
    pub fn groups(&self) -> &[JudgedGroup<'p, S::Action>] {
        &self.groups
    }

    /// The judged steps of all groups, in order.
    pub fn steps(&self) -> impl Iterator<Item = &JudgedStep<'p, S::Action>> {
        self.groups.iter().flat_map(|group| &group.steps)
    }

    /// The judged steps of all groups, in order.
    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut JudgedStep<'p, S::Action>> {
        self.groups.iter_mut().flat_map(|group| &mut group.steps)
    }

    /// The changes of all steps that are not held.
    pub(super) fn permitted_changes(&self) -> impl Iterator<Item = &'p Change> {
        self.steps().filter_map(JudgedStep::permitted).flat_map(|step| &step.changes)
    }

    /// Holds all steps that follow a held step in a group, because they depend on the held step.
    pub(super) fn hold_successors(&mut self) {
        for group in &mut self.groups {
            let mut before = None;
            for step in &mut group.steps {
                match &step.refusal {
                    Some(refusal) => before = Some(refusal.for_successor()),
                    None => step.refusal.clone_from(&before),
                }
            }
        }
    }
}

/// A group of judged steps.
#[derive(Debug)]
pub struct JudgedGroup<'p, A> {
    name: &'p str,
    stage: PlanStage,
    pub(super) steps: Vec<JudgedStep<'p, A>>,
}

impl<'p, A> JudgedGroup<'p, A> {
    /// The subject of the group, for messages.
    pub fn name(&self) -> &'p str {
        self.name
    }

    /// The stage in which the group is executed.
    pub fn stage(&self) -> PlanStage {
        self.stage
    }

    /// The steps of the group, in order.
    pub fn steps(&self) -> &[JudgedStep<'p, A>] {
        &self.steps
    }
}

/// A planned step, with a refusal if the step is held.
#[derive(Debug)]
pub struct JudgedStep<'p, A> {
    step: &'p Step<A>,
    refusal: Option<Refusal>,
    /// The clearance of each change.
    clearances: Vec<Clearance>,
}

/// A change with its clearance.
#[derive(Clone, Copy, Debug)]
pub struct JudgedChange<'a> {
    /// The change that was judged.
    pub change: &'a Change,
    /// The clearance of the change.
    pub clearance: &'a Clearance,
}

fn judged_changes<'a>(
    changes: &'a [Change],
    clearances: &'a [Clearance],
) -> impl Iterator<Item = JudgedChange<'a>> {
    changes.iter().zip(clearances).map(|(change, clearance)| JudgedChange { change, clearance })
}

impl<'p, A> JudgedStep<'p, A> {
    /// The step, unless it is held: only a permitted step may be applied.
    pub fn permitted(&self) -> Option<&'p Step<A>> {
        self.refusal.is_none().then_some(self.step)
    }

    /// The reason why the step is held; `None` if it is not held.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// The changes of the step.
    pub fn changes(&self) -> &'p [Change] {
        &self.step.changes
    }

    /// The changes of the step, each with its clearance.
    pub fn judged_changes(&self) -> impl Iterator<Item = JudgedChange<'_>> {
        judged_changes(&self.step.changes, &self.clearances)
    }

    /// The changes of the step that count against the budgets.
    pub fn counted_changes(&self) -> impl Iterator<Item = &'p Change> {
        let changes = self.step.changes.iter().zip(&self.clearances);
        changes.filter(|(_, clearance)| clearance.is_counted()).map(|(change, _)| change)
    }

    /// Holds the step. If it is already held, it keeps its first refusal.
    pub(super) fn hold(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }
}
