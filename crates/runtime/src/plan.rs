//! Plans: ordered, printable data. A *step* is the unit of execution; its *changes* are the units that
//! reports show and guards check.

mod digest;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

pub use qontract_access::ChangeKind;
use serde::{Deserialize, Serialize};

use crate::field_diff::DiffEntry;
use crate::key::{CALLER_DIMENSION, Scope};
use crate::source_location::SourceLocation;

pub use digest::PlanDigest;
pub(crate) use digest::{DigestedNames, PlanOutline};

/// The identity of an object in a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectKey {
    /// The scope of the object.
    pub scope: Scope,
    /// The kind of the object.
    pub kind: String,
    /// The name, which is unique for each kind in the scope.
    pub name: String,
}

impl ObjectKey {
    /// Whether this object may be the replacement of the removed object: it is in the same scope, or it has the same
    /// name and another kind.
    pub(crate) fn may_replace(&self, removed: &Self) -> bool {
        self.scope == removed.scope || self.name == removed.name
    }

    /// The identity of the object in the target, regardless of the caller that declares it.
    pub(crate) fn without_caller(&self) -> Self {
        let parts = self.scope.parts().filter(|(name, _)| *name != CALLER_DIMENSION);
        Self { scope: Scope::new(parts), kind: self.kind.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)?;
        self.scope.write_in_parentheses(f)
    }
}

/// The result of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepResult {
    /// Only planned, because the run is a dry run or a guard holds the change.
    #[default]
    Planned,
    /// The change was applied.
    Done,
    /// Failed; the change may be partially applied.
    Failed,
    /// Abandoned because of a shutdown; the change may be partially applied.
    Interrupted,
    /// Not attempted, because an earlier step failed or a shutdown was requested.
    NotTried,
}

impl StepResult {
    /// Whether the change was not attempted yet.
    pub fn is_planned(&self) -> bool {
        *self == Self::Planned
    }
}

/// The loss of owned keys of an object. A key is a leaf: a scalar field or a list item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FieldLoss {
    /// Number of keys that are lost.
    pub lost: usize,
    /// Number of keys before the change that are declared or are owned only by the integration.
    pub of: usize,
    /// Number of lists that lose all of their items.
    pub lists: usize,
    /// Whether the numbers depend on a secret. If so, a dry run ignores the loss, because a held change would reveal
    /// information about the secret.
    #[serde(skip)]
    pub depends_on_secret: bool,
}

/// One change of one object: the unit that reports show and guards check.
///
/// ```
/// use qontract_runtime::{Change, ChangeKind, FieldChange, FieldDiff, ObjectKey, Scope};
///
/// let scope = Scope::new([("server", "s1")]);
/// let object = ObjectKey { scope, kind: "Group".to_owned(), name: "dev".to_owned() };
/// let change = Change::new(ChangeKind::Change, object, "update group").with_diff([FieldDiff {
///     change: FieldChange::Changed,
///     path: "limit".to_owned(),
///     before: Some(5.into()),
///     after: Some(8.into()),
/// }]);
/// assert_eq!(change.to_string(), "~ update group `dev` (server=s1)");
/// assert_eq!(change.diff[0].to_string(), "~ limit: 5 → 8");
/// assert!(change.result.is_planned());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The object that changes.
    #[serde(rename = "thing")]
    pub object: ObjectKey,
    /// The action as shown to people: `create namespace`.
    pub what: String,
    /// The fields that differ. **Invariant:** the entries contain no secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<DiffEntry>,
    /// The entries of `diff` with the names of the fields that come from a secret; empty unless `diff` contains only
    /// the number of these fields. The record of a real run contains these entries instead of `diff`; a dry run never
    /// shows them.
    #[serde(skip)]
    pub diff_by_name: Vec<DiffEntry>,
    /// The fields of an object that is created. A run with [`Bodies::Shown`](crate::Bodies::Shown) shows them
    /// instead of `diff`.
    #[serde(skip)]
    pub body: Vec<DiffEntry>,
    /// The fields that the object loses if it is not removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<FieldLoss>,
    /// Distinguishes the removed object from earlier and later objects with the same name, for example by its uid. If
    /// an object is created again, the removal ledger counts its removal separately.
    #[serde(skip)]
    pub incarnation: Option<String>,
    /// Provenance: the source location that declares the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
    /// The result in a real run.
    #[serde(skip_serializing_if = "StepResult::is_planned")]
    pub result: StepResult,
}

