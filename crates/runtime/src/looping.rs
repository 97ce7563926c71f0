//! The reconcile loop: schedules the runs of an integration with back-off and jitter, ends runs that stall
//! (watchdog), and exits when they stall repeatedly.
//!
//! **Invariant:** whatever a run does (fail, panic, hang, block its thread), the loop continues or exits; it
//! never waits forever (`tests/looping.rs`).

mod pace;
mod stop;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qontract_telemetry::activity::{Activities, Activity, FinishedLog};
use qontract_telemetry::measure::Measure;
use tokio::sync::watch::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::fault::panicked;
use crate::outcome::Ended;

pub use pace::Pace;
pub use qontract_concurrency::Limiter;
pub use stop::{Interruption, StepInProgress, Stop, Stopper};
pub use watch::{Limits, Stuck};

/// The job that a loop runs repeatedly.
pub trait Turn: Send + Sync + 'static {
    /// Runs the job once. The run ends soon after a shutdown is requested: steps in progress are finished and
    /// no other step starts. It ends immediately when the shutdown is forced.
    fn turn(&self, stop: Stop) -> BoxFuture<'static, Ended>;
}

/// The isolation of a run from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A task on the shared runtime: a run that blocks its thread also blocks others.
    Task,
    /// A dedicated thread: a run that blocks it is abandoned, and other runs continue.
    Thread,
}

/// An event of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A run started.
    Began,
    /// A run is in progress, with its activities, oldest first: it waits for the last one.
    Beat(Vec<Activity>),
    /// A run ended, with its duration.
    Ended(Ended, Duration),
    /// The duration of each pass of a phase of that run, and its other measurements.
    Measured(Vec<(&'static str, Duration)>, Vec<Measure>),
    /// The activities of that run, for debugging.
    Finished(FinishedLog),
    /// A run panicked.
    Panicked(String),
    /// The watchdog ended a run that made no progress.
    Stuck(Stuck),
    /// A cancelled run did not end: its thread is blocked and was abandoned.
    Abandoned,
    /// The loop sleeps for this time.
    Sleeps(Duration),
    /// New data ended the sleep early.
    Woken,
}

/// Receives the events of a loop.
pub trait Told: Send + Sync {
    /// Handles an event.
    fn tell(&self, event: Event);
}

/// The reason why a loop exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It runs only once, and that run ended like this.
    Once(Ended),
    /// A shutdown was requested.
    Stopped,
    /// It stalled too often in a row, or too many threads are blocked: its supervisor has to restart the
    /// process.
    GaveUp,
}

/// The settings of a loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Decides when the next run is due.
    pub pace: Pace,
    /// The limits that the watchdog enforces.
    pub limits: Limits,
    /// Isolation of runs.
    pub carrier: Carrier,
    /// Limits how many runs execute concurrently, across all loops that share it. A run that gets no permit
    /// in time proceeds without one, so that a hung run never blocks the others.
    pub limiter: Limiter,
    /// Whether the loop exits after the first run.
    pub once: bool,
}

/// The inputs of a loop.
pub struct LoopContext<'a, R> {
    /// Changes when there is new data.
    pub data: Receiver<u64>,
    /// Requests a shutdown of the loop.
    pub stop: Stop,
    /// Returns random numbers from 0 to 1, for jitter.
    pub random: R,
    /// Receives the events.
    pub observer: &'a dyn Told,
}

