//! Reports loop events as log lines, loop metrics and status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use qontract_access::Mode;
use qontract_diagnostics::{human, pluralize};
use qontract_report::Location;
use qontract_runtime::reconcile_loop::{LoopEvent, LoopObserver, Stall};
use qontract_runtime::{ChangeKind, Responsible, RunEnd, RunRecord, RunState, StepResult, record};
use qontract_telemetry::activity::Activity;
use qontract_telemetry::log::{Level, LineFormat, Log, LogLine};
use qontract_telemetry::metrics::{Metrics, ProcessLabels, SuccessfulRun};
use tokio::time::Instant;

use crate::audit::WriteObserver;
use crate::clusters;
use crate::debug_log;
use crate::held_changes::{self, HeldChange, HeldReporter};
use crate::plan_report;
use crate::repeat_filter::RepeatFilter;
use crate::run_store::RecordStorage;
use crate::runner::{EndedRun, RunObserver};

/// Duration after which a wait is logged; it is logged again each time its duration doubles.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// The phase of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoopPhase {
    /// The loop has not run yet.
    #[default]
    Starting,
    /// A run is in progress.
    Running,
    /// The loop waits for the next run.
    Sleeping,
    /// The run of the loop made no progress and was cancelled.
    Stalled,
    /// An operator paused the loop.
    Paused,
}

impl LoopPhase {
    /// The phase in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Stalled => "stalled",
            Self::Paused => "paused",
        }
    }
}

/// Numbers of changes of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Number of changes that the plan makes.
    pub planned: usize,
    /// Number of planned changes that a real run did not make.
    pub failed: usize,
    /// Number of changes that guards hold.
    pub held: usize,
}

impl ChangeCounts {
    /// Counts the changes of a shard. Undecided changes, which are neither planned nor held by a guard, are not
    /// counted.
    pub fn of(shard: &record::ShardRecord) -> Self {
        let is_failed = |change: &&record::ChangeRecord| match change.result {
            StepResult::Planned | StepResult::Done => false,
            StepResult::Failed | StepResult::Interrupted | StepResult::NotTried => true,
        };
        Self {
            planned: shard.changes.len(),
            failed: shard.changes.iter().filter(is_failed).count(),
            held: shard.held_by_guards().count(),
        }
    }
}

impl std::iter::Sum for ChangeCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, one| Self {
            planned: sum.planned + one.planned,
            failed: sum.failed + one.failed,
            held: sum.held + one.held,
        })
    }
}

/// The result and the duration of a run of a loop.
#[derive(Clone, Copy, Debug)]
pub struct LoopRun {
    /// The end state of the run.
    pub ended: RunEnd,
    /// The duration of the run.
    pub took: Duration,
}

/// The status of a loop.
#[derive(Clone, Debug)]
pub struct LoopStatus {
    /// The phase of the loop.
    pub phase: LoopPhase,
    /// The result and the duration of the last run.
    pub last: Option<LoopRun>,
    /// The changes of the last plan.
    pub changes: ChangeCounts,
    /// The shards of the last run.
    pub shards: Vec<ShardRow>,
    /// The changes that the last run held.
    pub held: Vec<HeldChange>,
    /// The first error of the last run.
    pub error: Option<String>,
    /// Number of errors of the last run.
    pub errors: usize,
    /// The last run, if it has a record.
    pub run: Option<LastRun>,
    /// The time of the next run.
    pub next: Option<Instant>,
    /// The reason why the loop is paused, if it is paused.
    pub paused: Option<String>,
    /// The activities of the run, oldest first. The run waits for the last activity.
    pub doing: Vec<Activity>,
    /// The time of the last progress.
    pub last_progress: Instant,
    /// The time of the last event, including heartbeats, which show that the watchdog is alive.
    pub last_heartbeat: Instant,
    /// The duration at which the current wait is logged next.
    pub log_threshold: Duration,
}

/// The last run of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// The id; `None` if the record is not stored, because runs with nothing to do are only counted.
    pub id: Option<String>,
    /// The state of the run.
    pub state: RunState,
    /// The mode of the run, which determines whether it could change targets.
    pub mode: Mode,
}

/// The result of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// The key of the shard.
    pub key: String,
    /// The numbers of changes of the shard's plan.
    pub changes: ChangeCounts,
    /// Whether the shard has errors.
    pub failed: bool,
}

