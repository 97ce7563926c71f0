//! The outcome of a run: its decisions with their reasons, the changes that were planned, held and applied, and its
//! end state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use qontract_access::Mode;
use serde::{Deserialize, Serialize};

use crate::data::QueryLog;
use crate::fault::Fault;
use crate::key::ShardKey;
use crate::options::Options;
use crate::plan::{Change, Degradation, HeldPlanChange, PlanDigest, PlanHint, Rollout, StepResult, Wait};
use crate::slot::Slot;
use crate::source_location::SourceLocation;
use crate::termination::TerminationSignal;
use crate::unplanned::{ReleasedObjects, UnplannedItem};

/// A bundle to which a run is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedBundle {
    /// The SHA-256 of the bundle.
    pub sha: String,
    /// The commit that the bundle was built from, if known.
    pub commit: Option<String>,
}

/// A decision of the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The decision and its reason.
    pub text: String,
    /// The source locations that led to the decision.
    pub places: Vec<SourceLocation>,
}

/// The end state of a run. Records contain it as [`RunEnd::as_str`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// The target matches the data, or will match it when operations in progress are complete.
    #[serde(rename = "ok")]
    Ok,
    /// The differences between base and head do not affect the integration.
    #[serde(rename = "early exit")]
    EarlyExit,
    /// No step failed, but a guard holds a removal until it is approved.
    #[serde(rename = "held")]
    Held,
    /// No step failed, but an operation in the target is still in progress. The exit code is 75
    /// (`EX_TEMPFAIL`): a later run observes it again.
    #[serde(rename = "waiting")]
    Waiting,
    /// The target matches the data, but an object does not work as declared.
    #[serde(rename = "degraded")]
    Degraded,
    /// The command of a foreign integration succeeded. It does not report its changes, so the run is never shown with
    /// an empty plan.
    #[serde(rename = "plan not known")]
    NotKnown,
    /// A step or a phase failed.
    #[serde(rename = "failed")]
    Failed,
    /// A flag selects a shard that does not exist.
    #[serde(rename = "usage error")]
    Usage,
    /// The data does not define the integration.
    #[serde(rename = "not defined")]
    NotDefined,
    /// The integration reads schemas that are not on its allow-list.
    #[serde(rename = "forbidden")]
    Forbidden,
    /// All failures are transient: a retry may succeed. Exit code 75 (`EX_TEMPFAIL`).
    #[serde(rename = "failed for now")]
    Transient,
    /// A shutdown interrupted the run.
    #[serde(rename = "interrupted")]
    Interrupted,
}

