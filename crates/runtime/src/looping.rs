//! An integration in a loop that never gets stuck: when the next run is due, what ends one that hangs, and when to give up.
//!
//! **Invariant:** whatever a run does (fail, panic, hang, block its thread), the loop goes on or the process ends; it never
//! waits for ever (`tests/looping.rs`).

mod crowd;
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

pub use crowd::Crowd;
pub use pace::Pace;
pub use stop::{Interruption, StepInProgress, Stop, Stopper};
pub use watch::{Limits, Stuck};

/// One run after the other of the same thing.
pub trait Turn: Send + Sync + 'static {
    /// One run. It ends soon after `stop` is asked for: steps in progress are finished, and no other is begun. It ends at once when that is forced.
    fn turn(&self, stop: Stop) -> BoxFuture<'static, Ended>;
}

/// What a run is carried by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A task among others: one that blocks its thread blocks others, too.
    Task,
    /// A thread of its own: one that blocks it is abandoned, and the others go on.
    Thread,
}

/// What happens in a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A run begins.
    Began,
    /// A run goes on; this is what it is doing, the oldest first: the last is what it waits for.
    Beat(Vec<Activity>),
    /// A run ended, after so long.
    Ended(Ended, Duration),
    /// How long each pass of a phase of that run took, and what else it measured.
    Measured(Vec<(&'static str, Duration)>, Vec<Measure>),
    /// The activities of that run, for debugging.
    Finished(FinishedLog),
    /// A run panicked.
    Panicked(String),
    /// A run was ended because nothing went on.
    Stuck(Stuck),
    /// A run did not end when it was ended: its thread is blocked, and left behind.
    Abandoned,
    /// Nothing is done for so long.
    Sleeps(Duration),
    /// There is new data before that time is over.
    Woken,
}

/// Receives the events of a loop.
pub trait Told: Send + Sync {
    /// Something happened.
    fn tell(&self, event: Event);
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was to run once, and that run ended like this.
    Once(Ended),
    /// It was asked to stop.
    Stopped,
    /// It stalled too often in a row, or too many threads are blocked: its supervisor has to restart the process.
    GaveUp,
}

/// How a loop goes.
#[derive(Clone, Debug)]
pub struct Loop {
    /// When the next run is due.
    pub pace: Pace,
    /// What a run may take.
    pub limits: Limits,
    /// What a run is carried by.
    pub carrier: Carrier,
    /// With whom it takes turns.
    pub crowd: Crowd,
    /// Whether it ends after the first run.
    pub once: bool,
}

impl Loop {
    /// Runs, sleeps, and runs again: at once at first, then as the pace says, or as soon as `data` changes. `chance` gives
    /// numbers from 0 to 1.
    pub async fn keep(
        &self,
        turn: Arc<dyn Turn>,
        mut data: Receiver<u64>,
        stop: Stop,
        (chance, told): (impl Fn() -> f64, &dyn Told),
    ) -> Finish {
        let (mut failures, mut stuck, mut abandoned) = (0u32, 0u32, 0u32);
        loop {
            let turn_of_ours = tokio::select! {
                turn = self.crowd.turn() => turn,
                () = stop.asked() => return Finish::Stopped,
            };
            data.mark_unchanged();
            told.tell(Event::Began);
            let ended = match self.run(&*turn, &stop, told).await {
                Run::Ended(ended) => {
                    stuck = 0;
                    ended
                }
                Run::Stuck(left) => {
                    stuck += 1;
                    abandoned += u32::from(left == Left::Blocked);
                    if stuck >= self.limits.stuck || abandoned > self.limits.abandoned {
                        return Finish::GaveUp;
                    }
                    Ended::Transient
                }
            };
            drop(turn_of_ours);
            if self.once {
                return Finish::Once(ended);
            }
            if stop.is_asked() {
                return Finish::Stopped;
            }
            failures = if ended.is_retried() { failures.saturating_add(1) } else { 0 };
            let pause = self.pace.pause(failures, chance());
            told.tell(Event::Sleeps(pause));
            tokio::select! {
                () = sleep(pause) => {}
                changed = data.changed(), if data.has_changed().is_ok() => {
                    if changed.is_ok() {
                        told.tell(Event::Woken);
                    }
                }
                () = stop.asked() => return Finish::Stopped,
            }
        }
    }

    /// One run, with the watchdog beside it.
    async fn run(&self, turn: &dyn Turn, stop: &Stop, told: &dyn Told) -> Run {
        let activities = Activities::default();
        let (cancel, cancelled) = stop::pair();
        let begun = Instant::now();
        let mut task = self.start(activities.clone(), turn.turn(stop.clone()), cancelled);
        let stuck = tokio::select! {
            joined = &mut task => {
                let ended = conclude(joined, begun.elapsed(), told);
                told.tell(Event::Finished(activities.finished()));
                told.tell(Event::Measured(activities.phases(), activities.measures()));
                return Run::Ended(ended);
            }
            stuck = watch::until_stuck(&activities, &self.limits, |doing| told.tell(Event::Beat(doing))) => Some(stuck),
            // A run that was asked to end, and does not in time, is forced to.
            () = until_forced(stop, self.limits.wind_down) => None,
        };
        if let Some(stuck) = stuck {
            told.tell(Event::Stuck(stuck));
            told.tell(Event::Ended(Ended::Transient, begun.elapsed()));
        } else {
            stop.force();
            // It abandons its steps, and reports which.
            if let Ok(joined) = timeout(self.limits.grace, &mut task).await {
                return Run::Ended(conclude(joined, begun.elapsed(), told));
            }
        }
        cancel.ask();
        task.abort();
        if timeout(self.limits.grace, task).await.is_ok() {
            return Run::Stuck(Left::Nothing);
        }
        told.tell(Event::Abandoned);
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

/// Waits until a shutdown is forced, or was asked for this long ago.
async fn until_forced(stop: &Stop, wind_down: Duration) {
    tokio::select! {
        () = stop.forced() => {}
        () = async { stop.asked().await; sleep(wind_down).await } => {}
    }
}

/// How a run went, to its loop.
enum Run {
    Ended(Ended),
    Stuck(Left),
}

/// What a run that was ended leaves behind.
#[derive(PartialEq, Eq)]
enum Left {
    Nothing,
    Blocked,
}

fn conclude(joined: Result<Option<Ended>, tokio::task::JoinError>, took: Duration, told: &dyn Told) -> Ended {
    let ended = match joined {
        Ok(Some(ended)) => ended,
        Ok(None) => Ended::Transient,
        Err(error) => {
            let text = match error.try_into_panic() {
                Ok(panic) => panicked("the run", &*panic).text,
                Err(error) => error.to_string(),
            };
            told.tell(Event::Panicked(text));
            Ended::Failed
        }
    };
    told.tell(Event::Ended(ended, took));
    ended
}
