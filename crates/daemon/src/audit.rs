//! A line for every write, when it is made: what, because of which commit and which line of the data, by which run.

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

/// Who hears of writes, besides the trail that is kept with the records of runs.
pub trait WriteObserver: Send + Sync + 'static {
    /// Something was written, so many seconds after the commit it follows from, if that is known.
    fn wrote(&self, line: &Line, kind: ChangeKind, since_commit: Option<i64>);
    /// What was written is not kept in the trail, and why.
    fn lost(&self, why: &str);
    /// A run of the integration did not finish.
    fn unfinished(&self, warning: &str);
}

/// The trail that one run leaves.
pub struct AuditLog {
    /// The integration.
    pub integration: String,
    /// The data it runs on.
    pub head: Arc<PinnedData>,
    /// Where the trail is kept.
    pub runs: Arc<RunStore>,
    /// Who hears of it besides.
    pub heard: Arc<dyn WriteObserver>,
    /// Whether it was told that the trail is not kept.
    pub told: Once,
    /// Where in the data places are.
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
    /// Reports once that something is not kept.
    fn check(&self, what: &str, kept: anyhow::Result<()>) {
        if let Err(error) = kept {
            self.told.call_once(|| self.heard.lost(&format!("{what} is not kept: {error:#}")));
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
            // No reason not to write: the log tells it, too.
            self.check("the trail of writes", self.runs.trail(&line.print(Form::Json, now)));
            self.heard.wrote(&line, change.kind, since);
        }
    }
}
