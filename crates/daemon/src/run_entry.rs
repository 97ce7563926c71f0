//! One run as lists show it.

use std::time::Duration;

use qontract_diagnostics::human;
use qontract_runtime::record::Bundle;
use qontract_runtime::{ChangeKind, Ended, Record, RunState};
use serde::Serialize;

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
    ended: Ended,
    exit: u8,
    started: String,
    duration_ms: u64,
    changes: ChangeCounts,
    held: usize,
    waits: usize,
    errors: usize,
    applied: usize,
    head: &'r Bundle,
}

/// How many changes of each kind a plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct ChangeCounts {
    add: usize,
    change: usize,
    replace: usize,
    remove: usize,
}

impl ChangeCounts {
    fn sum(self) -> usize {
        let Self { add, change, replace, remove } = self;
        add + change + replace + remove
    }
}

impl<'r> From<&'r Record> for RunEntry<'r> {
    fn from(record: &'r Record) -> Self {
        let shards = || record.shards.values();
        let count = |kind: ChangeKind| {
            shards().flat_map(|shard| &shard.changes).filter(|change| change.change == kind).count()
        };
        let changes = ChangeCounts {
            add: count(ChangeKind::Add),
            change: count(ChangeKind::Change),
            replace: count(ChangeKind::Replace),
            remove: count(ChangeKind::Remove),
        };
        Self {
            version: record.version,
            run: &record.run,
            integration: &record.integration,
            mode: record.mode.as_str(),
            state: record.state(),
            ended: record.ended,
            exit: record.exit,
            started: human::time(record.began),
            duration_ms: record.milliseconds,
            changes,
            held: shards().map(|shard| shard.held_by_guards().count()).sum(),
            waits: shards().map(|shard| shard.waits.len()).sum(),
            errors: record.faults.len() + shards().map(|shard| shard.faults.len()).sum::<usize>(),
            applied: shards().map(|shard| shard.applied).sum(),
            head: &record.head,
        }
    }
}

impl RunEntry<'_> {
    /// Its cells, in the order of [`HEADER`].
    pub fn row(&self) -> Vec<String> {
        vec![
            self.run.to_owned(),
            self.started.clone(),
            self.mode.to_owned(),
            self.state.as_str().to_owned(),
            self.changes.sum().to_string(),
            self.held.to_string(),
            self.errors.to_string(),
            human::duration(Duration::from_millis(self.duration_ms)),
        ]
    }
}
