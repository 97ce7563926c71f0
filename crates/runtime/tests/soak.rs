//! Fifty loops that randomly succeed, fail, panic and hang: all of them continue, and memory does not grow.
//! Runs for seconds in the suite, for minutes in `cargo xtask chaos soak`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "what a test unwraps is its expectation")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_runtime::RunEnd;
use qontract_runtime::reconcile_loop::{
    Isolation, Limiter, LoopContext, LoopEvent, LoopExit, LoopJob, LoopObserver, LoopOrders, LoopSettings,
    Schedule, ShutdownSignal, WatchdogLimits,
};
use qontract_telemetry::activity;
use qontract_testkit::{SeededRng, chaos_count};
use tokio::sync::watch;
use tokio::time::sleep;

const LOOPS: u64 = 50;

/// A job whose runs behave randomly.
struct RandomJob(Mutex<SeededRng>);

impl LoopJob for RandomJob {
    fn run_once(&self, _: ShutdownSignal) -> BoxFuture<'static, RunEnd> {
        let (mood, pieces) = {
            let mut chance = self.0.lock().unwrap();
            (chance.below(100), chance.below(20))
        };
        async move {
            for _ in 0..pieces {
                let _doing = activity::begin("a piece");
                sleep(Duration::from_millis(1)).await;
            }
            match mood {
                0..3 => panic!("it fell"),
                3..6 => {
                    let _doing = activity::begin("a call that never comes back");
                    std::future::pending().await
                }
                6..15 => RunEnd::Transient,
                _ => RunEnd::Ok,
            }
        }
        .boxed()
    }
}

#[derive(Default)]
struct Counts {
    ended: AtomicU64,
    panicked: AtomicU64,
    stuck: AtomicU64,
    /// Runs that ended since the last check.
    lately: AtomicU64,
}

impl LoopObserver for Counts {
    fn observe(&self, event: LoopEvent) {
        let add = |count: &AtomicU64| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        match event {
            LoopEvent::Ended(..) => {
                add(&self.ended);
                add(&self.lately);
            }
            LoopEvent::Panicked(_) => add(&self.panicked),
            LoopEvent::Stalled(_) => add(&self.stuck),
            LoopEvent::Started
            | LoopEvent::Heartbeat(_)
            | LoopEvent::Measured(..)
            | LoopEvent::Finished(_)
            | LoopEvent::Abandoned
            | LoopEvent::Sleeping(_)
            | LoopEvent::Woken
            | LoopEvent::RunOrdered
            | LoopEvent::Paused(_)
            | LoopEvent::Resumed => {}
        }
    }
}

/// Resident memory, in kilobytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn fifty_loops_continue_whatever_happens_in_them() {
    // The loop reports panics itself.
    std::panic::set_hook(Box::new(|_| {}));
    let whole = Duration::from_secs(chaos_count(5));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let counts: Vec<Arc<Counts>> = (0..LOOPS).map(|_| Arc::default()).collect();
    let (first, last) = runtime.block_on(async {
        let (stopper, stop) = ShutdownSignal::pair();
        let (_sender, data) = watch::channel(0);
        let mut tasks = Vec::new();
        for (seed, counts) in (1..=LOOPS).zip(&counts) {
            let reconcile_loop = LoopSettings {
                schedule: Schedule {
                    interval: Duration::from_millis(20),
                    initial_backoff: Duration::from_millis(10),
                    jitter: 0.1,
                    ..Schedule::default()
                },
                limits: WatchdogLimits {
                    heartbeat_interval: Duration::from_millis(20),
                    stall_timeout: Duration::from_millis(200),
                    run_timeout: Duration::from_secs(5),
                    grace_period: Duration::from_secs(1),
                    shutdown_timeout: Duration::from_secs(1),
                    max_stalls: 10,
                    max_abandoned: 0,
                },
                isolation: Isolation::Thread,
                limiter: Limiter::default(),
                once: false,
            };
            let (job, counts) = (Arc::new(RandomJob(Mutex::new(SeededRng::new(seed)))), Arc::clone(counts));
            let (data, stop) = (data.clone(), stop.clone());
            tasks.push(tokio::spawn(async move {
                reconcile_loop
                    .run(
                        job,
                        LoopContext {
                            data,
                            shutdown: stop,
                            orders: LoopOrders::none(),
                            random: || 0.5,
                            observer: &*counts,
                        },
                    )
                    .await
            }));
        }
        sleep(whole / 5).await;
        let first = memory();
        sleep(whole / 5 * 3).await;
        for count in &counts {
            count.lately.store(0, Ordering::Relaxed);
        }
        sleep(whole / 5).await;
        let last = memory();
        stopper.request();
        for task in tasks {
            assert_eq!(task.await.unwrap(), LoopExit::Stopped);
        }
        (first, last)
    });
    let sum = |pick: fn(&Counts) -> &AtomicU64| {
        counts.iter().map(|count| pick(count).load(Ordering::Relaxed)).sum::<u64>()
    };
    let (ended, panicked, stuck) = (sum(|it| &it.ended), sum(|it| &it.panicked), sum(|it| &it.stuck));
    assert!(
        panicked > 10 && stuck > 10,
        "{ended} ended, {panicked} panicked, {stuck} stuck: too few to mean something"
    );
    assert!(counts.iter().all(|count| count.lately.load(Ordering::Relaxed) > 0), "every loop still runs");
    // In a short run, memory use has not settled yet.
    assert!(whole < Duration::from_mins(1) || last <= first * 11 / 10, "{first} kB became {last} kB");
    println!("{ended} runs, {panicked} panics, {stuck} hangs; {first} kB, then {last} kB");
}