impl Change {
    /// Creates a change of `object`; `what` is the action as shown to people.
    pub fn new(kind: ChangeKind, object: ObjectKey, what: impl Into<String>) -> Self {
        Self {
            kind,
            object,
            what: what.into(),
            diff: Vec::new(),
            diff_by_name: Vec::new(),
            body: Vec::new(),
            loss: None,
            incarnation: None,
            place: None,
            result: StepResult::Planned,
        }
    }

    /// Whether two changes are equal, ignoring their results.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { kind, object, what, diff, diff_by_name, body, loss, incarnation: _, place, result: _ } =
            self;
        other.does_same(*kind, object, what)
            && (diff, diff_by_name, place) == (&other.diff, &other.diff_by_name, &other.place)
            && (body, loss) == (&other.body, &other.loss)
    }

    /// Whether the change applies this action to this object, ignoring diff and location.
    fn does_same(&self, kind: ChangeKind, object: &ObjectKey, what: &str) -> bool {
        self.kind == kind && self.object == *object && self.what == what
    }

    /// Sets the location in the data.
    #[must_use]
    pub fn at(mut self, place: Option<SourceLocation>) -> Self {
        self.place = place;
        self
    }

    /// Sets the diff.
    #[must_use]
    pub fn with_diff<D: Into<DiffEntry>>(mut self, entries: impl IntoIterator<Item = D>) -> Self {
        self.diff = entries.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} `{}`", self.kind.sign(), self.what, self.object.name)?;
        self.object.scope.write_in_parentheses(f)
    }
}

/// Sets the result of a change in the list of reported changes.
pub(crate) fn set_result(changes: &mut [Change], made: &Change, result: StepResult) {
    let is_it = |change: &Change| change.does_same(made.kind, &made.object, &made.what);
    let open = changes.iter().position(|change| change.result.is_planned() && is_it(change));
    if let Some(place) = open.or_else(|| changes.iter().position(is_it)) {
        changes[place].result = result;
    }
}

/// The unit of execution.
#[derive(Debug)]
pub struct Step<A> {
    /// The changes of the step; never empty.
    pub changes: Vec<Change>,
    /// The integration's own description of the effect.
    pub action: A,
}

impl<A> Step<A> {
    /// Creates a step with one change.
    pub fn new(change: Change, action: A) -> Self {
        Self { changes: vec![change], action }
    }
}

/// A stage of a plan; stages are executed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanStage {
    /// Writes, in ascending order.
    Write(u32),
    /// Steps that depend on all writes, such as restarts.
    AfterWrites,
    /// Removals, in descending order.
    Remove(Reverse<u32>),
}

impl Default for PlanStage {
    fn default() -> Self {
        Self::Write(0)
    }
}

/// Steps that are executed in order. A failed step stops only its own group.
///
/// ```
/// use qontract_runtime::{Change, ChangeKind, ObjectKey, Plan, PlanStage, Scope, Step, StepGroup};
///
/// let step = |kind: &str, name: &str, action: &'static str| {
///     let object = ObjectKey { scope: Scope::default(), kind: kind.to_owned(), name: name.to_owned() };
///     Step::new(Change::new(ChangeKind::Add, object, format!("create {kind}")), action)
/// };
/// // The member is only added if the group was created.
/// let steps = vec![step("group", "dev", "POST /groups/dev"), step("member", "ann", "POST /members/ann")];
/// let group = StepGroup { name: "group `dev`".to_owned(), stage: PlanStage::default(), steps };
/// let plan = Plan { groups: vec![group], ..Plan::default() };
/// assert_eq!(plan.changes().count(), 2);
/// ```
#[derive(Debug)]
pub struct StepGroup<A> {
    /// The subject of the group, for messages.
    pub name: String,
    /// The stage of the group. The group is executed after all groups of earlier stages, and concurrently with the
    /// other groups of its stage.
    pub stage: PlanStage,
    /// The steps of the group, in order.
    pub steps: Vec<Step<A>>,
}

