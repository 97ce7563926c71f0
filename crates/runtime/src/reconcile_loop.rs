//! The reconcile loop: schedules the runs of an integration with back-off and jitter, limits loop concurrency
//! (the number of concurrent runs across all loops), cancels runs that stall (watchdog), and exits when runs
//! stall repeatedly.
//!
//! **Invariant:** if a run fails, panics, hangs or blocks its thread, the loop continues or exits; it never
//! waits forever (`tests/reconcile_loop.rs`).

mod order;
mod schedule;
mod watchdog;

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qontract_telemetry::activity::{Activities, Activity, FinishedLog};
use qontract_telemetry::measure::Measurement;
use tokio::sync::watch::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::fault::panic_fault;
use crate::outcome::{NextRun, RunEnd};

pub use crate::shutdown::{ShutdownSignal, ShutdownTrigger, StepInProgress};
pub use crate::termination::TerminationSignal;
pub use order::{LoopOrder, LoopOrders};
pub use qontract_concurrency::Limiter;
pub use schedule::Schedule;
pub use watchdog::{Stall, WatchdogLimits};

/// The job that a loop runs repeatedly.
pub trait LoopJob: Send + Sync + 'static {
    /// Runs the job once. The run ends soon after a shutdown is requested: steps in progress are finished, and no
    /// other step starts. The run ends immediately when the shutdown is forced.
    fn run_once(&self, stop: ShutdownSignal) -> BoxFuture<'static, RunEnd>;
}

/// How runs are isolated from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A task on the shared runtime: a run that blocks its thread also blocks other runs.
    Task,
    /// A dedicated thread: a run that blocks its thread is abandoned, and other runs continue.
    Thread,
}

/// An event of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopEvent {
    /// A run started.
    Started,
    /// A run is in progress. Its activities are listed oldest first; the run waits for the last activity.
    Heartbeat(Vec<Activity>),
    /// A run ended, with its duration.
    Ended(RunEnd, Duration),
    /// The duration of each pass of a phase of the run that ended, and other measurements of that run.
    Measured(Vec<(&'static str, Duration)>, Vec<Measurement>),
    /// The finished activities of the run that ended, for debugging.
    Finished(FinishedLog),
    /// A run panicked.
    Panicked(String),
    /// The watchdog terminated a run that made no progress.
    Stalled(Stall),
    /// A cancelled run did not end, because its thread is blocked; the thread was abandoned.
    Abandoned,
    /// The loop sleeps for this time before the next run.
    Sleeping(Duration),
    /// New data ended the sleep early.
    Woken,
    /// An order to run now ended the sleep early.
    RunOrdered,
    /// The loop is paused, for this reason: no run starts until it is resumed.
    Paused(String),
    /// The pause ended.
    Resumed,
}

/// Receives the events of a loop.
pub trait LoopObserver: Send + Sync {
    /// Handles an event.
    fn observe(&self, event: LoopEvent);
}

/// The reason why a loop exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopExit {
    /// The loop runs only once, and the run had this end state.
    Once(RunEnd),
    /// A shutdown was requested.
    Stopped,
    /// Too many consecutive runs stalled, or too many threads are blocked. The supervisor has to restart the
    /// process.
    GaveUp,
}

/// The settings of a loop.
///
/// ```
/// use futures_util::{FutureExt as _, future::BoxFuture};
/// use qontract_runtime::RunEnd;
/// use qontract_runtime::reconcile_loop::*;
/// # use std::{sync::Arc, time::Duration};
///
/// struct Job;
/// impl LoopJob for Job {
///     fn run_once(&self, _: ShutdownSignal) -> BoxFuture<'static, RunEnd> {
///         async { RunEnd::Ok }.boxed()
///     }
/// }
/// # struct Silent;
/// # impl LoopObserver for Silent { fn observe(&self, _: LoopEvent) {} }
/// # let interval = Duration::from_mins(10);
/// # let schedule = Schedule { interval, initial_backoff: Duration::from_secs(10), ..Schedule::default() };
/// let (limits, limiter) = (WatchdogLimits::default(), Limiter::new(4));
/// let settings = LoopSettings { schedule, limits, isolation: Isolation::Task, limiter, once: true };
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let (_sender, data) = tokio::sync::watch::channel(0);
/// let context = LoopContext {
///     data,
///     shutdown: ShutdownSignal::never(),
///     orders: LoopOrders::none(),
///     random: || 0.5,
///     observer: &Silent,
/// };
/// assert_eq!(settings.run(Arc::new(Job), context).await, LoopExit::Once(RunEnd::Ok));
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoopSettings {
    /// Decides when the next run is due.
    pub schedule: Schedule,
    /// The limits that the watchdog enforces.
    pub limits: WatchdogLimits,
    /// The isolation of runs.
    pub isolation: Isolation,
    /// The limit of concurrent runs, across all loops that share the limiter (loop concurrency). A run that gets no
    /// permit in time proceeds without one, so that a hung run never blocks the others.
    pub limiter: Limiter,
    /// Whether the loop exits after the first run.
    pub once: bool,
}