impl RunEnd {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            RunEnd::Ok | RunEnd::EarlyExit | RunEnd::Degraded | RunEnd::NotKnown => 0,
            RunEnd::Held | RunEnd::Failed => 1,
            RunEnd::Usage => 2,
            RunEnd::NotDefined => 4,
            RunEnd::Forbidden => 5,
            RunEnd::Transient | RunEnd::Waiting => 75,
            RunEnd::Interrupted => TerminationSignal::Interrupt.exit_code(),
        }
    }

    /// Whether the run ended without a failure, so that the exit code is 0.
    pub fn is_success(self) -> bool {
        self.severity() == Severity::Success
    }

    /// The combined end state of two runs: a failure takes precedence over a success, a permanent failure
    /// over a transient one, and the later of two permanent failures over the earlier one.
    ///
    /// ```
    /// use qontract_runtime::RunEnd;
    ///
    /// assert_eq!(RunEnd::Ok.worse_of(RunEnd::Transient), RunEnd::Transient);
    /// assert_eq!(RunEnd::Transient.worse_of(RunEnd::Failed), RunEnd::Failed);
    /// assert_eq!(RunEnd::Failed.worse_of(RunEnd::Transient), RunEnd::Failed);
    /// assert_eq!(RunEnd::Failed.worse_of(RunEnd::Forbidden), RunEnd::Forbidden);
    /// ```
    #[must_use]
    pub fn worse_of(self, later: Self) -> Self {
        let is_later = match later.severity() {
            Severity::Success => false,
            Severity::Temporary => self.is_success(),
            Severity::Permanent => true,
        };
        if is_later { later } else { self }
    }

    fn severity(self) -> Severity {
        match self {
            RunEnd::Ok | RunEnd::EarlyExit | RunEnd::Degraded | RunEnd::NotKnown => Severity::Success,
            RunEnd::Transient | RunEnd::Waiting => Severity::Temporary,
            RunEnd::Held
            | RunEnd::Failed
            | RunEnd::Usage
            | RunEnd::NotDefined
            | RunEnd::Forbidden
            | RunEnd::Interrupted => Severity::Permanent,
        }
    }

    /// The name of the end state in records.
    pub fn as_str(self) -> &'static str {
        match self {
            RunEnd::Ok => "ok",
            RunEnd::EarlyExit => "early exit",
            RunEnd::Held => "held",
            RunEnd::Waiting => "waiting",
            RunEnd::Degraded => "degraded",
            RunEnd::NotKnown => "plan not known",
            RunEnd::Failed => "failed",
            RunEnd::Usage => "usage error",
            RunEnd::NotDefined => "not defined",
            RunEnd::Forbidden => "forbidden",
            RunEnd::Transient => "failed for now",
            RunEnd::Interrupted => "interrupted",
        }
    }

    /// The time at which a loop runs again after this end.
    pub fn next_run(self) -> NextRun {
        match self {
            // A held run needs new data, which wakes the loop in any case.
            RunEnd::Ok | RunEnd::EarlyExit | RunEnd::Held | RunEnd::Degraded | RunEnd::NotKnown => {
                NextRun::OnSchedule
            }
            RunEnd::Waiting => NextRun::Soon,
            RunEnd::Failed
            | RunEnd::Usage
            | RunEnd::NotDefined
            | RunEnd::Forbidden
            | RunEnd::Transient
            | RunEnd::Interrupted => NextRun::AfterBackoff,
        }
    }
}

/// The severity of an end state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// The run did not fail.
    Success,
    /// A later run may succeed.
    Temporary,
    /// A later run fails again, unless something changes.
    Permanent,
}

/// The time at which a loop runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// After the interval of the loop.
    OnSchedule,
    /// After the first back-off, which does not grow: an operation in the target is in progress.
    Soon,
    /// After a back-off that grows with each failure.
    AfterBackoff,
}

/// Whether the changes of a shard are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanKnowledge {
    /// The outcome contains the changes.
    #[default]
    Known,
    /// A foreign command made or planned the changes but does not report them.
    NotKnown,
}

/// Whether a shard ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardState {
    /// The shard ran.
    Ran,
    /// The shard ran with an empty desired state, because it exists only in base.
    Orphaned,
    /// The shard exists only in base. It was planned, but nothing of it is removed, because an error in head may
    /// concern it.
    Postponed,
    /// The shard did not run, for this reason.
    Skipped(SkipReason),
}

/// The reason why a shard did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The shard's declaration is invalid.
    Invalid,
    /// The data disables the integration for this object.
    Disabled(String),
    /// The shard's target address is new or changed in head. It is not trusted before the change is merged.
    UntrustedTarget,
    /// The shard exists only in base, and base disables the integration for this object.
    DisabledInBase(String),
}

impl SkipReason {
    /// The reason without its details.
    pub fn kind(&self) -> SkipKind {
        match self {
            Self::Invalid => SkipKind::Invalid,
            Self::Disabled(_) | Self::DisabledInBase(_) => SkipKind::Disabled,
            Self::UntrustedTarget => SkipKind::UntrustedTarget,
        }
    }
}

/// The reason why a shard did not run, as a word. Records contain it as [`SkipKind::as_str`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SkipKind {
    /// The shard's declaration is invalid.
    #[serde(rename = "wrong")]
    Invalid,
    /// The data disables the integration for this object.
    #[serde(rename = "disabled")]
    Disabled,
    /// The shard's target address is not trusted.
    #[serde(rename = "unapproved")]
    UntrustedTarget,
}

