//! What is told about loops: lines of the log, and metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use qontract_runtime::looping::{Event, Stuck, Told};
use qontract_runtime::{ChangeKind, Ended, Record, record};
use qontract_telemetry::activity::Activity;
use qontract_telemetry::log::{Level, Line, Log};
use qontract_telemetry::metrics::{Metrics, Process};
use tokio::time::Instant;

use crate::keep::audit::Heard;
use crate::keep::turn::Kept;

/// Who waits for longer than this says so, and says it again each time it has doubled.
const LONG: Duration = Duration::from_secs(30);

/// What a loop is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// In a word or two: `runs`, `sleeps`.
    pub word: &'static str,
    /// How its last run ended.
    pub last: Option<(Ended, Duration)>,
    /// How many changes the last plan had, and how many of them are held.
    pub changes: (usize, usize),
    /// The shards of the last run.
    pub shards: Vec<ShardRow>,
    /// When it runs again.
    pub next: Option<Instant>,
    /// What the run is doing, the oldest first; the last is what it waits for.
    pub doing: Vec<Activity>,
    /// When something was heard of it.
    pub heard: Instant,
    /// From which age on a wait is told.
    pub tell_from: Duration,
}

/// What became of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// Its key.
    pub key: String,
    /// How many changes its plan had, and how many of them are held.
    pub changes: (usize, usize),
    /// Whether something went wrong.
    pub failed: bool,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            word: "begins",
            last: None,
            changes: (0, 0),
            shards: Vec::new(),
            next: None,
            doing: Vec::new(),
            heard: Instant::now(),
            tell_from: LONG,
        }
    }
}

/// Tells about one loop.
pub struct Voice {
    process: Process,
    log: Arc<Log>,
    metrics: Arc<Metrics>,
    status: Mutex<Status>,
}

impl Voice {
    /// Of this loop.
    pub fn new(process: Process, log: Arc<Log>, metrics: Arc<Metrics>) -> Self {
        Self { process, log, metrics, status: Mutex::default() }
    }

    /// What the loop is doing.
    pub fn status(&self) -> Status {
        self.lock().clone()
    }

    /// The integration.
    pub fn integration(&self) -> &str {
        &self.process.integration
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.lock();
        status.heard = Instant::now();
        change(&mut status);
    }

    fn line(&self, level: Level, text: impl Into<String>) -> Line {
        Line::new(level, text).with("integration", self.integration())
    }

    fn say(&self, level: Level, text: impl Into<String>) {
        self.log.write(&self.line(level, text));
    }

    /// A run goes on: that it still waits for the same thing is no progress.
    fn beat(&self, doing: Vec<Activity>) {
        let mut status = self.lock();
        let is_same = match (status.doing.last(), doing.last()) {
            (Some(before), Some(now)) => before.what == now.what && before.since <= now.since,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            status.heard = Instant::now();
            status.tell_from = LONG;
        }
        let told = doing.last().map(|waits| {
            let is_long = waits.since >= status.tell_from;
            if is_long {
                status.tell_from = waits.since * 2;
            }
            (if is_long { Level::Info } else { Level::Debug }, format!("waits: {waits}"))
        });
        status.doing = doing;
        drop(status);
        if let Some((level, text)) = told {
            self.say(level, text);
        }
    }

    fn stuck(&self, stuck: &Stuck) {
        self.metrics.stuck(&self.process);
        let doing: Vec<String> = stuck.doing.iter().map(ToString::to_string).collect();
        let doing = if doing.is_empty() { "nothing that it tells".to_owned() } else { doing.join("; ") };
        let (quiet, ran) = (stuck.quiet.as_secs(), stuck.ran.as_secs());
        self.say(
            Level::Error,
            format!("stuck: nothing went on for {quiet} s, in a run of {ran} s; it was doing: {doing}"),
        );
        self.note(|status| {
            status.word = "was stuck";
            status.doing.clear();
        });
    }

    fn measure(&self, record: &Record) {
        for kind in ChangeKind::ALL {
            let all = record.shards.values().flat_map(|shard| &shard.changes);
            let count = all.filter(|change| change.change == kind).count();
            self.metrics.planned(self.integration(), kind.as_str(), count);
        }
        for reason in record.shards.values().filter_map(|shard| shard.reason.as_deref()) {
            self.metrics.skipped(self.integration(), reason, 1);
        }
    }
}