impl Loop {
    /// Runs the job, sleeps, and repeats. The first run starts immediately, further runs on schedule or as
    /// soon as the data changes.
    pub async fn keep(&self, turn: Arc<dyn Turn>, context: LoopContext<'_, impl Fn() -> f64>) -> Finish {
        let LoopContext { mut data, stop, random, observer } = context;
        let (mut failures, mut stalls, mut abandoned) = (0u32, 0u32, 0u32);
        loop {
            let permit = tokio::select! {
                permit = self.limiter.acquire() => permit.ok(),
                () = stop.asked() => return Finish::Stopped,
            };
            data.mark_unchanged();
            observer.tell(Event::Began);
            let ended = match self.run(&*turn, &stop, observer).await {
                Run::Ended(ended) => {
                    stalls = 0;
                    ended
                }
                Run::Stuck(left) => {
                    stalls += 1;
                    abandoned += u32::from(left == Left::Blocked);
                    if stalls >= self.limits.stuck || abandoned > self.limits.abandoned {
                        return Finish::GaveUp;
                    }
                    Ended::Transient
                }
            };
            drop(permit);
            if self.once {
                return Finish::Once(ended);
            }
            if stop.is_asked() {
                return Finish::Stopped;
            }
            failures = if ended.is_retried() { failures.saturating_add(1) } else { 0 };
            let pause = self.pace.pause(failures, random());
            observer.tell(Event::Sleeps(pause));
            tokio::select! {
                () = sleep(pause) => {}
                changed = data.changed(), if data.has_changed().is_ok() => {
                    if changed.is_ok() {
                        observer.tell(Event::Woken);
                    }
                }
                () = stop.asked() => return Finish::Stopped,
            }
        }
    }

    /// Runs the job once, under the watchdog.
    async fn run(&self, turn: &dyn Turn, stop: &Stop, observer: &dyn Told) -> Run {
        let activities = Activities::default();
        let (cancel, cancelled) = stop::pair();
        let begun = Instant::now();
        let mut task = self.start(activities.clone(), turn.turn(stop.clone()), cancelled);
        let stall = tokio::select! {
            joined = &mut task => {
                let ended = conclude(joined, begun.elapsed(), observer);
                observer.tell(Event::Finished(activities.finished()));
                observer.tell(Event::Measured(activities.phases(), activities.measures()));
                return Run::Ended(ended);
            }
            stall = watch::until_stuck(&activities, &self.limits, |doing| observer.tell(Event::Beat(doing))) => Some(stall),
            // A run that does not end in time after a shutdown request is forced to end.
            () = until_forced(stop, self.limits.wind_down) => None,
        };
        if let Some(stall) = stall {
            observer.tell(Event::Stuck(stall));
            observer.tell(Event::Ended(Ended::Transient, begun.elapsed()));
        } else {
            stop.force();
            // The run abandons its steps and reports them.
            if let Ok(joined) = timeout(self.limits.grace, &mut task).await {
                return Run::Ended(conclude(joined, begun.elapsed(), observer));
            }
        }
        cancel.ask();
        task.abort();
        if timeout(self.limits.grace, task).await.is_ok() {
            return Run::Stuck(Left::Nothing);
        }
        observer.tell(Event::Abandoned);
        Run::Stuck(Left::Blocked)
    }

    fn start(
        &self,
        activities: Activities,
        run: impl Future<Output = Ended> + Send + 'static,
        cancelled: Stop,
    ) -> JoinHandle<Option<Ended>> {
        let run = async move {
            tokio::select! {
                ended = activities.scope(run) => Some(ended),
                () = cancelled.asked() => None,
            }
        };
        match self.carrier {
            Carrier::Task => tokio::spawn(run),
            Carrier::Thread => {
                let handle = tokio::runtime::Handle::current();
                tokio::task::spawn_blocking(move || handle.block_on(run))
            }
        }
    }
}

/// Waits until a shutdown is forced, or until `wind_down` has passed since it was requested.
async fn until_forced(stop: &Stop, wind_down: Duration) {
    tokio::select! {
        () = stop.forced() => {}
        () = async { stop.asked().await; sleep(wind_down).await } => {}
    }
}

/// The result of a run under the watchdog.
enum Run {
    Ended(Ended),
    Stuck(Left),
}

/// What a cancelled run leaves behind.
#[derive(PartialEq, Eq)]
enum Left {
    Nothing,
    Blocked,
}

fn conclude(
    joined: Result<Option<Ended>, tokio::task::JoinError>,
    took: Duration,
    observer: &dyn Told,
) -> Ended {
    let ended = match joined {
        Ok(Some(ended)) => ended,
        Ok(None) => Ended::Transient,
        Err(error) => {
            let text = match error.try_into_panic() {
                Ok(panic) => panicked("the run", &*panic).text,
                Err(error) => error.to_string(),
            };
            observer.tell(Event::Panicked(text));
            Ended::Failed
        }
    };
    observer.tell(Event::Ended(ended, took));
    ended
}