impl SkipKind {
    /// The name of the reason in records, and its label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "wrong",
            Self::Disabled => "disabled",
            Self::UntrustedTarget => "unapproved",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid => f.write_str("its declaration has errors"),
            Self::Disabled(by) => write!(f, "disabled for {by}"),
            Self::UntrustedTarget => {
                f.write_str("its address is new or changed: not contacted in a dry run without --trust-head")
            }
            Self::DisabledInBase(by) => write!(f, "only in base, and disabled there for {by}"),
        }
    }
}

/// The way in which held changes can be approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalForm {
    /// With a datafile of removal approvals.
    #[default]
    Datafile,
    /// By following the integration's own instructions.
    Own,
}

impl ApprovalForm {
    /// Whether held changes can be approved with a datafile.
    pub fn is_datafile(&self) -> bool {
        *self == Self::Datafile
    }
}

/// The outcome of a shard.
#[derive(Clone, Debug)]
pub struct ShardOutcome {
    /// Whether the shard ran.
    pub state: ShardState,
    /// Number of rounds.
    pub rounds: u32,
    /// The time of the first plan, as passed to the integration; absent for functions, which have one plan per
    /// change.
    pub planned_at: Option<Timestamp>,
    /// The digest of the first plan.
    pub plan_digest: Option<PlanDigest>,
    /// The changes that were planned and not held, over all rounds.
    pub changes: Vec<Change>,
    /// The changes that were held in the last round.
    pub held: Vec<HeldPlanChange>,
    /// Number of observations while the run waited.
    pub observations: u32,
    /// Operations in progress in the target.
    pub waits: Vec<Wait>,
    /// Rollouts in progress that the run does not wait for.
    pub rollouts: Vec<Rollout>,
    /// Objects that do not work as declared.
    pub degraded: Vec<Degradation>,
    /// Remarks about the data in the last round.
    pub hints: Vec<PlanHint>,
    /// Whether `changes` contains all changes of the shard.
    pub plan: PlanKnowledge,
    /// The last lines of the output of a foreign command, redacted.
    pub output: Vec<String>,
    /// Notes; none of them is a failure.
    pub notes: Vec<String>,
    /// Objects and scopes that were not planned in the last round.
    pub unplanned: Vec<UnplannedItem>,
    /// The faults of the shard.
    pub faults: Vec<Fault>,
    /// Number of applied steps.
    pub applied: usize,
    /// Number of objects that were removed without an approval, which count against the budgets.
    pub removed: usize,
    /// Number of removals that the declaration of the shard approves as a whole, in the last round.
    pub consented: usize,
    /// The integration's own instructions for approving the held changes of the last plan, if any.
    pub approval: Option<String>,
    /// The printed desired state, in a run that prints it. It is output and not part of a record.
    pub printed: Option<String>,
}

