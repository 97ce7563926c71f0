//! The audit log: one line for every write as it happens, with the change, its commit and source line in the
//! data, and the run.

use std::fmt;
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use qontract_diagnostics::{MessageSink, sanitize};
use qontract_runtime::audit::{Audit, StepAttempt, WriteRecord};
use qontract_runtime::{Change, ChangeKind};
use qontract_telemetry::log::{Level, LineFormat, LogLine};

use crate::line_cache::LineCache;
use crate::pinned_data::PinnedData;
use crate::run_store::RunStore;
use crate::step_file::StepFile;

/// Observes writes, in addition to the audit log that is stored with the run records.
pub trait WriteObserver: Send + Sync + 'static {
    /// Called after a write, with its line, which does not contain the id of the run. `since_commit` is the
    /// number of seconds since the commit that caused it; `None` if the commit time is unknown.
    fn wrote(&self, line: &LogLine, run: &str, kind: ChangeKind, since_commit: Option<i64>);
    /// Called when the audit log cannot be written.
    fn audit_failed(&self, why: &str);
    /// Called when an earlier run of the integration did not finish.
    fn unfinished_run(&self, warning: &str);
}

/// Observer of a single run: prints warnings immediately. The writes are reported at the end of the run.
pub struct WarningObserver {
    messages: Arc<dyn MessageSink>,
}

impl WarningObserver {
    /// Prints the warnings to `messages`.
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
    /// The integration.
    pub integration: String,
    /// The data of the run.
    pub head: Arc<PinnedData>,
    /// The store that holds the audit log.
    pub runs: Arc<RunStore>,
    /// Observes the writes.
    pub observer: Arc<dyn WriteObserver>,
    /// Set when the failure to write the audit log was reported, which happens once.
    pub failure_reported: Once,
    /// Cache that maps source locations to lines.
    pub lines: LineCache,
    /// The steps in progress.
    pub steps: StepFile,
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
    /// Reports once that something cannot be written.
    fn report_failure(&self, what: &str, result: anyhow::Result<()>) {
        if let Err(error) = result {
            self.failure_reported
                .call_once(|| self.observer.audit_failed(&format!("cannot write {what}: {error:#}")));
        }
    }
}

impl Audit for AuditLog {
    fn begin(&self, attempt: &StepAttempt<'_>) {
        let noted = self.steps.begin(attempt.shard.to_string(), attempt.changes);
        self.report_failure("the list of steps in progress", noted.map_err(Into::into));
    }

    fn end(&self, attempt: &StepAttempt<'_>) {
        let noted = self.steps.end(attempt.shard.to_string(), attempt.changes);
        self.report_failure("the list of steps in progress", noted.map_err(Into::into));
    }

    fn record_write(&self, written: &WriteRecord<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(now.as_secs()).unwrap_or_default();
        let since = self.head.source.commit_time().map(|committed| seconds - committed);
        let now = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        for change in written.changes {
            let line = self.line(written, change);
            let entry = line.clone().with("run", written.run).format(LineFormat::Json, now);
            // The run continues, because the log contains the line as well.
            self.report_failure("the audit log", self.runs.append_audit(&entry));
            self.observer.wrote(&line, written.run, change.kind, since);
        }
    }
}
