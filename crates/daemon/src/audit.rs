//! The audit log: one line for every write as it happens, with the change, the commit and the source line that
//! declare it, and the run.

use std::fmt;
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_diagnostics::{MessageSink, sanitize};
use qontract_runtime::audit::{Audit, IntendedRound, RoundNumber, WriteRecord};
use qontract_runtime::{Change, ChangeKind};
use qontract_telemetry::log::{Level, LineFormat, LogLine};

use crate::line_cache::LineCache;
use crate::pinned_data::PinnedData;
use crate::run_rounds::RunRounds;
use crate::run_store::RunStore;

/// Observes writes, in addition to the audit log that is stored with the run records.
pub trait WriteObserver: Send + Sync + 'static {
    /// Called after a write with the log line about it, which does not contain the id of the run. `since_commit` is
    /// the number of seconds since the commit that caused the write; `None` if the commit time is unknown.
    fn wrote(&self, line: &LogLine, run: &str, kind: ChangeKind, since_commit: Option<i64>);
    /// Called when the audit log cannot be written.
    fn audit_failed(&self, why: &str);
    /// Called when an earlier run of the integration did not finish.
    fn unfinished_run(&self, warning: &str);
}

/// The observer of a single run, which prints warnings immediately. The writes are reported at the end of the run.
pub struct WarningObserver {
    messages: Arc<dyn MessageSink>,
}

impl WarningObserver {
    /// Creates an observer that prints the warnings to `messages`.
    pub fn new(messages: Arc<dyn MessageSink>) -> Self {
        Self { messages }
    }
}

impl WriteObserver for WarningObserver {
    fn wrote(&self, _: &LogLine, _: &str, _: ChangeKind, _: Option<i64>) {}

    fn audit_failed(&self, why: &str) {
        self.messages.note(&format!("warning: {why}"));
    }

    fn unfinished_run(&self, warning: &str) {
        self.messages.note(&format!("warning: {}", sanitize(warning)));
    }
}

/// The audit log of one run.
pub struct AuditLog {
    /// The integration that runs.
    pub integration: String,
    /// The data of the run.
    pub head: Arc<PinnedData>,
    /// The store that holds the audit log.
    pub runs: Arc<RunStore>,
    /// Observes the writes.
    pub observer: Arc<dyn WriteObserver>,
    /// Records that a failure to write the audit log was reported, so that it is reported only once.
    pub failure_reported: Once,
    /// Cache that maps source locations to lines.
    pub lines: LineCache,
    /// The rounds of the run in the journal.
    pub rounds: RunRounds,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("integration", &self.integration).finish_non_exhaustive()
    }
}

impl AuditLog {
    fn line(&self, written: &WriteRecord<'_>, change: &Change) -> LogLine {
        let (level, text) = match written.fault {
            None => (Level::Info, change.to_string()),
            Some(fault) if fault.is_interrupted => {
                (Level::Warning, format!("interrupted: {change} may be partially applied"))
            }
            Some(fault) if fault.is_undone => (Level::Warning, format!("failed without effect: {change}")),
            Some(_) => (Level::Warning, format!("failed, and may be partially applied: {change}")),
        };
        let mut line = LogLine::new(level, text).with("integration", self.integration.as_str());
        if let Some(place) = &change.place {
            line = line.with("place", self.head.line(&self.lines, place));
        }
        let source = &*self.head.source;
        if let Some(commit) = source.commit() {
            line = line.with("commit", commit.get(..12).unwrap_or(commit));
        }
        if self.head.is_modified() {
            line = line.with("modified", "true");
        }
        line.with_detail("bundle", source.sha())
            .with_detail("shard", written.shard.to_string())
            .with_detail("done", written.fault.is_none())
    }
}

impl AuditLog {
    /// Reports a failure to write the audit log or the journal, but only the first one of a run.
    fn report_failure(&self, what: &str, result: anyhow::Result<()>) {
        if let Err(error) = result {
            self.failure_reported
                .call_once(|| self.observer.audit_failed(&format!("cannot write {what}: {error:#}")));
        }
    }
}

impl Audit for AuditLog {
    fn begin_round<'a>(&'a self, round: &'a IntendedRound) -> BoxFuture<'a, RoundNumber> {
        async move {
            self.head.prefetch_lines(round.places.iter().cloned());
            let (number, stored) = self.rounds.begin(round).await;
            self.report_failure("the steps of a round", stored);
            number
        }
        .boxed()
    }

    fn end_round<'a>(&'a self, round: RoundNumber, tried: &'a [Change]) -> BoxFuture<'a, ()> {
        async move {
            let stored = self.rounds.end(round, tried).await;
            self.report_failure("the results of a round", stored);
        }
        .boxed()
    }