impl LoopStatus {
    /// The state of the last run; `None` before the first run.
    pub fn last_state(&self) -> Option<&'static str> {
        let LoopRun { ended, .. } = self.last?;
        // A run without a record panicked, stalled or could not start.
        Some(self.run.as_ref().map_or(ended.as_str(), |run| run.state.as_str()))
    }
}

impl Default for LoopStatus {
    fn default() -> Self {
        Self {
            phase: LoopPhase::default(),
            last: None,
            changes: ChangeCounts::default(),
            shards: Vec::new(),
            held: Vec::new(),
            error: None,
            errors: 0,
            run: None,
            next: None,
            paused: None,
            doing: Vec::new(),
            last_progress: Instant::now(),
            last_heartbeat: Instant::now(),
            log_threshold: LONG_WAIT,
        }
    }
}

/// Reports one loop: log lines, metrics and status.
pub struct LoopReporter {
    process: ProcessLabels,
    log: Arc<Log>,
    metrics: Arc<Metrics>,
    status: Mutex<LoopStatus>,
    held_reporter: Mutex<HeldReporter>,
    repeats: Mutex<RepeatFilter>,
    failed_writes: Mutex<RepeatFilter>,
    run_level: Level,
    /// Whether the clusters of the next run must be logged.
    is_naming_clusters: AtomicBool,
}

impl LoopReporter {
    /// Creates the reporter of a loop of this process.
    pub fn new(process: ProcessLabels, log: Arc<Log>, metrics: Arc<Metrics>) -> Self {
        metrics.start(&process);
        let (status, held_reporter) = (Mutex::default(), Mutex::default());
        let (repeats, failed_writes) = (Mutex::default(), Mutex::default());
        let run_level = Level::Info;
        let is_naming_clusters = AtomicBool::new(false);
        Self {
            process,
            log,
            metrics,
            status,
            held_reporter,
            repeats,
            failed_writes,
            run_level,
            is_naming_clusters,
        }
    }

    /// Sets the level of the log line about each run. It is `DEBUG` if a table already shows the runs.
    #[must_use]
    pub fn with_run_level(self, run_level: Level) -> Self {
        Self { run_level, ..self }
    }

    /// Logs the clusters of the next run. Used for data on a server, because the log line before the run does not
    /// name clusters.
    pub fn name_clusters(&self) {
        self.is_naming_clusters.store(true, Ordering::Relaxed);
    }

    /// The current status.
    pub fn status(&self) -> LoopStatus {
        self.lock().clone()
    }

    /// The integration that the loop runs.
    pub fn integration(&self) -> &str {
        &self.process.integration
    }

