//! The stored record of a run: plain JSON, in which source locations are `file:line`.
//!
//! Runs never read records. **Invariant:** a record contains no secret, because an outcome contains none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use qontract_access::Mode;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::fault::{Fault, Responsible};
use crate::field_diff::{DiffEntry, FieldDiff};
use crate::key::Scope;
use crate::outcome::{
    ApprovalForm, PinnedBundle, RunEnd, RunOutcome, ShardOutcome, ShardState, SkipKind, SkipReason,
};
use crate::plan::{Change, ChangeKind, Hold, PlanDigest, Rollout, StepResult};
use crate::source_location::SourceLocation;
use crate::unplanned::{ObjectFate, ReleasedObjects, UnplannedItem};

/// The version of the record format. Records without a version have version 1, in which a held run ended as `failed`.
/// Before version 3, a run with operations in progress ended as `ok`. Before version 4, plans had no digests. Before
/// version 5, `began` was a number of seconds since 1970. All fields that later versions added are absent in earlier
/// records.
pub const RECORD_VERSION: u32 = 5;

fn first_version() -> u32 {
    1
}

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of this format.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The name of the run.
    pub run: String,
    /// The start time of the run, in whole seconds.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub began: Timestamp,
    /// The start time of the run with fractions of a second. Integrations use this time instead of a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Timestamp>,
    /// The duration of the run, in milliseconds.
    pub milliseconds: u64,
    /// The integration that ran.
    pub integration: String,
    /// `dry run` or `real run`.
    pub mode: Mode,
    /// The bundle that the run worked on.
    pub head: BundleRecord,
    /// The base bundle of a comparison.
    pub base: Option<BundleRecord>,
    /// The flags of the run, by name.
    pub options: BTreeMap<String, Vec<String>>,
    /// The shard slot of the process, as `0 of 1`.
    pub slot: String,
    /// The shards to which the run was restricted; empty if the run was not restricted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_shards: Vec<String>,
    /// The decisions, in order.
    pub decisions: Vec<LocatedText>,
    /// The changed lines of the data that caused the run, as `file:line`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// The former file names of causes in renamed files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<String, String>,
    /// The outcome of each shard.
    pub shards: BTreeMap<String, ShardRecord>,
    /// Objects that base manages and head does not manage, although head does not remove them; only in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<ReleasedRecord>,
    /// Faults of the run as a whole.
    pub faults: Vec<LocatedText>,
    /// Warnings; none of them is a failure.
    pub warnings: Vec<String>,
    /// The digest of the plans of all shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<PlanDigest>,
    /// The datafile that would approve the removals that guards hold, or the integration's own instructions.
    pub approval: Option<String>,
    /// Whether `approval` is a datafile or the integration's own instructions.
    #[serde(default, skip_serializing_if = "ApprovalForm::is_datafile")]
    pub approval_form: ApprovalForm,
    /// Number of removals that earlier runs held and that are no longer planned, because the data no longer declares
    /// their shards.
    #[serde(default, skip_serializing_if = "is_zero_objects")]
    pub unplanned_holds: usize,
    /// Whether the run is in progress: the record contains the steps that the run has reported so far, and `ended` is
    /// the end state of a run that was killed at this moment. Such a record is never stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_progress: bool,
    /// The end state.
    pub ended: RunEnd,
    /// The exit code.
    pub exit: u8,
}

/// Deserialises a time: an RFC 3339 string, or the seconds since 1970 that earlier versions stored.
pub fn seconds_or_timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum StoredTime {
        Seconds(i64),
        Timestamp(Timestamp),
    }
    match StoredTime::deserialize(deserializer)? {
        StoredTime::Seconds(seconds) => Timestamp::from_second(seconds).map_err(D::Error::custom),
        StoredTime::Timestamp(at) => Ok(at),
    }
}

/// A bundle to which a run is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleRecord {
    /// The SHA-256 of the bundle.
    pub sha: String,
    /// The commit that the bundle was built from.
    pub commit: Option<String>,
    /// Whether files differed from that commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modified: bool,
}

