//! The audit log: one line for every write as it happens, with the change, its commit and source line in the
//! data, and the run.

use std::fmt;
use std::sync::{Arc, Once};
use std::time::{SystemTime, UNIX_EPOCH};

use qontract_runtime::audit::{Attempt, Audit, Written};
use qontract_runtime::{Change, ChangeKind};
use qontract_telemetry::log::{Form, Level, Line};

use crate::lines::Lines;
use crate::pinned::PinnedData;
use crate::run_store::RunStore;
use crate::unfinished::StepFile;

/// Observes writes, in addition to the audit log that is stored with the run records.
pub trait WriteObserver: Send + Sync + 'static {
    /// Called after a write. `since_commit` is the number of seconds since the commit that caused it, if that
    /// is known.
    fn wrote(&self, line: &Line, kind: ChangeKind, since_commit: Option<i64>);
    /// Called when the audit log cannot be written.
    fn lost(&self, why: &str);
    /// Called when an earlier run of the integration did not finish.
    fn unfinished(&self, warning: &str);
}

/// The audit log of one run.
pub struct AuditLog {
    /// The integration.
    pub integration: String,
    /// The data it runs on.
    pub head: Arc<PinnedData>,
    /// The store that holds the audit log.
    pub runs: Arc<RunStore>,
    /// Observes the writes.
    pub heard: Arc<dyn WriteObserver>,
    /// Reports only once that the audit log cannot be written.
    pub told: Once,
    /// Cache that maps places in the data to lines.
    pub lines: Lines,
    /// The steps in progress.
    pub steps: StepFile,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("integration", &self.integration).finish_non_exhaustive()
    }
}

impl AuditLog {
    fn line(&self, written: &Written<'_>, change: &Change) -> Line {
        let (level, text) = match written.failed {
            None => (Level::Info, change.to_string()),
            Some(fault) if fault.is_interrupted => {
                (Level::Warning, format!("interrupted: {change} may be done in part"))
            }
            Some(fault) if fault.is_undone => (Level::Warning, format!("failed, and was not done: {change}")),
            Some(_) => (Level::Warning, format!("failed, and may be done in part: {change}")),
        };
        let mut line = Line::new(level, text).with("integration", self.integration.as_str());
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
        line.with("run", written.run)
            .detail("bundle", source.sha())
            .detail("shard", written.shard.to_string())
            .detail("done", written.failed.is_none())
    }
}

impl AuditLog {
    /// Reports once that something cannot be written.
    fn check(&self, what: &str, kept: anyhow::Result<()>) {
        if let Err(error) = kept {
            self.told.call_once(|| self.heard.lost(&format!("cannot write {what}: {error:#}")));
        }
    }
}

impl Audit for AuditLog {
    fn begin(&self, attempt: &Attempt<'_>) {
        let noted = self.steps.begin(attempt.shard.to_string(), attempt.changes);
        self.check("the list of steps in progress", noted.map_err(Into::into));
    }

    fn end(&self, attempt: &Attempt<'_>) {
        let noted = self.steps.end(attempt.shard.to_string(), attempt.changes);
        self.check("the list of steps in progress", noted.map_err(Into::into));
    }

    fn wrote(&self, written: &Written<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(now.as_secs()).unwrap_or_default();
        let since = self.head.source.committed().map(|committed| seconds - committed);
        let now = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        for change in written.changes {
            let line = self.line(written, change);
            // Not a reason to stop: the log has the line, too.
            self.check("the audit log", self.runs.trail(&line.print(Form::Json, now)));
            self.heard.wrote(&line, change.kind, since);
        }
    }
}
