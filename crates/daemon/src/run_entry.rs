//! A row in the list of runs.

use std::time::Duration;

use qontract_access::Mode;
use qontract_diagnostics::human;
use qontract_runtime::record::{BundleRecord, ChangeRecord};
use qontract_runtime::{ChangeKind, RunEnd, RunRecord, RunState, StepResult};
use serde::Serialize;

use crate::plan_report;

/// The columns of the table.
pub const HEADER: [&str; 8] = ["RUN", "STARTED", "MODE", "STATE", "CHANGES", "HELD", "ERRORS", "DURATION"];

/// One run.
#[derive(Debug, Serialize)]
pub struct RunEntry<'r> {
    version: u32,
    run: &'r str,
    integration: &'r str,
    mode: &'r str,
    state: RunState,
    ended: RunEnd,
    exit: u8,
    started: String,
    duration_ms: u64,
    #[serde(flatten)]
    counts: RunCounts,
    head: &'r BundleRecord,
}

/// The counts of a run, the same in every output.
#[derive(Clone, Copy, Debug, Serialize)]
struct RunCounts {
    changes: ChangesByKind,
    held: usize,
    waits: usize,
    errors: usize,
    applied: usize,
    /// Changes of a real run that were not made: they failed, were not tried, or another run made them first.
    #[serde(skip_serializing_if = "is_zero")]
    not_made: usize,
}

/// A record as JSON output: with its state and its counts.
#[derive(Debug, Serialize)]
pub struct RecordOutput<'r> {
    #[serde(flatten)]
    record: &'r RunRecord,
    state: RunState,
    started: String,
    counts: RunCounts,
}

impl<'r> From<&'r RunRecord> for RecordOutput<'r> {
    fn from(record: &'r RunRecord) -> Self {
        let (state, started) = (record.state(), record.began.to_string());
        Self { record, state, started, counts: RunCounts::of(record) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Number of changes of each kind in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct ChangesByKind {
    add: usize,
    change: usize,
    replace: usize,
    remove: usize,
}

impl ChangesByKind {
    fn sum(self) -> usize {
        let Self { add, change, replace, remove } = self;
        add + change + replace + remove
    }
}

impl RunCounts {
    fn of(record: &RunRecord) -> Self {
        let shards = || record.shards.values();
        let count = |kind: ChangeKind| {
            shards().flat_map(|shard| &shard.changes).filter(|change| change.change == kind).count()
        };
        let changes = ChangesByKind {
            add: count(ChangeKind::Add),
            change: count(ChangeKind::Change),
            replace: count(ChangeKind::Replace),
            remove: count(ChangeKind::Remove),
        };
        Self {
            changes,
            held: shards().map(|shard| shard.held_by_guards().count()).sum(),
            waits: shards().map(|shard| shard.waits.len()).sum(),
            errors: plan_report::distinct_errors(record).len(),
            applied: shards().map(|shard| shard.applied).sum(),
            not_made: if record.mode == Mode::DryRun {
                0
            } else {
                changes_of(record)
                    .filter(|change| !matches!(change.result, StepResult::Done | StepResult::Planned))
                    .count()
            },
        }
    }
}

impl<'r> From<&'r RunRecord> for RunEntry<'r> {
    fn from(record: &'r RunRecord) -> Self {
        Self {
            version: record.version,
            run: &record.run,
            integration: &record.integration,
            mode: record.mode.as_str(),
            state: record.state(),
            ended: record.ended,
            exit: record.exit,
            started: record.began.to_string(),
            duration_ms: record.milliseconds,
            counts: RunCounts::of(record),
            head: &record.head,
        }
    }
}

/// The changes of all shards.
fn changes_of(record: &RunRecord) -> impl Iterator<Item = &ChangeRecord> {
    record.shards.values().flat_map(|shard| &shard.changes)
}

impl RunEntry<'_> {
    /// The cells, in the order of [`HEADER`].
    pub fn row(&self) -> Vec<String> {
        vec![
            self.run.to_owned(),
            self.started.clone(),
            self.mode.to_owned(),
            self.state.as_str().to_owned(),
            match (self.counts.changes.sum(), self.counts.not_made) {
                (all, 0) => all.to_string(),
                (all, not_made) => format!("{} of {all}", all - not_made),
            },
            self.counts.held.to_string(),
            self.counts.errors.to_string(),
            human::duration(Duration::from_millis(self.duration_ms)),
        ]
    }
}