/// A sentence, with the source locations that it refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedText {
    /// The text of the sentence.
    pub text: String,
    /// Details, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// A hint on how to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For faults of scopes that could not be read and of changes that failed: the cause, if other faults have an
    /// equal cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// For faults: the party that has to act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whose: Option<Responsible>,
    /// The source locations, as `file:line`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

/// Whether a shard ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedState {
    /// The shard ran.
    #[default]
    Ran,
    /// The shard ran with an empty desired state, because it exists only in base.
    Orphaned,
    /// The shard exists only in base. It was planned, but nothing of it is removed, because an error in head may
    /// concern it.
    Postponed,
    /// The shard did not run.
    Skipped,
}

impl RecordedState {
    /// The name of the state in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Orphaned => "orphaned",
            Self::Postponed => "postponed",
            Self::Skipped => "skipped",
        }
    }
}

/// The outcome of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Whether the shard ran.
    pub state: RecordedState,
    /// The reason why the shard did not run, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The reason why the shard did not run, as a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SkipKind>,
    /// Number of rounds.
    pub rounds: u32,
    /// The time that the integration used for the first plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// The digest of the first plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<PlanDigest>,
    /// The planned changes.
    pub changes: Vec<ChangeRecord>,
    /// Changes that are not applied: the changes that guards hold and those that are undecided.
    /// [`ChangeRecord::hold`] distinguishes them.
    pub held: Vec<ChangeRecord>,
    /// Number of observations while the run waited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observations: u32,
    /// Operations in progress in the target.
    pub waits: Vec<LocatedText>,
    /// Rollouts in progress that the run did not wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutRecord>,
    /// Objects that do not work as declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<LocatedText>,
    /// Remarks about the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<LocatedText>,
    /// The last lines of the output of a foreign command, redacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
    /// Notes; none of them is a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Number of entries of `unplanned`. Records of older versions have only this number.
    #[serde(default, skip_serializing_if = "is_zero_objects")]
    pub not_planned: usize,
    /// Objects and scopes that were not planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplanned: Vec<UnplannedRecord>,
    /// The faults of the shard.
    pub faults: Vec<LocatedText>,
    /// Number of applied steps.
    pub applied: usize,
    /// Number of objects that were removed without an approval.
    pub removed: usize,
}

/// An object, a scope or a shard that was not planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplannedRecord {
    /// A description of what was not planned.
    pub text: String,
    /// The locations, each as `file:line`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// The differences between the declared states of base and head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<DeclaredRecord>,
}

/// A field of a declared state that differs between base and head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredRecord {
    /// The path of the field and its values in base and head.
    #[serde(flatten)]
    pub field: FieldDiff,
    /// The source location, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Objects of a shard that base manages and head does not manage, although head does not remove them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedRecord {
    /// The key of the shard.
    pub shard: String,
    /// A description of the objects and of the reason.
    pub text: String,
    /// Number of declared objects, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Whether the objects are removed together with their target instead of staying in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed_with_target: bool,
    /// The source location, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// A rollout in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutRecord {
    /// The scope of the object, by dimension.
    pub scope: BTreeMap<String, String>,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The progress as shown to people.
    pub text: String,
    /// The source location, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The kind of change.
    pub change: ChangeKind,
    /// The action as shown to people, with the sign of the change.
    pub text: String,
    /// The scope of the object, by dimension.
    #[serde(default)]
    pub scope: BTreeMap<String, String>,
    /// The kind of the object.
    #[serde(default)]
    pub kind: String,
    /// The name of the object.
    #[serde(default)]
    pub name: String,
    /// The fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<DiffEntry>,
    /// The reason why the change is not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether an approval would release a change that is not applied. Records of older versions have only
    /// this field, not `hold`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approvable: bool,
    /// The condition under which a change that is not applied now will be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The plan to which an approval of the change can be bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanDigest>,
    /// The steps that release the change, if the integration itself holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The source location, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The result in a real run.
    #[serde(default, skip_serializing_if = "StepResult::is_planned")]
    pub result: StepResult,
}

/// Start time and duration of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunTiming {
    /// Start time, in whole seconds.
    pub began: Timestamp,
    /// Duration, in milliseconds.
    pub milliseconds: u64,
}

