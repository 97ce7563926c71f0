//! Computes the summary of a run. Lists of runs show summaries.

use qontract_access::Mode;
use qontract_journal::{ChangesByKind, RunFacts, RunSummary};
use qontract_runtime::record::ChangeRecord;
use qontract_runtime::{ChangeKind, RunEnd, RunRecord, RunState, StepResult};

use crate::plan_report;

/// The summary of a run whose record was stored at a time, in milliseconds since 1970.
pub fn of(record: &RunRecord, stored: i64) -> RunSummary {
    RunSummary {
        stored,
        mode: record.mode,
        state: record.state(),
        changes: changes_by_kind(record),
        held: record.shards.values().map(|shard| shard.held_by_guards().count()).sum(),
        errors: plan_report::distinct_errors(record).len(),
        not_made: not_made(record),
        milliseconds: record.milliseconds,
        facts: RunFacts {
            has_approval: record.approval.is_some(),
            has_held: has_held(record),
            is_unaffected: record.ended == RunEnd::EarlyExit,
            has_unplanned_holds: record.unplanned_holds > 0,
        },
    }
}

/// Number of changes of each kind in the plan.
fn changes_by_kind(record: &RunRecord) -> ChangesByKind {
    let count = |kind: ChangeKind| changes(record).filter(|change| change.change == kind).count();
    ChangesByKind {
        add: count(ChangeKind::Add),
        change: count(ChangeKind::Change),
        replace: count(ChangeKind::Replace),
        remove: count(ChangeKind::Remove),
    }
}

/// Number of changes of a real run that were not made: the change failed, was not tried, or another run made it
/// first.
fn not_made(record: &RunRecord) -> usize {
    let is_made = |change: &&ChangeRecord| matches!(change.result, StepResult::Done | StepResult::Planned);
    match record.mode {
        Mode::DryRun => 0,
        Mode::Real => changes(record).filter(|change| !is_made(change)).count(),
    }
}

/// The changes of all shards.
fn changes(record: &RunRecord) -> impl Iterator<Item = &ChangeRecord> {
    record.shards.values().flat_map(|shard| &shard.changes)
}

/// Whether guards held changes in a run, regardless of its result.
fn has_held(record: &RunRecord) -> bool {
    record.state() == RunState::Held
        || record.shards.values().any(|shard| shard.held_by_guards().next().is_some())
}