    fn record_write(&self, written: &WriteRecord<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(now.as_secs()).unwrap_or_default();
        let since = self.head.source.commit_time().map(|committed| seconds - committed);
        let now = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        for change in written.changes {
            let line = self.line(written, change);
            let entry = line.clone().with("run", written.run).format(LineFormat::Json, now);
            // The run continues, because the log of the process also contains the line.
            self.report_failure("the audit log", self.runs.append_audit(&entry));
            self.observer.wrote(&line, written.run, change.kind, since);
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use qontract_journal::{RoundOwner, RunId};
    use qontract_runtime::record::BundleRecord;
    use qontract_runtime::{Fault, ObjectKey, Scope, ShardKey};
    use qontract_testkit::Scratch;

    use super::*;
    use crate::lease_host::this_process;
    use crate::test_data::data_with;

    /// Records the observed events.
    #[derive(Default)]
    struct Observed {
        lines: Mutex<Vec<(Level, String)>>,
        failures: Mutex<Vec<String>>,
    }

    impl WriteObserver for Observed {
        fn wrote(&self, line: &LogLine, _: &str, _: ChangeKind, _: Option<i64>) {
            let text = line.clone().format(LineFormat::Plain, jiff::Timestamp::UNIX_EPOCH);
            self.lines.lock().push((line.level(), text));
        }

        fn audit_failed(&self, why: &str) {
            self.failures.lock().push(why.to_owned());
        }

        fn unfinished_run(&self, _: &str) {}
    }

    fn audit_log(runs: RunStore, observer: &Arc<Observed>) -> AuditLog {
        let (runs, head) = (Arc::new(runs), data_with(&["a"]));
        let bundle = BundleRecord { sha: head.source.sha().to_owned(), commit: None, modified: false };
        let owner = RoundOwner {
            run: RunId::parse("20270115T080000Z-a-1").expect("an id"),
            began: jiff::Timestamp::UNIX_EPOCH,
            head: bundle,
            process: this_process(),
        };
        AuditLog {
            integration: "a".to_owned(),
            head,
            rounds: RunRounds::new(Arc::clone(&runs), owner),
            runs,
            observer: Arc::clone(observer) as _,
            failure_reported: Once::new(),
            lines: LineCache::default(),
        }
    }

    fn record(log: &AuditLog, fault: Option<&Fault>) {
        let scope = Scope::new([("cluster", "c")]);
        let object = ObjectKey { scope, kind: "thing".to_owned(), name: "x".to_owned() };
        let change = Change::new(ChangeKind::Add, object, "make x");
        let shard = ShardKey::new([("cluster", "c")]);
        log.record_write(&WriteRecord { run: "run-1", shard: &shard, changes: &[change], fault });
    }

    #[test]
    fn a_write_is_logged_by_what_is_known_about_its_effect() {
        let (scratch, observer) = (Scratch::new(), Arc::<Observed>::default());
        let store = RunStore::new(Some(scratch.path().join("runs"))).expect("a directory");
        let log = audit_log(store, &observer);
        let faults = [
            None,
            Some(Fault::interrupted("stopped")),
            Some(Fault::remote("refused").undone()),
            Some(Fault::remote("no answer")),
        ];
        for fault in &faults {
            record(&log, fault.as_ref());
        }
        let levels: Vec<Level> = observer.lines.lock().iter().map(|(level, _)| *level).collect();
        assert_eq!(levels, [Level::Info, Level::Warning, Level::Warning, Level::Warning]);
        let texts: Vec<String> = observer.lines.lock().iter().map(|(_, text)| text.clone()).collect();
        assert!(texts[1].contains("interrupted: "), "{texts:?}");
        assert!(texts[2].contains("failed without effect: "), "{texts:?}");
        assert!(texts[3].contains("failed, and may be partially applied: "), "{texts:?}");
        let trail = scratch.read("runs/trail.jsonl");
        assert_eq!(trail.lines().filter(|line| line.contains("run-1")).count(), faults.len(), "{trail}");
        assert_eq!(*observer.failures.lock(), [""; 0]);
    }

    #[test]
    fn a_failure_to_write_the_audit_log_is_reported_once_and_the_writes_are_still_observed() {
        let (scratch, observer) = (Scratch::new(), Arc::<Observed>::default());
        // A file at the path of the directory of the audit log.
        scratch.write("runs", "");
        let store = RunStore::new(Some(scratch.path().join("runs"))).expect("a directory");
        let log = audit_log(store, &observer);
        record(&log, None);
        record(&log, None);
        let failures = observer.failures.lock();
        assert!(
            failures.len() == 1 && failures[0].starts_with("cannot write the audit log: "),
            "{failures:?}"
        );
        assert_eq!(observer.lines.lock().len(), 2);
    }
}