/// Converts source locations to `file:line`.
#[derive(Clone, Copy)]
pub struct LineResolvers<'a> {
    /// For changes and decisions: the changed line, if the run compares base and head.
    pub changes: &'a dyn Fn(&SourceLocation) -> String,
    /// For faults: the line of the location itself, even if it did not change.
    pub faults: &'a dyn Fn(&SourceLocation) -> String,
}

impl<'a> LineResolvers<'a> {
    /// Uses one function for changes and for faults.
    pub fn uniform(line: &'a dyn Fn(&SourceLocation) -> String) -> Self {
        Self { changes: line, faults: line }
    }
}

impl RunRecord {
    /// Creates the record of an outcome.
    pub fn new(outcome: &RunOutcome, clock: RunTiming, lines: LineResolvers<'_>) -> Self {
        let line = lines.changes;
        let options = outcome.options.iter().map(|(flag, values)| (flag.to_owned(), values.to_vec()));
        let decisions = outcome.decisions.iter().map(|decision| LocatedText {
            text: decision.text.clone(),
            details: Vec::new(),
            hint: None,
            cause: None,
            whose: None,
            places: deduplicated(decision.places.iter().map(line)),
        });
        let shards =
            outcome.shards.iter().map(|(key, shard)| (key.to_string(), ShardRecord::new(shard, lines)));
        Self {
            version: RECORD_VERSION,
            run: outcome.run.clone(),
            began: clock.began,
            now: Some(outcome.now),
            milliseconds: clock.milliseconds,
            integration: outcome.integration.clone(),
            mode: outcome.mode,
            head: bundle_record(&outcome.head),
            base: outcome.base.as_ref().map(bundle_record),
            options: options.collect(),
            slot: outcome.slot.to_string(),
            only_shards: outcome.only_shards.iter().flatten().map(ToString::to_string).collect(),
            decisions: decisions.collect(),
            causes: deduplicated(outcome.causes.iter().map(line)),
            renamed: outcome
                .renamed
                .iter()
                .map(|(place, old)| (line(place), old_file(place, old, line)))
                .collect(),
            shards: shards.collect(),
            released: outcome.released.iter().map(|objects| released_record(objects, line)).collect(),
            faults: outcome.faults.iter().map(|fault| fault_record(fault, lines.faults)).collect(),
            warnings: outcome.warnings.clone(),
            plan_digest: outcome.plan_digest(),
            approval: outcome.approval.clone(),
            approval_form: outcome.approval_form,
            unplanned_holds: outcome.unplanned_holds,
            in_progress: false,
            ended: outcome.ended,
            exit: outcome.exit_code(),
        }
    }
}

impl RunRecord {
    /// Whether the run has no changes, holds, waits or faults to report, only the selection of shards.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = |shard: &ShardRecord| {
            let ShardRecord { changes, held, waits, degraded, unplanned, faults, .. } = shard;
            changes.is_empty()
                && unplanned.is_empty()
                && held.is_empty()
                && waits.is_empty()
                && degraded.is_empty()
                && faults.is_empty()
        };
        self.faults.is_empty() && self.released.is_empty() && self.shards.values().all(is_quiet)
    }

    /// Whether a dry run has results to report besides failures and held changes: changes, items that were not
    /// planned, or objects that are no longer managed.
    pub fn has_news(&self) -> bool {
        let has_news = |shard: &ShardRecord| !shard.changes.is_empty() || shard.not_planned > 0;
        // A command that does not report its changes may have made changes.
        self.ended == RunEnd::NotKnown || !self.released.is_empty() || self.shards.values().any(has_news)
    }
}

impl ChangeRecord {
    /// The reason why the change is held, with the integration's remedy.
    pub fn reason(&self) -> Option<String> {
        let parts: Vec<&str> = self.why.iter().chain(&self.remedy).map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Whether a guard holds the change until it is approved.
    pub fn is_held(&self) -> bool {
        self.hold.map_or(self.approvable, Hold::is_held)
    }
}

impl ShardRecord {
    /// The changes that guards hold until they are approved. The other changes in `held` are not applied
    /// because of a failure.
    pub fn held_by_guards(&self) -> impl Iterator<Item = &ChangeRecord> {
        self.held.iter().filter(|change| change.is_held())
    }