impl Told for Voice {
    fn tell(&self, event: Event) {
        match event {
            Event::Began => {
                self.metrics.began(&self.process);
                self.note(|status| {
                    status.word = "runs";
                    status.next = None;
                });
            }
            Event::Beat(doing) => self.beat(doing),
            Event::Ended(ended, took) => {
                self.metrics.ended(&self.process, took.as_secs_f64(), ended.code().into());
                self.note(|status| {
                    status.last = Some((ended, took));
                    status.doing.clear();
                });
            }
            Event::Measured(phases, measures) => {
                for (phase, took) in phases {
                    self.metrics.phase(self.integration(), phase, took.as_secs_f64());
                }
                self.metrics.measured(self.integration(), &measures);
            }
            Event::Panicked(text) => self.say(Level::Error, text),
            Event::Stuck(stuck) => self.stuck(&stuck),
            Event::Abandoned => {
                self.say(Level::Error, "its thread is blocked, and left behind");
            }
            Event::Sleeps(pause) => self.note(|status| {
                status.word = "sleeps";
                status.next = Some(Instant::now() + pause);
            }),
            Event::Woken => self.say(Level::Debug, "there is new data"),
        }
    }
}

impl Heard for Voice {
    fn wrote(&self, line: &Line, kind: ChangeKind, since_commit: Option<i64>) {
        self.log.write(line);
        if let Some(seconds) = since_commit {
            let name = if kind.removes() { "delete" } else { "apply" };
            #[expect(clippy::cast_precision_loss, reason = "a number of seconds")]
            self.metrics.written(self.integration(), name, seconds as f64);
        }
    }

    fn lost(&self, why: &str) {
        self.say(Level::Error, why);
    }
}

impl Kept for Voice {
    fn ran(&self, _: &str, run: Result<&Record, &anyhow::Error>) {
        let record = match run {
            Ok(record) => record,
            Err(error) => return self.say(Level::Error, format!("cannot run: {error:#}")),
        };
        let shards: Vec<ShardRow> = record.shards.iter().map(|(key, shard)| row(key, shard)).collect();
        let changes = shards.iter().fold((0, 0), |sum, row| (sum.0 + row.changes.0, sum.1 + row.changes.1));
        self.note(|status| (status.changes, status.shards) = (changes, shards));
        self.measure(record);
        // What is written was told when it was; what only would be is told here.
        let would =
            record.shards.values().filter(|_| record.mode != "real run").flat_map(|shard| &shard.changes);
        for change in would {
            let line = self.line(Level::Info, format!("would: {}", change.text));
            self.log.write(&line.with("place", change.place.clone().unwrap_or_default()));
        }
        for warning in &record.warnings {
            self.say(Level::Warning, warning.clone());
        }
        let faults = record.shards.values().flat_map(|shard| &shard.faults).chain(&record.faults);
        for fault in faults {
            let place = fault.places.first().cloned().unwrap_or_default();
            let line = self.line(Level::Error, fault.text.clone()).detail("run", record.run.as_str());
            self.log.write(&line.with("place", place).below(fault.details.join("\n")));
        }
    }
}

fn row(key: &str, shard: &record::Shard) -> ShardRow {
    ShardRow {
        key: key.to_owned(),
        changes: (shard.changes.len(), shard.held.len()),
        failed: !shard.faults.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use qontract_runtime::looping::{Event, Told as _};
    use qontract_telemetry::activity::Activity;
    use qontract_telemetry::log::{Form, Level, Log};
    use qontract_telemetry::metrics::{Metrics, Process};

    use super::Voice;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_told_and_told_again_when_it_has_doubled() {
        let lines = Lines::default();
        let log = Arc::new(Log::new(Level::Info).to(Form::Plain, lines.clone()));
        let process =
            Process { integration: "a".to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() };
        let voice = Voice::new(process, log, Arc::new(Metrics::default()));
        for seconds in (10..=130).step_by(10) {
            let since = Duration::from_secs(seconds);
            voice.tell(Event::Beat(vec![Activity { what: "GET https://c1/".to_owned(), since }]));
        }
        let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            told,
            "waits: GET https://c1/ for 30.0 s integration=a\n\
             waits: GET https://c1/ for 60.0 s integration=a\n\
             waits: GET https://c1/ for 120.0 s integration=a\n"
        );
    }
}
