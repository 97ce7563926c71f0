//! What is told about loops: lines of the log, and metrics.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qontract_runtime::looping::{Event, Told};
use qontract_runtime::{Ended, Record};
use qontract_telemetry::activity::Activity;
use qontract_telemetry::log::{Level, Line, Log};
use qontract_telemetry::metrics::{Metrics, Process};
use tokio::time::Instant;

use crate::keep::turn::Kept;

/// What a loop is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// In a word or two: `runs`, `sleeps`.
    pub doing: String,
    /// How its last run ended.
    pub last: Option<(Ended, Duration)>,
    /// How many changes the last plan had, and how many of them are held.
    pub changes: (usize, usize),
    /// When it runs again.
    pub next: Option<Instant>,
    /// What it waits for.
    pub waits_for: Option<Activity>,
    /// When something was heard of it.
    pub heard: Instant,
}

impl Default for Status {
    fn default() -> Self {
        let (doing, heard) = ("begins".to_owned(), Instant::now());
        Self { doing, last: None, changes: (0, 0), next: None, waits_for: None, heard }
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
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The integration.
    pub fn integration(&self) -> &str {
        &self.process.integration
    }

    fn note(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.heard = Instant::now();
        change(&mut status);
    }

    fn say(&self, level: Level, text: impl Into<String>) {
        self.log.write(&Line::new(level, text).with("integration", self.process.integration.as_str()));
    }
}

impl Told for Voice {
    fn tell(&self, event: Event) {
        match event {
            Event::Began => {
                self.metrics.began(&self.process);
                self.note(|status| {
                    "runs".clone_into(&mut status.doing);
                    status.next = None;
                });
            }
            Event::Beat(waits_for) => {
                if let Some(activity) = &waits_for {
                    self.say(Level::Debug, format!("waits: {activity}"));
                }
                let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
                // That it still waits for the same thing is no progress.
                let is_same = match (&status.waits_for, &waits_for) {
                    (Some(before), Some(now)) => before.what == now.what && before.since <= now.since,
                    (None, None) => true,
                    (Some(_), None) | (None, Some(_)) => false,
                };
                if !is_same {
                    status.heard = Instant::now();
                }
                status.waits_for = waits_for;
            }
            Event::Ended(ended, took) => {
                self.metrics.ended(&self.process, took.as_secs_f64(), ended.code().into());
                self.note(|status| {
                    status.last = Some((ended, took));
                    status.waits_for = None;
                });
            }
            Event::Phases(phases) => {
                for (phase, took) in phases {
                    self.metrics.phase(&self.process.integration, phase, took.as_secs_f64());
                }
            }
            Event::Panicked(text) => self.say(Level::Error, text),
            Event::Stuck(stuck) => {
                self.metrics.stuck(&self.process);
                let doing: Vec<String> = stuck.doing.iter().map(ToString::to_string).collect();
                let doing =
                    if doing.is_empty() { "nothing that it tells".to_owned() } else { doing.join("; ") };
                let (quiet, ran) = (stuck.quiet.as_secs(), stuck.ran.as_secs());
                self.say(
                    Level::Error,
                    format!(
                        "stuck: nothing went on for {quiet} s, in a run of {ran} s; it was doing: {doing}"
                    ),
                );
                self.note(|status| {
                    "was stuck".clone_into(&mut status.doing);
                    status.waits_for = None;
                });
            }
            Event::Abandoned => {
                self.say(Level::Error, "its thread is blocked, and left behind");
            }
            Event::Sleeps(pause) => self.note(|status| {
                "sleeps".clone_into(&mut status.doing);
                status.next = Some(Instant::now() + pause);
            }),
            Event::Woken => self.say(Level::Debug, "there is new data"),
        }
    }
}

impl Kept for Voice {
    fn ran(&self, _: &str, run: Result<&Record, &anyhow::Error>) {
        let record = match run {
            Ok(record) => record,
            Err(error) => return self.say(Level::Error, format!("cannot run: {error:#}")),
        };
        let shards = record.shards.values();
        let (changes, held) = shards
            .fold((0, 0), |(changes, held), shard| (changes + shard.changes.len(), held + shard.held.len()));
        self.note(|status| status.changes = (changes, held));
        for kind in ["add", "change", "replace", "remove"] {
            let all = record.shards.values().flat_map(|shard| &shard.changes);
            let count = all.filter(|change| change.change == kind).count();
            self.metrics.planned(&self.process.integration, kind, count);
        }
        let skipped = record.shards.values().filter(|shard| shard.why.is_some()).count();
        self.metrics.skipped(&self.process.integration, "passed over", skipped as u64);
        for change in record.shards.values().flat_map(|shard| &shard.changes) {
            // One line for each thing that is written: what, because of which commit and line.
            let line = Line::new(Level::Info, change.text.clone())
                .with("integration", self.process.integration.as_str())
                .detail("run", record.run.as_str())
                .detail("mode", record.mode.as_str())
                .detail("bundle", record.head.sha.as_str())
                .detail("commit", record.head.commit.clone().unwrap_or_default())
                .with("place", change.place.clone().unwrap_or_default());
            self.log.write(&line);
        }
        for warning in &record.warnings {
            self.say(Level::Warning, warning.clone());
        }
        let faults = record.shards.values().flat_map(|shard| &shard.faults).chain(&record.faults);
        for fault in faults {
            let place = fault.places.first().cloned().unwrap_or_default();
            self.log.write(
                &Line::new(Level::Error, fault.text.clone())
                    .with("integration", self.process.integration.as_str())
                    .detail("run", record.run.as_str())
                    .with("place", place),
            );
        }
    }
}