/// The inputs of a loop.
pub struct LoopContext<'a, R> {
    /// Receives a value when new data is available.
    pub data: Receiver<u64>,
    /// The signal that requests a shutdown of the loop.
    pub shutdown: ShutdownSignal,
    /// The orders of operators to the loop.
    pub orders: LoopOrders,
    /// Returns random numbers from 0 to 1, for jitter.
    pub random: R,
    /// Receives the events.
    pub observer: &'a dyn LoopObserver,
}

impl LoopSettings {
    /// Runs the job, sleeps, and repeats. The first run starts immediately, further runs on schedule or as
    /// soon as the data changes.
    pub async fn run(&self, job: Arc<dyn LoopJob>, context: LoopContext<'_, impl Fn() -> f64>) -> LoopExit {
        let LoopContext { mut data, shutdown: stop, mut orders, random, observer } = context;
        let (mut failures, mut stalls, mut abandoned) = (0u32, 0u32, 0u32);
        loop {
            if let Some(reason) = orders.pause() {
                observer.observe(LoopEvent::Paused(reason));
                if self.once {
                    return LoopExit::Once(RunEnd::Transient);
                }
                tokio::select! {
                    () = orders.resumed() => observer.observe(LoopEvent::Resumed),
                    () = stop.requested() => return LoopExit::Stopped,
                }
            }
            let permit = tokio::select! {
                permit = self.limiter.acquire() => permit.ok(),
                () = stop.requested() => return LoopExit::Stopped,
            };
            data.mark_unchanged();
            orders.obey();
            observer.observe(LoopEvent::Started);
            let ended = match self.supervise_run(&*job, &stop, &orders, observer).await {
                SupervisedRun::Ended(ended) => {
                    stalls = 0;
                    ended
                }
                SupervisedRun::Stalled(leftover) => {
                    stalls += 1;
                    abandoned += u32::from(leftover == Leftover::BlockedThread);
                    if stalls >= self.limits.max_stalls || abandoned > self.limits.max_abandoned {
                        return LoopExit::GaveUp;
                    }
                    RunEnd::Transient
                }
            };
            drop(permit);
            if self.once {
                return LoopExit::Once(ended);
            }
            if stop.is_requested() {
                return LoopExit::Stopped;
            }
            failures = match ended.next_run() {
                NextRun::OnSchedule | NextRun::Soon => 0,
                NextRun::AfterBackoff => failures.saturating_add(1),
            };
            let pause = match ended.next_run() {
                NextRun::Soon => self.schedule.pause(1, random()),
                NextRun::OnSchedule | NextRun::AfterBackoff => self.schedule.pause(failures, random()),
            };
            observer.observe(LoopEvent::Sleeping(pause));
            tokio::select! {
                () = sleep(pause) => {}
                changed = data.changed(), if data.has_changed().is_ok() => {
                    if changed.is_ok() {
                        observer.observe(LoopEvent::Woken);
                    }
                    // The loops of many processes are woken by the same change, so each of them waits for a random
                    // time.
                    tokio::select! {
                        () = sleep(self.schedule.wake_delay(random())) => {}
                        () = stop.requested() => return LoopExit::Stopped,
                    }
                }
                () = orders.paused() => {}
                () = orders.run_ordered() => observer.observe(LoopEvent::RunOrdered),
                () = stop.requested() => return LoopExit::Stopped,
            }
        }
    }