impl ShardOutcome {
    /// Creates an outcome without rounds.
    pub fn new(state: ShardState) -> Self {
        Self {
            state,
            rounds: 0,
            planned_at: None,
            plan_digest: None,
            changes: Vec::new(),
            held: Vec::new(),
            observations: 0,
            waits: Vec::new(),
            rollouts: Vec::new(),
            degraded: Vec::new(),
            hints: Vec::new(),
            plan: PlanKnowledge::Known,
            output: Vec::new(),
            notes: Vec::new(),
            unplanned: Vec::new(),
            faults: Vec::new(),
            applied: 0,
            removed: 0,
            consented: 0,
            approval: None,
            printed: None,
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The name of the run.
    pub run: String,
    /// The integration that ran.
    pub integration: String,
    /// Whether the run could write to targets.
    pub mode: Mode,
    /// The time at which the run started.
    pub now: Timestamp,
    /// The bundle that the run worked on.
    pub head: PinnedBundle,
    /// The base bundle of a comparison.
    pub base: Option<PinnedBundle>,
    /// The values of the integration's flags.
    pub options: Options,
    /// The shard slot of the process.
    pub slot: Slot,
    /// The shards to which the run was restricted, if it was restricted.
    pub only_shards: Option<BTreeSet<ShardKey>>,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
    /// The locations of the differences that affect the integration.
    pub causes: Vec<SourceLocation>,
    /// The causes in renamed files, with the paths of these files in base.
    pub renamed: BTreeMap<SourceLocation, Box<str>>,
    /// The outcome of each shard.
    pub shards: BTreeMap<ShardKey, ShardOutcome>,
    /// Objects that base manages and head does not manage, although head does not remove them; only in a dry run.
    pub released: Vec<ReleasedObjects>,
    /// Faults of the run as a whole.
    pub faults: Vec<Fault>,
    /// Warnings; none of them is a failure.
    pub warnings: Vec<String>,
    /// The log of all reads of the data.
    pub query_log: QueryLog,
    /// The datafile that would approve the removals that guards hold, or the integration's own instructions.
    pub approval: Option<String>,
    /// The form of `approval`.
    pub approval_form: ApprovalForm,
    /// Number of removals that earlier runs held and that are no longer planned, because the data no longer declares
    /// their shards.
    pub unplanned_holds: usize,
    /// The end state.
    pub ended: RunEnd,
    /// The signal that interrupted the run.
    pub interruption: Option<TerminationSignal>,
}

impl RunOutcome {
    /// The exit code. The exit code of an interrupted run depends on the signal.
    pub fn exit_code(&self) -> u8 {
        match (self.ended, self.interruption) {
            (RunEnd::Interrupted, Some(by)) => by.exit_code(),
            (ended, _) => ended.code(),
        }
    }

    /// All faults, of the run and of its shards.
    pub fn all_faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().chain(self.shards.values().flat_map(|shard| &shard.faults))
    }

    /// The combined digest of the first plans of all shards; `None` if nothing was planned.
    pub fn plan_digest(&self) -> Option<PlanDigest> {
        let digests = self.shards.iter().filter_map(|(key, shard)| Some((key, shard.plan_digest.as_ref()?)));
        let digests: BTreeMap<&ShardKey, &PlanDigest> = digests.collect();
        (!digests.is_empty()).then(|| PlanDigest::of_shards(&digests))
    }

    /// Number of applied steps.
    pub fn applied(&self) -> usize {
        self.shards.values().map(|shard| shard.applied).sum()
    }

    /// Sets the end state from faults, holds and the shutdown signal.
    pub(crate) fn conclude(&mut self, interruption: Option<TerminationSignal>) {
        // A removal that an earlier run held stays held, even if this run could not plan it.
        let is_held_by_ledger = self.mode == Mode::Real && self.unplanned_holds > 0;
        let held = self.approval.is_some() || is_held_by_ledger;
        // A dry run reports operations in progress, but its result does not depend on them.
        let waits = self.mode == Mode::Real && self.shards.values().any(|shard| !shard.waits.is_empty());
        let degraded = self.shards.values().any(|shard| !shard.degraded.is_empty());
        let is_known = self.shards.values().all(|shard| shard.plan == PlanKnowledge::Known);
        let failed = self.all_faults().next().is_some();
        let transient = self.all_faults().all(Fault::is_transient);
        self.ended = match self.ended {
            RunEnd::Ok | RunEnd::EarlyExit if !self.query_log.forbidden.is_empty() => RunEnd::Forbidden,
            RunEnd::Ok | RunEnd::EarlyExit if failed && (held || !transient) => RunEnd::Failed,
            RunEnd::Ok | RunEnd::EarlyExit if failed => RunEnd::Transient,
            RunEnd::Ok | RunEnd::EarlyExit if held => RunEnd::Held,
            RunEnd::Ok | RunEnd::EarlyExit if waits => RunEnd::Waiting,
            RunEnd::Ok | RunEnd::EarlyExit if degraded => RunEnd::Degraded,
            RunEnd::Ok | RunEnd::EarlyExit if !is_known => RunEnd::NotKnown,
            other => other,
        };
        let is_interruptible = match self.ended {
            RunEnd::Ok
            | RunEnd::Held
            | RunEnd::Waiting
            | RunEnd::Degraded
            | RunEnd::NotKnown
            | RunEnd::Failed
            | RunEnd::Transient => true,
            RunEnd::EarlyExit
            | RunEnd::Usage
            | RunEnd::NotDefined
            | RunEnd::Forbidden
            | RunEnd::Interrupted => false,
        };
        if interruption.is_some() && is_interruptible {
            (self.ended, self.interruption) = (RunEnd::Interrupted, interruption);
            let mut changes = self.shards.values().flat_map(|shard| &shard.changes);
            let text = if changes.all(|change| change.result.is_planned()) {
                "interrupted before the first step; the next run plans again"
            } else {
                "interrupted; the next run plans again and applies the rest"
            };
            self.warnings.push(text.to_owned());
        }
        if self.ended == RunEnd::NotKnown {
            let text = "plan not known: the command does not report its changes, and no guard applies to them; its output is in the record of the run";
            self.warnings.push(text.to_owned());
        }
        self.close_results();
    }

    /// Marks the changes of a real run that are still planned as not tried.
    fn close_results(&mut self) {
        if self.mode != Mode::Real {
            return;
        }
        for change in self.shards.values_mut().flat_map(|shard| &mut shard.changes) {
            if change.result.is_planned() {
                change.result = StepResult::NotTried;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use jiff::Timestamp;
    use qontract_access::Mode;

    use super::{ApprovalForm, NextRun, PinnedBundle, RunEnd, RunOutcome, ShardOutcome, ShardState};
    use crate::data::QueryLog;
    use crate::fault::Fault;
    use crate::key::{Scope, ShardKey};
    use crate::options::Options;
    use crate::plan::{Change, ChangeKind, ObjectKey, StepResult};
    use crate::slot::Slot;
    use crate::termination::TerminationSignal;

    fn outcome(ended: RunEnd) -> RunOutcome {
        RunOutcome {
            run: "run".to_owned(),
            integration: "x".to_owned(),
            mode: Mode::DryRun,
            now: Timestamp::UNIX_EPOCH,
            head: PinnedBundle { sha: "sha".to_owned(), commit: None },
            base: None,
            options: Options::default(),
            slot: Slot::default(),
            only_shards: None,
            decisions: Vec::new(),
            causes: Vec::new(),
            renamed: BTreeMap::new(),
            shards: BTreeMap::new(),
            released: Vec::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
            query_log: QueryLog::default(),
            approval: None,
            approval_form: ApprovalForm::default(),
            unplanned_holds: 0,
            ended,
            interruption: None,
        }
    }

    fn check(change: impl Fn(&mut RunOutcome), expect: RunEnd) {
        for before in [RunEnd::Ok, RunEnd::EarlyExit] {
            let mut outcome = outcome(before);
            change(&mut outcome);
            outcome.conclude(None);
            let expect = if expect == RunEnd::Ok { before } else { expect };
            assert_eq!(outcome.ended, expect);
        }
        for decided in [RunEnd::NotDefined, RunEnd::Forbidden, RunEnd::Usage] {
            let mut outcome = outcome(decided);
            change(&mut outcome);
            outcome.conclude(Some(TerminationSignal::Interrupt));
            assert_eq!(outcome.ended, decided, "an earlier decision stays");
        }
    }

    #[test]
    fn an_end_state_survives_a_round_trip_through_a_record() {
        let all = [
            (RunEnd::Ok, 0, NextRun::OnSchedule),
            (RunEnd::EarlyExit, 0, NextRun::OnSchedule),
            (RunEnd::Held, 1, NextRun::OnSchedule),
            (RunEnd::Waiting, 75, NextRun::Soon),
            (RunEnd::Degraded, 0, NextRun::OnSchedule),
            (RunEnd::NotKnown, 0, NextRun::OnSchedule),
            (RunEnd::Failed, 1, NextRun::AfterBackoff),
            (RunEnd::Usage, 2, NextRun::AfterBackoff),
            (RunEnd::NotDefined, 4, NextRun::AfterBackoff),
            (RunEnd::Forbidden, 5, NextRun::AfterBackoff),
            (RunEnd::Transient, 75, NextRun::AfterBackoff),
            (RunEnd::Interrupted, 130, NextRun::AfterBackoff),
        ];
        for (ended, code, next_run) in all {
            let written = serde_json::to_value(ended).unwrap();
            assert_eq!(written, ended.as_str());
            assert_eq!(serde_json::from_value::<RunEnd>(written).unwrap(), ended);
            assert_eq!((ended.code(), ended.next_run()), (code, next_run), "{ended:?}");
            assert_eq!(ended.is_success(), code == 0, "{ended:?}");
        }
    }

    #[test]
    fn the_worse_of_two_ends_decides() {
        let check = |ends: [RunEnd; 2], expect| assert_eq!(ends[0].worse_of(ends[1]), expect, "{ends:?}");
        check([RunEnd::Ok, RunEnd::Degraded], RunEnd::Ok);
        check([RunEnd::Degraded, RunEnd::Waiting], RunEnd::Waiting);
        check([RunEnd::Waiting, RunEnd::Ok], RunEnd::Waiting);
        check([RunEnd::Waiting, RunEnd::Transient], RunEnd::Waiting);
        check([RunEnd::Transient, RunEnd::Held], RunEnd::Held);
        check([RunEnd::Held, RunEnd::Transient], RunEnd::Held);
        check([RunEnd::Held, RunEnd::NotDefined], RunEnd::NotDefined);
        check([RunEnd::Forbidden, RunEnd::EarlyExit], RunEnd::Forbidden);
    }

    #[test]
    fn a_shutdown_ends_a_run_that_had_something_to_do() {
        let check = |ended, by: TerminationSignal, expect, code| {
            let mut outcome = outcome(ended);
            outcome.conclude(Some(by));
            assert_eq!((outcome.ended, outcome.exit_code()), (expect, code));
            assert_eq!(outcome.warnings.len(), usize::from(ended != expect));
        };
        check(RunEnd::Ok, TerminationSignal::Terminate, RunEnd::Interrupted, 143);
        check(RunEnd::Failed, TerminationSignal::Terminate, RunEnd::Interrupted, 143);
        check(RunEnd::Transient, TerminationSignal::Interrupt, RunEnd::Interrupted, 130);
        check(RunEnd::EarlyExit, TerminationSignal::Interrupt, RunEnd::EarlyExit, 0);
        assert_eq!((RunEnd::Interrupted.code(), RunEnd::Interrupted.as_str()), (130, "interrupted"));
    }

    #[test]
    fn changes_without_a_result_in_a_real_run_were_not_tried() {
        let check = |mode, before, expect| {
            let mut outcome = RunOutcome { mode, ..outcome(RunEnd::Ok) };
            let object =
                ObjectKey { scope: Scope::new([("a", "b")]), kind: String::new(), name: String::new() };
            let change = Change { result: before, ..Change::new(ChangeKind::Add, object, "x") };
            let shard = ShardOutcome { changes: vec![change], ..ShardOutcome::new(ShardState::Ran) };
            outcome.shards.insert(ShardKey::default(), shard);
            outcome.conclude(None);
            assert_eq!(outcome.shards[&ShardKey::default()].changes[0].result, expect);
        };
        check(Mode::Real, StepResult::Planned, StepResult::NotTried);
        check(Mode::Real, StepResult::Done, StepResult::Done);
        check(Mode::DryRun, StepResult::Planned, StepResult::Planned);
    }

    #[test]
    fn the_end_state_follows_from_faults_and_holds() {
        let forbid = |outcome: &mut RunOutcome| {
            outcome.query_log.forbidden.insert("q".to_owned(), BTreeSet::from(["/s".to_owned()]));
        };
        let fail = |outcome: &mut RunOutcome| outcome.faults.push(Fault::author("wrong"));
        let transient = |outcome: &mut RunOutcome| outcome.faults.push(Fault::remote("away"));
        let hold = |outcome: &mut RunOutcome| outcome.approval = Some(String::new());
        check(|_| {}, RunEnd::Ok);
        check(forbid, RunEnd::Forbidden);
        check(fail, RunEnd::Failed);
        check(hold, RunEnd::Held);
        check(transient, RunEnd::Transient);
        check(
            |outcome| {
                transient(outcome);
                hold(outcome);
            },
            RunEnd::Failed,
        );
        check(
            |outcome| {
                transient(outcome);
                fail(outcome);
            },
            RunEnd::Failed,
        );
        check(
            |outcome| {
                forbid(outcome);
                fail(outcome);
            },
            RunEnd::Forbidden,
        );
    }
}