    fn lock(&self) -> MutexGuard<'_, LoopStatus> {
        self.status.lock()
    }

    fn update(&self, change: impl FnOnce(&mut LoopStatus)) {
        let mut status = self.lock();
        status.last_progress = Instant::now();
        status.last_heartbeat = status.last_progress;
        change(&mut status);
    }

    fn line(&self, level: Level, text: impl Into<String>) -> LogLine {
        LogLine::new(level, text).with("integration", self.integration())
    }

    fn log(&self, level: Level, text: impl Into<String>) {
        self.log.write(&self.line(level, text));
    }

    /// Handles a heartbeat. If the run still waits for the same activity as at the last heartbeat, it has made no
    /// progress.
    fn heartbeat(&self, doing: Vec<Activity>) {
        let mut status = self.lock();
        status.last_heartbeat = Instant::now();
        let is_same = match (status.doing.last(), doing.last()) {
            (Some(before), Some(now)) => {
                before.description == now.description && before.elapsed <= now.elapsed
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            status.last_progress = Instant::now();
            status.log_threshold = LONG_WAIT;
        }
        let line = doing.last().map(|waits| {
            let is_long = waits.elapsed >= status.log_threshold;
            if is_long {
                status.log_threshold = waits.elapsed * 2;
            }
            (if is_long { Level::Info } else { Level::Debug }, format!("waiting: {waits}"))
        });
        status.doing = doing;
        drop(status);
        if let Some((level, text)) = line {
            self.log(level, text);
        }
    }

    fn stalled(&self, stall: &Stall) {
        self.metrics.count_stalled(&self.process);
        let doing: Vec<String> = stall.activities.iter().map(ToString::to_string).collect();
        let doing = if doing.is_empty() { "no known activity".to_owned() } else { doing.join("; ") };
        let (idle, ran) = (stall.idle.as_secs(), stall.elapsed.as_secs());
        self.log(
            Level::Error,
            format!("run stalled: no progress for {idle} s, ended after {ran} s; activities: {doing}"),
        );
        self.update(|status| {
            status.phase = LoopPhase::Stalled;
            status.doing.clear();
        });
    }

    /// Logs the end of a run and, if another run follows, the time until that run.
    pub fn log_run(&self, next: Option<Duration>) {
        let status = self.status();
        let (Some(LoopRun { took, .. }), Some(state)) = (status.last, status.last_state()) else { return };
        let mut line = self
            .line(self.run_level, format!("run ended: {state}"))
            .with("took", human::duration(took))
            .with_detail("state", state)
            .with_detail("took_ms", u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if let Some(run) = &status.run {
            let ChangeCounts { planned, failed, held } = status.changes;
            line =
                line.with("changes", planned - failed).with("held", held).with("mode", mode_word(run.mode));
            if failed > 0 {
                line = line.with("failed", failed);
            }
            if status.errors > 0 {
                line = line.with("errors", status.errors);
            }
            line = run.id.iter().fold(line, |line, id| line.with("run", id.as_str()));
        }
        if let Some(next) = next {
            line = line.with("next_in", human::duration(next)).with_detail("next_seconds", next.as_secs());
        }
        self.log.write(&line);
    }

    /// Logs debug lines. They are computed only if debug lines are written.
    fn log_debug(&self, lines: impl FnOnce() -> Vec<LogLine>) {
        if self.log.is_enabled(Level::Debug) {
            for line in lines() {
                self.log.write(&line.with("integration", self.integration()));
            }
        }
    }

    /// Logs held changes that are new, have changed, or were not logged for an hour.
    fn log_held(&self, record: &RunRecord, changes: &[HeldChange]) {
        // A run that failed might not have planned all shards.
        let is_complete = match record.state() {
            RunState::Ok | RunState::Waiting | RunState::Degraded | RunState::Held => true,
            RunState::NotKnown | RunState::Failed | RunState::Interrupted | RunState::Running => false,
        };
        if is_complete || !changes.is_empty() {
            self.metrics.set_held(&self.process, changes.len() + record.unplanned_holds);
        }
        let mut reporter = self.held_reporter.lock();
        let report = reporter.update(changes, is_complete, Instant::now());
        drop(reporter);
        for line in held_changes::lines(&record.run, &report.held) {
            self.log.write(&line.with("integration", self.integration()));
        }
        for text in report.released {
            self.log(Level::Info, format!("no longer held: {text}"));
        }
    }

    /// Logs lines that are new or were not logged for an hour; all other lines are logged at `DEBUG`. A line that
    /// differs from an earlier one only in the id of the run is not new.
    fn log_new(&self, lines: Vec<LogLine>, run: Option<&str>) {
        let texts: Vec<String> =
            lines.iter().map(|line| line.format(LineFormat::Levelled, Timestamp::UNIX_EPOCH)).collect();
        let due = self.repeats.lock().due(&texts, Instant::now());
        for (line, is_due) in lines.into_iter().zip(due) {
            let line = if is_due { line } else { line.at_level(Level::Debug) };
            self.log.write(&run.iter().fold(line, |line, run| line.with("run", *run)));
        }
    }

    fn measure(&self, record: &RunRecord, commit_time: Option<i64>) {
        if record.ended.is_success() && record.mode == Mode::Real {
            self.metrics.set_success(
                &self.process,
                &SuccessfulRun {
                    ended: Timestamp::now().as_second(),
                    commit: record.head.commit.as_deref(),
                    commit_time,
                    bundle: &record.head.sha,
                },
            );
        }
        let faults = record.faults.iter().chain(record.shards.values().flat_map(|shard| &shard.faults));
        let responsible: Vec<Responsible> = faults.filter_map(|fault| fault.whose).collect();
        for one in Responsible::ALL {
            let count = responsible.iter().filter(|other| **other == one).count();
            self.metrics.set_faults(&self.process, one.as_str(), count);
        }
        let count = |of: fn(&record::ShardRecord) -> usize| record.shards.values().map(of).sum();
        self.metrics.set_waits(&self.process, count(|shard| shard.waits.len()));
        self.metrics.set_degraded(&self.process, count(|shard| shard.degraded.len()));
        for kind in ChangeKind::ALL {
            let all = record.shards.values().flat_map(|shard| &shard.changes);
            let count = all.filter(|change| change.change == kind).count();
            self.metrics.set_planned(&self.process, kind.as_str(), count);
        }
        for reason in record.shards.values().filter_map(|shard| shard.reason) {
            self.metrics.count_skipped(&self.process, reason.as_str(), 1);
        }
    }
}

impl LoopObserver for LoopReporter {
    fn observe(&self, event: LoopEvent) {
        match event {
            LoopEvent::Started => {
                self.metrics.count_start(&self.process);
                self.failed_writes.lock().start_run();
                self.update(|status| {
                    status.phase = LoopPhase::Running;
                    status.next = None;
                    status.run = None;
                });
            }
            LoopEvent::Heartbeat(doing) => self.heartbeat(doing),
            LoopEvent::Ended(ended, took) => {
                self.metrics.observe_run(&self.process, took.as_secs_f64(), ended.code().into());
                self.update(|status| {
                    status.last = Some(LoopRun { ended, took });
                    status.doing.clear();
                });
            }
            LoopEvent::Measured(phases, measures) => {
                for (phase, took) in phases {
                    self.metrics.observe_phase(&self.process, phase, took.as_secs_f64());
                }
                self.metrics.record(self.integration(), &measures);
            }
            LoopEvent::Finished(finished) => self.log_debug(|| debug_log::activities(&finished)),
            LoopEvent::Panicked(text) => self.log(Level::Error, text),
            LoopEvent::Stalled(stall) => self.stalled(&stall),
            LoopEvent::Abandoned => {
                self.log(
                    Level::Error,
                    "the thread of the run is blocked and was abandoned; the next run gets a new thread",
                );
            }
            LoopEvent::Sleeping(pause) => {
                self.log_run(Some(pause));
                self.update(|status| {
                    status.phase = LoopPhase::Sleeping;
                    status.next = Some(Instant::now() + pause);
                });
            }
            LoopEvent::Woken => self.log(Level::Debug, "new data: the next run starts now"),
            LoopEvent::RunOrdered => self.log(Level::Info, "an operator ordered a run: it starts now"),
            LoopEvent::Paused(reason) => {
                self.metrics.set_paused(&self.process, true);
                self.log(Level::Warning, format!("{reason}; no run starts until then"));
                self.update(|status| {
                    (status.phase, status.next, status.paused) = (LoopPhase::Paused, None, Some(reason));
                });
            }
            LoopEvent::Resumed => {
                self.metrics.set_paused(&self.process, false);
                self.log(Level::Info, "the pause ended");
                self.update(|status| status.paused = None);
            }
        }
    }
}

impl WriteObserver for LoopReporter {
    fn wrote(&self, line: &LogLine, run: &str, kind: ChangeKind, since_commit: Option<i64>) {
        if line.level() > Level::Info {
            // Every run of a loop tries a failed change again, so the line is logged only once an hour.
            let text = line.format(LineFormat::Levelled, Timestamp::UNIX_EPOCH);
            let is_due = self.failed_writes.lock().is_due(&text, Instant::now());
            let line = if is_due { line.clone() } else { line.clone().at_level(Level::Debug) };
            return self.log.write(&line.with("run", run));
        }
        self.log.write(&line.clone().with("run", run));
        if let Some(seconds) = since_commit {
            let name = if kind.removes() { "delete" } else { "apply" };
            #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
            self.metrics.observe_write(self.integration(), name, seconds as f64);
        }
    }

    fn audit_failed(&self, why: &str) {
        self.log(Level::Error, why);
    }

    fn unfinished_run(&self, warning: &str) {
        self.log(Level::Warning, warning);
    }
}

impl RunObserver for LoopReporter {
    fn ran(&self, _: &str, run: Result<EndedRun<'_>, &anyhow::Error>) {
        let EndedRun { record, storage, commit_time } = match run {
            Ok(run) => run,
            Err(error) => {
                let text = format!("cannot start the run: {error:#}");
                self.update(|status| (status.error, status.errors) = (Some(text.clone()), 1));
                return self.log_new(vec![self.line(Level::Error, text)], None);
            }
        };
        if !record.shards.is_empty() && self.is_naming_clusters.swap(false, Ordering::Relaxed) {
            self.log(Level::Info, clusters_line(record));
        }
        let shards: Vec<ShardRow> = record.shards.iter().map(|(key, shard)| shard_row(key, shard)).collect();
        let changes = shards.iter().map(|row| row.changes).sum();
        let held = held_changes::held_changes(record);
        self.log_debug(|| debug_log::decisions(record));
        self.log_held(record, &held);
        let errors = plan_report::distinct_errors(record);
        self.update(|status| {
            (status.changes, status.shards, status.held) = (changes, shards, held);
            status.error = errors.first().map(|error| error.message.clone());
            status.errors = errors.len();
            let id = (storage == RecordStorage::Stored).then(|| record.run.clone());
            status.run = Some(LastRun { id, state: record.state(), mode: record.mode });
        });
        self.measure(record, commit_time);
        // Writes were logged as they happened; the changes of a dry run are logged here.
        let planned =
            record.shards.values().filter(|_| record.mode != Mode::Real).flat_map(|shard| &shard.changes);
        for change in planned {
            let line = self.line(Level::Info, format!("would: {}", change.text));
            let place = change.place.as_deref();
            self.log.write(&place.into_iter().fold(line, |line, place| line.with("place", place)));
        }
        let degraded = record.shards.values().flat_map(|shard| &shard.degraded);
        let degraded = degraded.map(|one| {
            let line = self.line(Level::Warning, format!("degraded: {}", one.text));
            one.places.first().into_iter().fold(line, |line, place| line.with("place", place.as_str()))
        });
        let warnings = record.warnings.iter().map(|warning| self.line(Level::Warning, warning.clone()));
        let warnings = warnings.chain(degraded);
        // An abandoned step is omitted, because its audit log line was already logged.
        let changes = record.shards.values().flat_map(|shard| &shard.changes);
        let abandoned: Vec<String> = changes
            .filter(|change| change.result == StepResult::Interrupted)
            .map(|change| format!("interrupted: {} may be partially applied", change.text))
            .collect();
        let errors = errors.iter().filter(|error| !abandoned.contains(&error.message)).map(|error| {
            let text = match error.concerned_shards() {
                Some(shards) => format!("{} (in {shards})", error.message),
                None => error.message.clone(),
            };
            let line = self.line(Level::Error, text).with_lines_below(error.details.join("\n"));
            provenance(&error.locations).into_iter().fold(line, |line, place| line.with("place", place))
        });
        let not_done = record.shards.values().flat_map(|shard| &shard.held).filter(|one| !one.is_held());
        let not_done = not_done.map(|change| {
            let why = change.why.as_deref().unwrap_or_default();
            self.line(Level::Info, not_done_text(change, why))
        });
        self.log_new(warnings.chain(errors).chain(not_done).collect(), Some(&record.run));
    }
}

/// The mode of a run, as one word of a log line.
fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::DryRun => "dry-run",
        Mode::Real => "real",
    }
}