    /// Runs the job once, supervised by the watchdog.
    async fn supervise_run(
        &self,
        job: &dyn LoopJob,
        stop: &ShutdownSignal,
        orders: &LoopOrders,
        observer: &dyn LoopObserver,
    ) -> SupervisedRun {
        let activities = Activities::default();
        let (cancel, cancelled) = crate::shutdown::pair();
        let (run_trigger, run_stop) = stop.derive();
        let started = Instant::now();
        let mut task = self.start(activities.clone(), job.run_once(run_stop), cancelled);
        let stall = tokio::select! {
            joined = &mut task => {
                let ended = conclude(joined, started.elapsed(), observer);
                observer.observe(LoopEvent::Finished(activities.finished()));
                observer.observe(LoopEvent::Measured(activities.phases(), activities.measures()));
                return SupervisedRun::Ended(ended);
            }
            stall = watchdog::until_stalled(&activities, &self.limits, |current| observer.observe(LoopEvent::Heartbeat(current))) => Some(stall),
            // Forces a run to end if it has not ended in time after a shutdown request.
            () = until_shutdown_forced(stop, self.limits.shutdown_timeout) => None,
            never = stop_run(&run_trigger, stop, orders) => match never {},
        };
        if let Some(stall) = stall {
            observer.observe(LoopEvent::Stalled(stall));
            observer.observe(LoopEvent::Ended(RunEnd::Transient, started.elapsed()));
        } else {
            stop.force();
            run_trigger.force();
            // The run abandons its steps and reports them.
            if let Ok(joined) = timeout(self.limits.grace_period, &mut task).await {
                return SupervisedRun::Ended(conclude(joined, started.elapsed(), observer));
            }
        }
        cancel.request();
        task.abort();
        if timeout(self.limits.grace_period, task).await.is_ok() {
            return SupervisedRun::Stalled(Leftover::Nothing);
        }
        observer.observe(LoopEvent::Abandoned);
        SupervisedRun::Stalled(Leftover::BlockedThread)
    }

    fn start(
        &self,
        activities: Activities,
        run: impl Future<Output = RunEnd> + Send + 'static,
        cancelled: ShutdownSignal,
    ) -> JoinHandle<Option<RunEnd>> {
        let run = async move {
            tokio::select! {
                ended = activities.scope(run) => Some(ended),
                () = cancelled.requested() => None,
            }
        };
        match self.isolation {
            Isolation::Task => tokio::spawn(run),
            Isolation::Thread => {
                let handle = tokio::runtime::Handle::current();
                tokio::task::spawn_blocking(move || handle.block_on(run))
            }
        }
    }
}

/// Stops a run when a shutdown is requested or the loop is paused: the run finishes the steps in progress and starts
/// no other step.
async fn stop_run(run: &ShutdownTrigger, stop: &ShutdownSignal, orders: &LoopOrders) -> Infallible {
    tokio::select! {
        () = stop.requested() => {}
        () = orders.paused() => run.request(),
    }
    stop.requested().await;
    run.request_by(stop.interruption().unwrap_or(TerminationSignal::Terminate));
    stop.forced().await;
    run.force();
    std::future::pending().await
}

/// Waits until a shutdown is forced, or until `shutdown_timeout` has passed since the shutdown was requested.
async fn until_shutdown_forced(stop: &ShutdownSignal, shutdown_timeout: Duration) {
    tokio::select! {
        () = stop.forced() => {}
        () = async { stop.requested().await; sleep(shutdown_timeout).await } => {}
    }
}

/// The result of a supervised run.
enum SupervisedRun {
    Ended(RunEnd),
    Stalled(Leftover),
}

/// The resources that a cancelled run did not release.
#[derive(PartialEq, Eq)]
enum Leftover {
    Nothing,
    BlockedThread,
}

fn conclude(
    joined: Result<Option<RunEnd>, tokio::task::JoinError>,
    took: Duration,
    observer: &dyn LoopObserver,
) -> RunEnd {
    let ended = match joined {
        Ok(Some(ended)) => ended,
        Ok(None) => RunEnd::Transient,
        Err(error) => {
            let text = match error.try_into_panic() {
                Ok(panic) => panic_fault("the run", &*panic).text,
                Err(error) => error.to_string(),
            };
            observer.observe(LoopEvent::Panicked(text));
            RunEnd::Failed
        }
    };
    observer.observe(LoopEvent::Ended(ended, took));
    ended
}
