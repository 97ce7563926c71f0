//! What is being done, and since when: the heartbeat of a run.
//!
//! A run has one [`Activities`], and is executed within it ([`Activities::scope`]). Whoever does something that may take
//! time says so ([`begin`]); a watchdog sees whether anything begins or ends.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::measure::Measure;

tokio::task_local! {
    static CURRENT: Activities;
    static SHARD: String;
}

/// The most activities of one run that are kept after their end. What is dropped is counted.
const MAX_FINISHED: usize = 2_000;

/// What a run is doing. A clone is the same.
#[derive(Clone, Default)]
pub struct Activities(Arc<Inner>);

#[derive(Default)]
struct Inner {
    ticks: AtomicU64,
    doing: Mutex<BTreeMap<u64, (String, Instant)>>,
    /// How long each pass of a phase took.
    phases: Mutex<Vec<(&'static str, Duration)>>,
    measures: Mutex<Vec<Measure>>,
    finished: Mutex<FinishedLog>,
}

/// An activity that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was done.
    pub what: String,
    /// How long it took.
    pub took: Duration,
    /// What came of it, if it was reported: the status of a request.
    pub result: Option<String>,
}

/// The activities of a run that are over, in the order of their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedLog {
    /// Up to 2,000 of them.
    pub activities: Vec<Finished>,
    /// How many more there were.
    pub dropped: usize,
}

impl FinishedLog {
    fn add(&mut self, finished: Finished) {
        if self.activities.len() < MAX_FINISHED {
            self.activities.push(finished);
        } else {
            self.dropped += 1;
        }
    }
}

/// Something that is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// What, in words: `GET https://api.example.com/`.
    pub what: String,
    /// For how long.
    pub since: Duration,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:.1} s", self.what, self.since.as_secs_f64())
    }
}

impl Activities {
    /// Executes a future as what this run does.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        CURRENT.scope(self.clone(), future).await
    }

    /// How often something began or ended: as long as it grows there is progress.
    pub fn ticks(&self) -> u64 {
        self.0.ticks.load(Ordering::Relaxed)
    }

    /// What is being done, the oldest first.
    pub fn doing(&self) -> Vec<Activity> {
        let now = Instant::now();
        let doing = self.0.doing.lock();
        let mut all: Vec<Activity> = doing
            .values()
            .map(|(what, begun)| Activity {
                what: what.clone(),
                since: now.saturating_duration_since(*begun),
            })
            .collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.since));
        all
    }

    /// How long each pass of a phase took that is over.
    pub fn phases(&self) -> Vec<(&'static str, Duration)> {
        self.0.phases.lock().clone()
    }

    /// The activities that are over.
    pub fn finished(&self) -> FinishedLog {
        self.0.finished.lock().clone()
    }

    /// What was measured.
    pub fn measures(&self) -> Vec<Measure> {
        self.0.measures.lock().clone()
    }
}

impl fmt::Debug for Activities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.doing()).finish()
    }
}

/// Something is being done as long as this lives.
#[must_use = "what is dropped at once is over at once"]
pub struct Doing(Option<Begun>);

struct Begun {
    activities: Activities,
    number: u64,
    phase: Option<&'static str>,
    since: Instant,
    result: Option<String>,
}

impl Doing {
    /// Reports what came of it.
    pub fn finish(mut self, result: impl Into<String>) {
        if let Some(begun) = &mut self.0 {
            begun.result = Some(result.into());
        }
    }
}

/// Executes a future as work on a shard.
pub async fn in_shard<F: Future>(key: String, future: F) -> F::Output {
    SHARD.scope(key, future).await
}

/// The shard that is worked on; empty outside of any.
pub fn shard() -> String {
    SHARD.try_with(Clone::clone).unwrap_or_default()
}

/// Says that something begins. Outside of any run nobody listens.
pub fn begin(what: impl Into<String>) -> Doing {
    start(what.into(), None)
}

/// Says that a phase of a run begins: how long it takes is remembered.
pub fn phase(name: &'static str, what: impl Into<String>) -> Doing {
    start(what.into(), Some(name))
}

/// Says what was measured. Outside of any run nobody listens.
pub fn measured(measure: Measure) {
    let _ = CURRENT.try_with(|activities| {
        activities.0.measures.lock().push(measure);
    });
}

fn start(what: String, phase: Option<&'static str>) -> Doing {
    let begun = CURRENT.try_with(|activities| {
        let number = activities.0.ticks.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut doing = activities.0.doing.lock();
        doing.insert(number, (what, now));
        Begun { activities: activities.clone(), number, phase, since: now, result: None }
    });
    Doing(begun.ok())
}

impl Drop for Doing {
    fn drop(&mut self) {
        let Some(Begun { activities, number, phase, since, result }) = self.0.take() else { return };
        activities.0.ticks.fetch_add(1, Ordering::Relaxed);
        let done = activities.0.doing.lock().remove(&number);
        let took = since.elapsed();
        if let Some(name) = phase {
            let mut phases = activities.0.phases.lock();
            phases.push((name, took));
        }
        if let Some((what, _)) = done {
            let mut finished = activities.0.finished.lock();
            finished.add(Finished { what, took, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Activities, Finished, FinishedLog, MAX_FINISHED, begin, phase};

    #[tokio::test(start_paused = true)]
    async fn what_is_being_done_is_told_with_its_age() {
        let activities = Activities::default();
        let inside = activities.clone();
        activities
            .scope(async {
                let _outer = begin("observe");
                tokio::time::advance(Duration::from_secs(3)).await;
                let inner = begin("GET https://c1");
                tokio::time::advance(Duration::from_secs(2)).await;
                let told: Vec<String> = inside.doing().iter().map(ToString::to_string).collect();
                assert_eq!(told, ["observe for 5.0 s", "GET https://c1 for 2.0 s"]);
                drop(inner);
                assert_eq!(inside.doing().len(), 1);
            })
            .await;
        assert_eq!((activities.doing().len(), activities.ticks()), (0, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn how_long_a_phase_took_is_remembered() {
        let activities = Activities::default();
        activities
            .scope(async {
                let _doing = phase("observe", "observe `a`");
                tokio::time::advance(Duration::from_secs(2)).await;
            })
            .await;
        assert_eq!(activities.phases(), [("observe", Duration::from_secs(2))]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_kept_with_its_result_up_to_a_limit() {
        let activities = Activities::default();
        activities
            .scope(async {
                let doing = begin("GET https://c1");
                tokio::time::advance(Duration::from_secs(2)).await;
                doing.finish("200 OK");
                for _ in 0..MAX_FINISHED {
                    let _doing = begin("more");
                }
            })
            .await;
        let FinishedLog { activities, dropped } = activities.finished();
        let first = Finished {
            what: "GET https://c1".to_owned(),
            took: Duration::from_secs(2),
            result: Some("200 OK".to_owned()),
        };
        assert_eq!((activities.len(), dropped, &activities[0]), (MAX_FINISHED, 1, &first));
    }

    #[tokio::test]
    async fn outside_of_a_run_nobody_listens() {
        let _nothing = begin("whatever");
    }
}