/// An operation in progress in the target, such as a rollout. Dependent steps are planned when a later observation
/// shows that the operation is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// A description of the operation.
    pub text: String,
    /// Provenance: the source location that declares the object of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
}

/// A rollout that is not complete: the target has accepted the declared state of an object but has not made it
/// effective yet. A run reports rollouts, and waits for them only on request (`--wait`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rollout {
    /// The object that is rolled out.
    pub object: ObjectKey,
    /// The progress of the rollout.
    pub progress: RolloutProgress,
    /// The progress as shown to people: `1 of 3 replicas are updated`.
    pub text: String,
    /// Provenance: the source location that declares the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
}

/// The progress of a rollout that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutProgress {
    /// The target is working on the rollout.
    InProgress,
    /// The rollout failed in the target.
    Failed,
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.text)
    }
}

/// A remark about the data that is not a failure, such as an entry that no longer has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanHint {
    /// The text of the remark.
    pub text: String,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// An object that works, but not as declared, although no step failed: for example, the target has stopped a
/// rollout, or still uses an old image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Degradation {
    /// A description.
    pub text: String,
    /// Provenance: the source location that declares the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
}

/// A change that is not applied, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldPlanChange {
    /// The change that is not applied.
    pub change: Change,
    /// The reason why the change is not applied.
    pub why: String,
    /// The condition under which the change will be applied.
    pub hold: Hold,
    /// The plan to which an approval of the change can be bound; only for changes that guards hold.
    pub plan: Option<PlanDigest>,
    /// The steps that release the change, if the integration itself holds it.
    pub remedy: Option<String>,
}

/// The condition under which a change that is not applied now will be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// The change will be applied when it is approved: a guard holds it.
    Approval,
    /// The change will be applied when an earlier change is approved: a guard holds the earlier change.
    Predecessor,
    /// The change is undecided, not held: its scope was not read, or an object in the scope is unresolved. No
    /// approval releases the change.
    Unresolved,
}

impl Hold {
    /// Whether a guard holds the change until it is approved.
    pub const fn is_held(self) -> bool {
        match self {
            Hold::Approval | Hold::Predecessor => true,
            Hold::Unresolved => false,
        }
    }
}

/// The changes that take a shard from its current to its desired state, as ordered data.
///
/// The action of a step can be of any type; only the integration interprets it.
///
/// ```
/// use std::cmp::Reverse;
///
/// use qontract_runtime::{Change, ChangeKind, ObjectKey, Plan, PlanStage, Scope};
///
/// let change = |kind, name: &str, what: &str| {
///     let (scope, name) = (Scope::new([("server", "s1")]), name.to_owned());
///     Change::new(kind, ObjectKey { scope, kind: "Group".to_owned(), name }, what)
/// };
/// let mut plan = Plan::default();
/// plan.add_step(change(ChangeKind::Add, "dev", "create group"), "POST /groups/dev");
/// let removal = change(ChangeKind::Remove, "old", "remove group");
/// plan.add_step_in(PlanStage::Remove(Reverse(0)), removal, "DELETE /groups/old");
///
/// let lines: Vec<String> = plan.changes().map(ToString::to_string).collect();
/// assert_eq!(lines, ["+ create group `dev` (server=s1)", "- remove group `old` (server=s1)"]);
/// assert_eq!(plan.groups[1].steps[0].action, "DELETE /groups/old");
/// assert!(plan.groups[0].stage < plan.groups[1].stage, "removals come last");
/// ```
#[derive(Debug)]
pub struct Plan<A> {
    /// Steps in groups.
    pub groups: Vec<StepGroup<A>>,
    /// Operations in progress in the target that the run waits for.
    pub waits: Vec<Wait>,
    /// Rollouts that are not complete.
    pub rollouts: Vec<Rollout>,
    /// Objects that do not work as declared.
    pub degraded: Vec<Degradation>,
    /// Remarks about the data.
    pub hints: Vec<PlanHint>,
    /// Changes that the integration itself holds.
    pub held: Vec<HeldPlanChange>,
    /// Faults of individual objects; the rest of the plan does not depend on them.
    pub faults: Vec<crate::fault::Fault>,
    /// Desired objects that cannot be written. An object that one of them may replace is not removed.
    pub refused: BTreeSet<ObjectKey>,
    /// Instructions for approving the changes that guards hold, if they are not approved with a datafile of removal
    /// approvals.
    pub approval: Option<String>,
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            waits: Vec::new(),
            rollouts: Vec::new(),
            degraded: Vec::new(),
            hints: Vec::new(),
            held: Vec::new(),
            faults: Vec::new(),
            refused: BTreeSet::new(),
            approval: None,
        }
    }
}

