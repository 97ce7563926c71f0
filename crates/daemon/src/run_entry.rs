//! The list of runs, and its rows.

use std::time::Duration;

use qontract_diagnostics::{StyledText, TextStyle, human, pluralize};
use qontract_journal::{ChangesByKind, RunSummary};
use qontract_report::table;
use qontract_runtime::record::BundleRecord;
use qontract_runtime::{RunEnd, RunRecord, RunState};
use serde::Serialize;

use crate::run_store::{IdleCounter, ListedRun};
use crate::run_summary;

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
    /// The end state; `None` while the run is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<RunEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    started: String,
    duration_ms: u64,
    #[serde(flatten)]
    counts: RunCounts,
    head: &'r BundleRecord,
}

/// The counts of a run. Every output shows the same counts.
#[derive(Clone, Copy, Debug, Serialize)]
struct RunCounts {
    changes: PlannedCounts,
    held: usize,
    waits: usize,
    errors: usize,
    applied: usize,
    /// Changes of a real run that were not made: the change failed, was not tried, or another run made it first.
    #[serde(skip_serializing_if = "is_zero")]
    not_made: usize,
}

/// A record as JSON output, with the state and the counts of the run.
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
struct PlannedCounts {
    add: usize,
    change: usize,
    replace: usize,
    remove: usize,
}

impl RunCounts {
    fn of(record: &RunRecord) -> Self {
        let shards = || record.shards.values();
        let RunSummary { changes, held, errors, not_made, .. } = run_summary::of(record, 0);
        let ChangesByKind { add, change, replace, remove } = changes;
        Self {
            changes: PlannedCounts { add, change, replace, remove },
            held,
            waits: shards().map(|shard| shard.waits.len()).sum(),
            errors,
            applied: shards().map(|shard| shard.applied).sum(),
            not_made,
        }
    }
}

impl<'r> From<&'r RunRecord> for RunEntry<'r> {
    fn from(record: &'r RunRecord) -> Self {
        let has_ended = !record.in_progress;
        Self {
            version: record.version,
            run: &record.run,
            integration: &record.integration,
            mode: record.mode.as_str(),
            state: record.state(),
            ended: has_ended.then_some(record.ended),
            exit: has_ended.then_some(record.exit),
            started: record.began.to_string(),
            duration_ms: record.milliseconds,
            counts: RunCounts::of(record),
            head: &record.head,
        }
    }
}

/// The cells of a run in the table, in the order of [`HEADER`].
pub fn row(listed: &ListedRun) -> Vec<String> {
    let ListedRun { run, summary } = listed;
    let changes = summary.changes.sum();
    vec![
        run.to_string(),
        run.start().map_or_else(String::new, |start| start.to_string()),
        summary.mode.as_str().to_owned(),
        summary.state.as_str().to_owned(),
        match summary.not_made {
            0 => changes.to_string(),
            not_made => format!("{} of {changes}", changes.saturating_sub(not_made)),
        },
        summary.held.to_string(),
        summary.errors.to_string(),
        human::duration(Duration::from_millis(summary.milliseconds)),
    ]
}

/// The table of runs. On a terminal, runs that need attention are coloured.
pub fn runs_table(runs: &[ListedRun]) -> StyledText {
    let mut styled = StyledText::default();
    if runs.is_empty() {
        styled.push(TextStyle::Plain, "no runs\n");
        return styled;
    }
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let text = table::to_text(&HEADER.map(str::to_owned), &rows);
    let styles = runs.iter().map(|listed| match listed.summary.state {
        RunState::Failed | RunState::Interrupted => TextStyle::Error,
        RunState::Held | RunState::Degraded => TextStyle::Warning,
        RunState::Ok | RunState::Waiting | RunState::NotKnown | RunState::Running => TextStyle::Plain,
    });
    for (line, style) in text.lines().zip(std::iter::once(TextStyle::Bold).chain(styles)) {
        styled.push(style, line);
        styled.push(TextStyle::Plain, "\n");
    }
    styled
}

/// Lines about loop runs that had nothing to do and therefore have no record.
pub fn idle_lines(all: &[IdleCounter], integration: Option<&str>) -> String {
    let mut text = String::new();
    for idle in all.iter().filter(|idle| integration.is_none_or(|name| name == idle.integration)) {
        let IdleCounter { integration: name, first, last, .. } = idle;
        let counts = [
            (idle.count, "with nothing to do"),
            (idle.degraded_runs, "as degraded as the last recorded one"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            let count = pluralize(usize::try_from(count).unwrap_or(usize::MAX), "run");
            text.push_str(&format!("{name}: {count} {what}, from {first} to {last}\n"));
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}
