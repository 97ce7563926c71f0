//! Activities: the operations of a run that are in progress, with their start times. They show whether the run makes
//! progress.
//!
//! A run has one [`Activities`] and is executed within [`Activities::scope`]. Code that may take time registers an
//! activity ([`begin`]); a watchdog detects runs in which no activity begins or ends.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::measure::Measurement;

tokio::task_local! {
    static CURRENT: Activities;
    static SHARD: String;
}

/// Maximum number of finished activities that are stored per run. Further activities are only counted.
const MAX_FINISHED: usize = 2_000;

/// The activities of a run. All clones share one state.
#[derive(Clone, Default)]
pub struct Activities(Arc<Inner>);

/// An activity in progress.
struct BegunActivity {
    description: String,
    begun: Instant,
}

#[derive(Default)]
struct Inner {
    ticks: AtomicU64,
    doing: Mutex<BTreeMap<u64, BegunActivity>>,
    /// Duration of each pass of a phase.
    phases: Mutex<Vec<(&'static str, Duration)>>,
    measures: Mutex<Vec<Measurement>>,
    finished: Mutex<FinishedLog>,
}

/// A finished activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedActivity {
    /// The description of the activity.
    pub what: String,
    /// The duration of the activity.
    pub took: Duration,
    /// The result that the code reported, such as the status of a request, if any.
    pub result: Option<String>,
}

/// The finished activities of a run, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedLog {
    /// The first 2,000 finished activities.
    pub activities: Vec<FinishedActivity>,
    /// Number of finished activities that were not stored.
    pub dropped: usize,
}

impl FinishedLog {
    fn add(&mut self, finished: FinishedActivity) {
        if self.activities.len() < MAX_FINISHED {
            self.activities.push(finished);
        } else {
            self.dropped += 1;
        }
    }
}

/// An activity in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The description of the activity, such as `GET https://api.example.com/`.
    pub description: String,
    /// The duration of the activity so far.
    pub elapsed: Duration,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {:.1} s", self.description, self.elapsed.as_secs_f64())
    }
}

impl Activities {
    /// Executes a future within this run, so that the activities of the future are registered in this value.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        CURRENT.scope(self.clone(), future).await
    }

    /// The number of started activities plus the number of ended ones. While this sum grows, the run makes progress.
    pub fn ticks(&self) -> u64 {
        self.0.ticks.load(Ordering::Relaxed)
    }

    /// The activities in progress, oldest first.
    pub fn in_progress(&self) -> Vec<Activity> {
        let now = Instant::now();
        let doing = self.0.doing.lock();
        let mut all: Vec<Activity> = doing
            .values()
            .map(|BegunActivity { description, begun }| Activity {
                description: description.clone(),
                elapsed: now.saturating_duration_since(*begun),
            })
            .collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.elapsed));
        all
    }

    /// Duration of each finished pass of a phase.
    pub fn phases(&self) -> Vec<(&'static str, Duration)> {
        self.0.phases.lock().clone()
    }

    /// The finished activities.
    pub fn finished(&self) -> FinishedLog {
        self.0.finished.lock().clone()
    }

    /// The measurements of the run.
    pub fn measures(&self) -> Vec<Measurement> {
        self.0.measures.lock().clone()
    }
}

impl fmt::Debug for Activities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.in_progress()).finish()
    }
}

/// The guard of an activity. Dropping the guard ends the activity.
#[must_use = "the activity ends when the guard is dropped"]
pub struct ActivityGuard(Option<StartedActivity>);

struct StartedActivity {
    activities: Activities,
    number: u64,
    phase: Option<&'static str>,
    since: Instant,
    result: Option<String>,
}

impl ActivityGuard {
    /// Ends the activity with a result.
    pub fn finish(mut self, result: impl Into<String>) {
        if let Some(begun) = &mut self.0 {
            begun.result = Some(result.into());
        }
    }
}

/// Executes a future as work on the shard with this key.
pub async fn in_shard<F: Future>(key: String, future: F) -> F::Output {
    SHARD.scope(key, future).await
}

/// Ties a future to the current run and shard, even if another thread executes the future.
pub fn in_current_run<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let activities = CURRENT.try_with(Clone::clone).unwrap_or_default();
    CURRENT.scope(activities, SHARD.scope(shard(), future))
}

/// The key of the current shard; empty outside a shard.
pub fn shard() -> String {
    SHARD.try_with(Clone::clone).unwrap_or_default()
}

/// Begins an activity. Outside a run, this has no effect.
pub fn begin(what: impl Into<String>) -> ActivityGuard {
    start(what.into(), None)
}

/// Begins a pass of a phase of a run. The duration of the pass is recorded.
pub fn phase(name: &'static str, what: impl Into<String>) -> ActivityGuard {
    start(what.into(), Some(name))
}

/// Records a measurement. Outside a run, this has no effect.
pub fn record_measurement(measure: Measurement) {
    let _ = CURRENT.try_with(|activities| {
        activities.0.measures.lock().push(measure);
    });
}

fn start(what: String, phase: Option<&'static str>) -> ActivityGuard {
    let begun = CURRENT.try_with(|activities| {
        let number = activities.0.ticks.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut doing = activities.0.doing.lock();
        doing.insert(number, BegunActivity { description: what, begun: now });
        StartedActivity { activities: activities.clone(), number, phase, since: now, result: None }
    });
    ActivityGuard(begun.ok())
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let Some(StartedActivity { activities, number, phase, since, result }) = self.0.take() else {
            return;
        };
        activities.0.ticks.fetch_add(1, Ordering::Relaxed);
        let done = activities.0.doing.lock().remove(&number);
        let took = since.elapsed();
        if let Some(name) = phase {
            let mut phases = activities.0.phases.lock();
            phases.push((name, took));
        }
        if let Some(BegunActivity { description: what, .. }) = done {
            let mut finished = activities.0.finished.lock();
            finished.add(FinishedActivity { what, took, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Activities, FinishedActivity, FinishedLog, MAX_FINISHED, begin, phase};

    #[tokio::test(start_paused = true)]
    async fn activities_in_progress_have_their_duration() {
        let activities = Activities::default();
        let inside = activities.clone();
        activities
            .scope(async {
                let _outer = begin("observe");
                tokio::time::advance(Duration::from_secs(3)).await;
                let inner = begin("GET https://c1");
                tokio::time::advance(Duration::from_secs(2)).await;
                let shown: Vec<String> = inside.in_progress().iter().map(ToString::to_string).collect();
                assert_eq!(shown, ["observe for 5.0 s", "GET https://c1 for 2.0 s"]);
                drop(inner);
                assert_eq!(inside.in_progress().len(), 1);
            })
            .await;
        assert_eq!((activities.in_progress().len(), activities.ticks()), (0, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn the_duration_of_a_phase_is_recorded() {
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
    async fn finished_activities_are_stored_with_their_results_up_to_a_limit() {
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
        let first = FinishedActivity {
            what: "GET https://c1".to_owned(),
            took: Duration::from_secs(2),
            result: Some("200 OK".to_owned()),
        };
        assert_eq!((activities.len(), dropped, &activities[0]), (MAX_FINISHED, 1, &first));
    }

    #[tokio::test]
    async fn outside_of_a_run_an_activity_has_no_effect() {
        let _nothing = begin("whatever");
    }
}