impl<A> Plan<A> {
    /// Adds a step as a separate group in the first stage.
    pub fn add_step(&mut self, change: Change, action: A) {
        self.add_step_in(PlanStage::default(), change, action);
    }

    /// Adds a step as a separate group in this stage.
    pub fn add_step_in(&mut self, stage: PlanStage, change: Change, action: A) {
        let name = change.object.to_string();
        self.groups.push(StepGroup { name, stage, steps: vec![Step::new(change, action)] });
    }

    /// Refuses the write of a desired object, for the reason in `fault`. Like a failed write, the refusal postpones
    /// the removals of objects that the desired object may replace.
    pub fn refuse_write(&mut self, object: &ObjectKey, fault: crate::fault::Fault) {
        self.refused.insert(object.clone());
        self.faults.push(fault);
    }

    /// Drops the losses of keys whose numbers depend on a secret.
    pub(crate) fn drop_secret_losses(&mut self) {
        let steps = self.groups.iter_mut().flat_map(|group| &mut group.steps);
        for change in steps.flat_map(|step| &mut step.changes) {
            change.loss = change.loss.filter(|loss| !loss.depends_on_secret);
        }
    }

    /// All changes, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.groups.iter().flat_map(|group| &group.steps).flat_map(|step| &step.changes)
    }

    /// Whether the plan has no steps.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.steps.is_empty())
    }

    /// Converts the actions of the plan.
    pub fn map<B>(self, with: impl Fn(A) -> B) -> Plan<B> {
        let Self { groups, waits, rollouts, degraded, hints, held, faults, approval, refused } = self;
        let step = |step: Step<A>| Step { changes: step.changes, action: with(step.action) };
        let group = |StepGroup { name, stage, steps }: StepGroup<A>| StepGroup {
            name,
            stage,
            steps: steps.into_iter().map(&step).collect(),
        };
        let groups = groups.into_iter().map(group).collect();
        Plan { groups, waits, rollouts, degraded, hints, held, faults, refused, approval }
    }
}

#[cfg(test)]
mod tests {
    use super::StepResult::{self, Done, Failed, Planned};
    use super::{Change, ChangeKind, ObjectKey, set_result};
    use crate::key::Scope;

    fn change(name: &str) -> Change {
        let object =
            ObjectKey { scope: Scope::new([("app", "a")]), kind: "card".to_owned(), name: name.to_owned() };
        Change::new(ChangeKind::Add, object, "write card")
    }

    #[test]
    fn a_result_is_set_on_its_own_change() {
        let check = |made: &[(&str, StepResult)], expect: [StepResult; 3]| {
            let mut changes = [change("a"), change("b").with_diff(vec!["+ x".to_owned()]), change("b")];
            for (name, result) in made {
                set_result(&mut changes, &change(name), *result);
            }
            assert_eq!(changes.map(|change| change.result), expect, "{made:?}");
        };
        check(&[], [Planned, Planned, Planned]);
        check(&[("a", Done)], [Done, Planned, Planned]);
        check(&[("b", Failed)], [Planned, Failed, Planned]);
        check(&[("b", Failed), ("b", Done)], [Planned, Failed, Done]);
        check(&[("a", Failed), ("a", Done)], [Done, Planned, Planned]);
        check(&[("c", Done)], [Planned, Planned, Planned]);
    }

    #[test]
    fn changes_are_compared_without_their_results() {
        let done = Change { result: Done, ..change("a") };
        assert!(done.is_same(&change("a")));
        assert!(!done.is_same(&change("b")));
        assert!(!done.is_same(&change("a").with_diff(vec!["+ x".to_owned()])));
        assert!(!done.is_same(&Change { kind: ChangeKind::Remove, ..change("a") }));
        assert!(!done.is_same(&Change { what: "burn card".to_owned(), ..change("a") }));
    }
}
