//! Converts the status of a loop into a row of the status table.

use std::sync::Arc;

use jiff::Timestamp;
use qontract_report::status_table::{LoopActivity, LoopState, LoopView, ShardView, StatusTitle};
use qontract_runtime::RunEnd;
use tokio::time::Instant;

use crate::reporter::{LoopPhase, LoopRun, LoopStatus, ShardRow};
use crate::source::DataSource;

/// The title of the table: its fixed parts, and the bundle in use with its commit. `unchecked` is the number of
/// integrations that cannot run on this machine.
pub fn title(source: &dyn DataSource, unchecked: usize, fixed: &StatusTitle) -> StatusTitle {
    // A loop runs only once a bundle exists.
    let bundle = source.current().ok().map(|data| Arc::clone(&data.source));
    StatusTitle {
        commit: bundle.as_ref().and_then(|bundle| bundle.commit().map(str::to_owned)),
        bundle: bundle.map(|bundle| bundle.sha().to_owned()).unwrap_or_default(),
        invalid: source.invalid().map(|invalid| invalid.title(Timestamp::now())),
        unchecked,
        ..fixed.clone()
    }
}

/// Creates the row of a loop.
pub fn loop_view(name: &str, status: &LoopStatus, now: Instant) -> LoopView {
    let troubled = status.shards.iter().filter(|row| row.failed || row.changes.held > 0);
    let activity = match (status.doing.last(), status.next) {
        _ if status.paused.is_some() => LoopActivity::Paused,
        (Some(doing), _) => LoopActivity::Running(Some(doing.description.clone())),
        (None, Some(next)) => LoopActivity::Sleeping(next.saturating_duration_since(now)),
        (None, None) if status.phase == LoopPhase::Running => LoopActivity::Running(None),
        (None, None) => LoopActivity::Idle,
    };
    LoopView {
        name: name.to_owned(),
        state: state(status),
        shards: status.last.map(|_| status.shards.len()),
        changes: status.changes.planned,
        held: status.changes.held,
        took: status.last.map(|last| last.took),
        now: activity,
        attention_shards: troubled.map(shard_view).collect(),
    }
}

fn shard_view(row: &ShardRow) -> ShardView {
    ShardView { key: row.key.clone(), failed: row.failed, held: row.changes.held }
}

/// The state of the last run. If the run held a change and had no failures, the state is *held*.
fn state(status: &LoopStatus) -> LoopState {
    let Some(LoopRun { ended, .. }) = status.last else { return LoopState::Starting };
    let has_failed = status.shards.iter().any(|row| row.failed);
    match ended {
        _ if status.changes.held > 0 && !has_failed => LoopState::Held,
        RunEnd::Ok | RunEnd::EarlyExit => LoopState::Ok,
        RunEnd::Transient => LoopState::Retrying,
        RunEnd::Waiting => LoopState::Waiting,
        RunEnd::Degraded => LoopState::Degraded,
        RunEnd::NotKnown => LoopState::NotKnown,
        RunEnd::Held
        | RunEnd::Failed
        | RunEnd::Usage
        | RunEnd::NotDefined
        | RunEnd::Forbidden
        | RunEnd::Interrupted => LoopState::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reporter::ChangeCounts;

    fn row(key: &str, planned: usize, held: usize, failed: bool) -> ShardRow {
        ShardRow { key: key.to_owned(), changes: ChangeCounts { planned, failed: 0, held }, failed }
    }

    #[test]
    fn a_loop_shows_only_failed_and_held_shards() {
        let now = Instant::now();
        let status = LoopStatus {
            phase: LoopPhase::Sleeping,
            last: Some(LoopRun { ended: RunEnd::Failed, took: Duration::from_millis(1230) }),
            changes: ChangeCounts { planned: 2, failed: 0, held: 1 },
            shards: vec![
                row("cluster=a", 2, 1, false),
                row("cluster=b", 0, 0, true),
                row("cluster=c", 3, 0, false),
            ],
            next: Some(now + Duration::from_mins(10)),
            ..LoopStatus::default()
        };
        let shown = loop_view("a", &status, now);
        assert_eq!(
            (shown.state, shown.shards, shown.changes, shown.held),
            (LoopState::Failed, Some(3), 2, 1)
        );
        assert_eq!(shown.now, LoopActivity::Sleeping(Duration::from_mins(10)));
        let keys: Vec<&str> = shown.attention_shards.iter().map(|shard| shard.key.as_str()).collect();
        assert_eq!(keys, ["cluster=a", "cluster=b"]);
    }

    #[test]
    fn a_run_is_held_if_nothing_failed() {
        let check = |ended: Option<RunEnd>, held: usize, failed: bool, expect: LoopState| {
            let status = LoopStatus {
                last: ended.map(|ended| LoopRun { ended, took: Duration::ZERO }),
                changes: ChangeCounts { planned: 0, failed: 0, held },
                shards: vec![row("a", 0, held, failed)],
                ..LoopStatus::default()
            };
            assert_eq!(state(&status), expect, "{ended:?} {held} {failed}");
        };
        check(None, 0, false, LoopState::Starting);
        check(Some(RunEnd::Ok), 0, false, LoopState::Ok);
        check(Some(RunEnd::Failed), 1, false, LoopState::Held);
        check(Some(RunEnd::Failed), 1, true, LoopState::Failed);
        check(Some(RunEnd::Failed), 0, false, LoopState::Failed);
        check(Some(RunEnd::Transient), 0, true, LoopState::Retrying);
        check(Some(RunEnd::Forbidden), 0, false, LoopState::Failed);
        check(Some(RunEnd::Waiting), 0, false, LoopState::Waiting);
        check(Some(RunEnd::Degraded), 0, false, LoopState::Degraded);
        check(Some(RunEnd::NotKnown), 0, false, LoopState::NotKnown);
    }
}
