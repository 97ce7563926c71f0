//! Tests of the log lines of a loop.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qontract_runtime::reconcile_loop::{LoopEvent, LoopObserver as _};
use qontract_runtime::{ChangeKind, RunEnd, RunRecord, StepResult};
use qontract_telemetry::activity::Activity;
use qontract_telemetry::log::{Level, LineFormat, Log, LogLine};
use qontract_telemetry::metrics::{Metrics, ProcessLabels};
use serde_json::json;

use super::{EndedRun, LoopReporter, RecordStorage, RunObserver as _, WriteObserver as _};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// The text that was written since the last call.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn reporter() -> (LoopReporter, Lines) {
    let lines = Lines::default();
    let log = Arc::new(Log::new(Level::Info).with_output(LineFormat::Levelled, lines.clone()));
    let process =
        ProcessLabels { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() };
    (LoopReporter::new(process, log, Arc::new(Metrics::default())), lines)
}

/// The record of a run with this number of changes that are made and of changes that are held.
fn record(ended: RunEnd, changes: usize, held: usize) -> RunRecord {
    let planned = |count: usize| {
        vec![json!({"change": "remove", "text": "- remove x", "why": "too many", "approvable": true}); count]
    };
    let shard = json!({
        "state": "ran", "rounds": 1, "changes": planned(changes), "held": planned(held), "waits": [], "faults": [],
        "applied": 0, "removed": 0,
    });
    serde_json::from_value(json!({
        "version": 2, "run": "r1", "began": 0, "milliseconds": 5, "integration": "a", "mode": "real run",
        "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1", "decisions": [],
        "shards": {"s": shard}, "faults": [], "warnings": [], "approval": null, "ended": ended, "exit": ended.code(),
    }))
    .unwrap()
}

/// The end of a run whose record is stored if it has changes.
fn ended_run(record: &RunRecord) -> EndedRun<'_> {
    let has_changes = record.shards.values().any(|shard| !shard.changes.is_empty() || !shard.held.is_empty());
    let storage = if has_changes { RecordStorage::Stored } else { RecordStorage::Counted };
    EndedRun { record, storage, commit_time: None }
}

fn run(reporter: &LoopReporter, record: Option<&RunRecord>, ended: RunEnd) {
    reporter.observe(LoopEvent::Started);
    if let Some(record) = record {
        reporter.ran("a", Ok(ended_run(record)));
    }
    reporter.observe(LoopEvent::Ended(ended, Duration::from_millis(34)));
    reporter.observe(LoopEvent::Sleeping(Duration::from_mins(10)));
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_logged_and_again_when_it_has_doubled() {
    let (reporter, lines) = reporter();
    for seconds in (10..=130).step_by(10) {
        let elapsed = Duration::from_secs(seconds);
        reporter.observe(LoopEvent::Heartbeat(vec![Activity {
            description: "GET https://c1/".to_owned(),
            elapsed,
        }]));
    }
    assert_eq!(
        lines.take(),
        "[INFO] waiting: GET https://c1/ for 30.0 s integration=a\n\
         [INFO] waiting: GET https://c1/ for 60.0 s integration=a\n\
         [INFO] waiting: GET https://c1/ for 120.0 s integration=a\n"
    );
}

#[tokio::test(start_paused = true)]
async fn each_run_is_logged_in_one_line_with_its_id_if_it_has_a_record() {
    let (reporter, lines) = reporter();
    run(&reporter, Some(&record(RunEnd::Ok, 2, 0)), RunEnd::Ok);
    assert_eq!(
        lines.take(),
        "[INFO] run ended: ok changes=2 held=0 integration=a mode=real next_in=10m00s run=r1 took=34ms\n"
    );
    run(&reporter, Some(&record(RunEnd::Ok, 0, 0)), RunEnd::Ok);
    assert_eq!(
        lines.take(),
        "[INFO] run ended: ok changes=0 held=0 integration=a mode=real next_in=10m00s took=34ms\n"
    );
    // A run that stalled or panicked has no record, and its line contains nothing about the previous run.
    run(&reporter, None, RunEnd::Transient);
    assert_eq!(lines.take(), "[INFO] run ended: failed for now integration=a next_in=10m00s took=34ms\n");
    let reporter = reporter.with_run_level(Level::Debug);
    run(&reporter, None, RunEnd::Ok);
    assert_eq!(lines.take(), "");
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_run_counts_errors_as_its_summary_does() {
    let (reporter, lines) = reporter();
    let mut failed = record(RunEnd::Failed, 0, 0);
    let fault = serde_json::json!({"text": "cannot reach cluster `c1`"});
    let shard = failed.shards.get_mut("s").unwrap();
    shard.faults = vec![serde_json::from_value(fault).unwrap()];
    let same = shard.clone();
    failed.shards.insert("t".to_owned(), same);
    run(&reporter, Some(&failed), RunEnd::Failed);
    let text = lines.take();
    assert!(text.contains("run ended: failed changes=0 errors=1 held=0 "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_held_change_is_a_warning_and_so_is_the_same_one_an_hour_later() {
    let (reporter, lines) = reporter();
    let is_warned = |record: &RunRecord, ended| {
        run(&reporter, Some(record), ended);
        lines.take().contains("[WARNING] held: - remove x: too many; see `qontract explain run r1`")
    };
    let held = record(RunEnd::Held, 0, 1);
    assert!(is_warned(&held, RunEnd::Held));
    assert!(!is_warned(&held, RunEnd::Held));
    tokio::time::advance(Duration::from_hours(1)).await;
    assert!(is_warned(&held, RunEnd::Held));
    // A failed run might not have planned the change, so the change does not count as released.
    assert!(!is_warned(&record(RunEnd::Failed, 0, 0), RunEnd::Failed));
    assert!(!is_warned(&held, RunEnd::Held));
    assert_eq!(reporter.status().held.len(), 1);
    run(&reporter, Some(&record(RunEnd::Ok, 0, 0)), RunEnd::Ok);
    assert!(lines.take().starts_with("[INFO] no longer held: - remove x integration=a\n"));
    assert!(is_warned(&held, RunEnd::Held));
}

#[tokio::test(start_paused = true)]
async fn a_failed_change_is_logged_when_it_is_new_and_is_not_counted_as_made() {
    let (reporter, lines) = reporter();
    let mut failed = record(RunEnd::Failed, 2, 0);
    let changes = &mut failed.shards.get_mut("s").unwrap().changes;
    (changes[0].result, changes[1].result) = (StepResult::Done, StepResult::Failed);
    let run_with = |number: usize| {
        reporter.observe(LoopEvent::Started);
        let line = LogLine::new(Level::Warning, "failed without effect: ~ change x");
        reporter.wrote(&line, &format!("r{number}"), ChangeKind::Change, None);
        reporter.ran("a", Ok(ended_run(&failed)));
        reporter.observe(LoopEvent::Ended(RunEnd::Failed, Duration::from_millis(34)));
        reporter.observe(LoopEvent::Sleeping(Duration::from_mins(10)));
        lines.take()
    };
    let ended = "[INFO] run ended: failed changes=1 failed=1 held=0 integration=a mode=real next_in=10m00s run=r1 took=34ms\n";
    assert_eq!(run_with(1), format!("[WARNING] failed without effect: ~ change x run=r1\n{ended}"));
    assert_eq!(run_with(2), ended);
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(run_with(3), format!("[WARNING] failed without effect: ~ change x run=r3\n{ended}"));
}