    fn new(shard: &ShardOutcome, lines: LineResolvers<'_>) -> Self {
        let line = lines.changes;
        let (state, skip) = match &shard.state {
            ShardState::Ran => (RecordedState::Ran, None),
            ShardState::Orphaned => (RecordedState::Orphaned, None),
            ShardState::Postponed => (RecordedState::Postponed, None),
            ShardState::Skipped(skip) => (RecordedState::Skipped, Some(skip)),
        };
        let held = shard.held.iter().map(|held| ChangeRecord {
            approvable: held.hold.is_held(),
            hold: Some(held.hold),
            plan: held.plan.clone(),
            remedy: held.remedy.clone(),
            ..change_record(&held.change, Some(held.why.clone()), line)
        });
        let located = |text: &str, place: &Option<SourceLocation>| LocatedText {
            text: text.to_owned(),
            details: Vec::new(),
            hint: None,
            cause: None,
            whose: None,
            places: place.iter().map(line).collect(),
        };
        let waits = shard.waits.iter().map(|wait| located(&wait.text, &wait.place));
        let hints = shard.hints.iter().map(|hint| located(&hint.text, &hint.place));
        let degraded = shard.degraded.iter().map(|degraded| located(&degraded.text, &degraded.place));
        let rollouts =
            shard.rollouts.iter().map(|Rollout { object, progress: _, text, place }| RolloutRecord {
                scope: dimensions(&object.scope),
                kind: object.kind.clone(),
                name: object.name.clone(),
                text: text.clone(),
                place: place.as_ref().map(line),
            });
        Self {
            state,
            why: skip.map(ToString::to_string),
            reason: skip.map(SkipReason::kind),
            rounds: shard.rounds,
            planned_at: shard.planned_at,
            plan_digest: shard.plan_digest.clone(),
            changes: shard.changes.iter().map(|change| change_record(change, None, line)).collect(),
            held: held.collect(),
            observations: shard.observations,
            waits: waits.collect(),
            rollouts: rollouts.collect(),
            degraded: degraded.collect(),
            hints: hints.collect(),
            output: shard.output.clone(),
            notes: shard.notes.clone(),
            not_planned: shard.unplanned.len(),
            unplanned: shard.unplanned.iter().map(|item| unplanned_record(item, line)).collect(),
            faults: shard.faults.iter().map(|fault| fault_record(fault, lines.faults)).collect(),
            applied: shard.applied,
            removed: shard.removed,
        }
    }
}

/// The values of a scope, by dimension.
fn dimensions(scope: &Scope) -> BTreeMap<String, String> {
    scope.parts().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero_objects(number: &usize) -> bool {
    *number == 0
}

/// Removes duplicate lines and keeps the order: several locations may be on one line.
fn deduplicated(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}

/// The former name of a renamed file.
fn old_file(place: &SourceLocation, old: &str, line: &dyn Fn(&SourceLocation) -> String) -> String {
    let before = SourceLocation { path: old.into(), pointer: "".into(), ..place.clone() };
    let at = line(&before);
    match at.rsplit_once(':') {
        Some((file, number)) if number.parse::<u32>().is_ok() => file.to_owned(),
        _ => at,
    }
}

fn bundle_record(pinned: &PinnedBundle) -> BundleRecord {
    BundleRecord { sha: pinned.sha.clone(), commit: pinned.commit.clone(), modified: false }
}

/// The record of a fault. The first line of the message is the text; further lines, such as those of a server
/// message, are details.
fn fault_record(fault: &Fault, line: &dyn Fn(&SourceLocation) -> String) -> LocatedText {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let further_lines = fault.text.lines().skip(1).filter(|line| !line.trim().is_empty());
    LocatedText {
        text: first_line(&fault.text),
        details: further_lines.map(str::to_owned).chain(fault.details.iter().cloned()).collect(),
        hint: fault.hint.clone(),
        cause: fault.cause.as_deref().map(first_line),
        whose: Some(fault.whose),
        places: deduplicated(fault.places.iter().map(line)),
    }
}

fn unplanned_record(item: &UnplannedItem, line: &dyn Fn(&SourceLocation) -> String) -> UnplannedRecord {
    let declared = item.declared.iter().map(|difference| DeclaredRecord {
        field: difference.field.clone(),
        place: difference.place.as_ref().map(line),
    });
    UnplannedRecord {
        text: item.text.clone(),
        places: deduplicated(item.places.iter().map(line)),
        declared: declared.collect(),
    }
}

fn released_record(objects: &ReleasedObjects, line: &dyn Fn(&SourceLocation) -> String) -> ReleasedRecord {
    ReleasedRecord {
        shard: objects.shard.to_string(),
        text: objects.text.clone(),
        count: objects.count,
        removed_with_target: objects.fate == ObjectFate::RemovedWithTarget,
        place: objects.place.as_ref().map(line),
    }
}

fn change_record(
    change: &Change,
    why: Option<String>,
    line: &dyn Fn(&SourceLocation) -> String,
) -> ChangeRecord {
    ChangeRecord {
        change: change.kind,
        text: change.to_string(),
        scope: dimensions(&change.object.scope),
        kind: change.object.kind.clone(),
        name: change.object.name.clone(),
        diff: change.diff.clone(),
        why,
        approvable: false,
        hold: None,
        plan: None,
        remedy: None,
        place: change.place.as_ref().map(line),
        result: change.result,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::{LineResolvers, RecordedState, ShardRecord, fault_record, seconds_or_timestamp};
    use crate::fault::Fault;
    use crate::outcome::{ShardOutcome, ShardState, SkipKind, SkipReason};

    #[test]
    fn the_state_of_a_shard_has_these_words_in_records() {
        let check = |state: ShardState, expect: Value| {
            let lines = LineResolvers::uniform(&|_| String::new());
            let record = ShardRecord::new(&ShardOutcome::new(state), lines);
            let mut written = serde_json::to_value(&record).unwrap();
            assert_eq!(written["state"], record.state.as_str());
            assert_eq!(serde_json::from_value::<ShardRecord>(written.clone()).unwrap(), record);
            let fields = written.as_object_mut().unwrap();
            fields.retain(|name, _| ["state", "why", "reason"].contains(&name.as_str()));
            assert_eq!(written, expect);
        };
        check(ShardState::Ran, json!({"state": "ran"}));
        check(ShardState::Orphaned, json!({"state": "orphaned"}));
        check(ShardState::Postponed, json!({"state": "postponed"}));
        let skipped = |skip: SkipReason, reason: &str| {
            assert_eq!(skip.kind().as_str(), reason);
            let why = skip.to_string();
            check(ShardState::Skipped(skip), json!({"state": "skipped", "why": why, "reason": reason}));
        };
        skipped(SkipReason::Invalid, "wrong");
        skipped(SkipReason::Disabled("x".to_owned()), "disabled");
        skipped(SkipReason::DisabledInBase("x".to_owned()), "disabled");
        skipped(SkipReason::UntrustedTarget, "unapproved");
        assert_eq!(ShardRecord::default().state, RecordedState::Ran);
        assert!(serde_json::from_value::<SkipKind>(json!("other")).is_err());
    }

    #[test]
    fn the_further_lines_of_a_fault_are_details() {
        let fault = Fault::remote("the cluster rejects it: first\n\n  second\nthird\n").details("fourth");
        let record = fault_record(&fault, &|place| place.path.to_string());
        assert_eq!(record.text, "the cluster rejects it: first");
        assert_eq!(record.details, ["  second", "third", "fourth"]);
    }

    #[test]
    fn a_time_is_a_timestamp_or_the_seconds_of_an_earlier_version() {
        #[derive(Deserialize)]
        struct StoredField(#[serde(deserialize_with = "seconds_or_timestamp")] Timestamp);
        let check = |text: &str, expect: Option<i64>| {
            let stored = serde_json::from_str::<StoredField>(text).ok();
            assert_eq!(stored.map(|StoredField(at)| at.as_second()), expect, "{text}");
        };
        check("1800000000", Some(1_800_000_000));
        check("\"2027-01-15T08:00:00Z\"", Some(1_800_000_000));
        check("9223372036854775807", None);
        check("\"soon\"", None);
    }
}
