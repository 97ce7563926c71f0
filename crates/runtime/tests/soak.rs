//! Fifty loops that randomly succeed, fail, panic and hang: all of them continue, and memory does not grow.
//! Runs for seconds in the suite, for minutes in `cargo xtask chaos soak`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "what a test unwraps is its expectation")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_runtime::Ended;
use qontract_runtime::looping::{
    Carrier, Event, Finish, Limiter, Limits, Loop, LoopContext, Pace, Stop, Told, Turn,
};
use qontract_telemetry::activity;
use qontract_testkit::{Chance, chaos_count};
use tokio::sync::watch;
use tokio::time::sleep;

const LOOPS: u64 = 50;

/// A job whose runs behave randomly.
struct Moody(Mutex<Chance>);

impl Turn for Moody {
    fn turn(&self, _: Stop) -> BoxFuture<'static, Ended> {
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
                6..15 => Ended::Transient,
                _ => Ended::Ok,
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

impl Told for Counts {
    fn tell(&self, event: Event) {
        let add = |count: &AtomicU64| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        match event {
            Event::Ended(..) => {
                add(&self.ended);
                add(&self.lately);
            }
            Event::Panicked(_) => add(&self.panicked),
            Event::Stuck(_) => add(&self.stuck),
            Event::Began
            | Event::Beat(_)
            | Event::Measured(..)
            | Event::Finished(_)
            | Event::Abandoned
            | Event::Sleeps(_)
            | Event::Woken => {}
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
        let (stopper, stop) = Stop::pair();
        let (_news, data) = watch::channel(0);
        let mut tasks = Vec::new();
        for (seed, counts) in (1..=LOOPS).zip(&counts) {
            let looping = Loop {
                pace: Pace {
                    every: Duration::from_millis(20),
                    retry: Duration::from_millis(10),
                    jitter: 0.1,
                },
                limits: Limits {
                    beat: Duration::from_millis(20),
                    stall: Duration::from_millis(200),
                    run: Duration::from_secs(5),
                    grace: Duration::from_secs(1),
                    wind_down: Duration::from_secs(1),
                    stuck: 10,
                    abandoned: 0,
                },
                carrier: Carrier::Thread,
                limiter: Limiter::default(),
                once: false,
            };
            let (turn, counts) = (Arc::new(Moody(Mutex::new(Chance::new(seed)))), Arc::clone(counts));
            let (data, stop) = (data.clone(), stop.clone());
            tasks.push(tokio::spawn(async move {
                looping.keep(turn, LoopContext { data, stop, random: || 0.5, observer: &*counts }).await
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
        stopper.ask();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Finish::Stopped);
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