/// The mode of a run, the number of its shards, and the clusters of these shards.
fn clusters_line(record: &RunRecord) -> String {
    let keys = record.shards.keys().flat_map(|key| key.split(", "));
    let names: BTreeSet<String> =
        keys.filter_map(|part| part.strip_prefix("cluster=")).map(str::to_owned).collect();
    let shards = pluralize(record.shards.len(), "shard");
    let names: Vec<String> = names.into_iter().collect();
    let clusters =
        if names.is_empty() { String::new() } else { format!(" · {}", clusters::format_list(&names)) };
    format!("{} · {shards}{clusters}", record.mode.as_str())
}

/// The text about a change that is not made and that no approval releases.
fn not_done_text(change: &record::ChangeRecord, why: &str) -> String {
    match change.text.strip_prefix("- remove ") {
        // The text does not name the kind of change, because the data may still declare the object.
        Some(object) => format!("left unchanged: {object}: {why}"),
        None => format!("not done: {}: {why}", change.text),
    }
}

/// The source location that is logged with an error: the first location with a line or, if no location has a line,
/// the first location.
fn provenance(locations: &[Location]) -> Option<String> {
    let location = locations.iter().find(|location| location.line.is_some()).or_else(|| locations.first());
    location.map(Location::to_string)
}

fn shard_row(key: &str, shard: &record::ShardRecord) -> ShardRow {
    ShardRow { key: key.to_owned(), changes: ChangeCounts::of(shard), failed: !shard.faults.is_empty() }
}

#[cfg(test)]
mod tests;
