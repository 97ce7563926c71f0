//! The rules of the reconcile loop, with a paused clock that advances only when all tasks wait; and threads
//! that really block.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_runtime::RunEnd;
use qontract_runtime::reconcile_loop::{
    Isolation, Limiter, LoopContext, LoopEvent, LoopExit, LoopJob, LoopObserver, LoopOrder, LoopOrders,
    LoopSettings, Schedule, ShutdownSignal, WatchdogLimits,
};
use qontract_telemetry::activity;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The behaviour of a run.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Takes this many seconds and ends like this.
    Ends(u64, RunEnd),
    /// Works in small pieces for this many seconds.
    Works(u64),
    Panics,
    /// Waits for a call that never returns.
    Hangs,
    /// Blocks its thread.
    Blocks,
    /// Runs until a shutdown is requested.
    UntilAsked,
    /// Runs until a shutdown is forced.
    UntilForced,
}

/// A job whose runs perform one act each; without further acts, they succeed.
struct Script {
    acts: Mutex<VecDeque<Act>>,
    release: Arc<AtomicBool>,
}

impl LoopJob for Script {
    fn run_once(&self, stop: ShutdownSignal) -> BoxFuture<'static, RunEnd> {
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Ends(0, RunEnd::Ok));
        let release = Arc::clone(&self.release);
        async move {
            match act {
                Act::Ends(seconds, ended) => {
                    let _doing = activity::begin("work");
                    sleep(Duration::from_secs(seconds)).await;
                    ended
                }
                Act::Works(seconds) => {
                    for _ in 0..seconds {
                        let _doing = activity::begin("a piece");
                        sleep(Duration::from_secs(1)).await;
                    }
                    RunEnd::Ok
                }
                Act::Panics => panic!("it fell"),
                Act::Hangs => {
                    let _doing = activity::begin("GET https://c1.example.com/");
                    std::future::pending().await
                }
                Act::Blocks => {
                    while !release.load(Ordering::Relaxed) {
                        std::thread::park_timeout(Duration::from_millis(5));
                    }
                    RunEnd::Ok
                }
                Act::UntilAsked => {
                    stop.requested().await;
                    RunEnd::Ok
                }
                Act::UntilForced => {
                    stop.forced().await;
                    RunEnd::Interrupted
                }
            }
        }
        .boxed()
    }
}

/// Records the events with their times.
struct EventLog {
    begun: Instant,
    events: Mutex<Vec<String>>,
}

impl LoopObserver for EventLog {
    fn observe(&self, event: LoopEvent) {
        let at = self.begun.elapsed().as_secs();
        let text = match event {
            LoopEvent::Heartbeat(_) | LoopEvent::Measured(..) | LoopEvent::Finished(_) => return,
            LoopEvent::Started => format!("{at} began"),
            LoopEvent::Ended(ended, took) => format!("{at} {} after {}", ended.as_str(), took.as_secs()),
            LoopEvent::Panicked(text) => format!("{at} {text}"),
            LoopEvent::Stalled(stuck) => {
                let doing: Vec<&str> = stuck.activities.iter().map(|one| one.description.as_str()).collect();
                format!("{at} stuck, quiet for {}: {}", stuck.idle.as_secs(), doing.join(", "))
            }
            LoopEvent::Abandoned => format!("{at} abandoned"),
            LoopEvent::Sleeping(pause) => format!("{at} sleeps {}", pause.as_secs()),
            LoopEvent::Woken => format!("{at} woken"),
            LoopEvent::RunOrdered => format!("{at} ordered to run"),
            LoopEvent::Paused(reason) => format!("{at} {reason}"),
            LoopEvent::Resumed => format!("{at} resumed"),
        };
        self.events.lock().unwrap().push(text);
    }
}

fn the_loop(once: bool) -> LoopSettings {
    LoopSettings {
        schedule: Schedule {
            interval: Duration::from_mins(10),
            initial_backoff: Duration::from_secs(10),
            jitter: 0.0,
            ..Schedule::default()
        },
        limits: WatchdogLimits {
            heartbeat_interval: Duration::from_secs(1),
            stall_timeout: Duration::from_mins(1),
            run_timeout: Duration::from_mins(5),
            grace_period: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(30),
            max_stalls: 3,
            max_abandoned: 1,
        },
        isolation: Isolation::Task,
        limiter: Limiter::default(),
        once,
    }
}

/// Runs a loop over these acts, and gives it orders at these seconds; requests a shutdown after `seconds`.
async fn play_orders(acts: &[Act], orders: &[(u64, LoopOrder)], seconds: u64) -> Vec<String> {
    let script = Script { acts: Mutex::new(acts.iter().copied().collect()), release: Arc::default() };
    let (stopper, shutdown) = ShutdownSignal::pair();
    let (_sender, data) = watch::channel(0);
    let given = watch::Sender::new(LoopOrder::default());
    let received = LoopOrders::new(given.subscribe());
    let seen = EventLog { begun: Instant::now(), events: Mutex::default() };
    let timeline = async {
        let begun = Instant::now();
        for (at, order) in orders {
            tokio::time::sleep_until(begun + Duration::from_secs(*at)).await;
            given.send_replace(order.clone());
        }
        tokio::time::sleep_until(begun + Duration::from_secs(seconds)).await;
        stopper.request();
        std::future::pending::<()>().await;
    };
    let (reconcile_loop, random) = (the_loop(false), || 0.5);
    let context = LoopContext { data, shutdown, orders: received, random, observer: &seen };
    tokio::select! {
        _ = reconcile_loop.run(Arc::new(script), context) => {}
        () = timeline => unreachable!("it never ends"),
    }
    seen.events.into_inner().unwrap()
}

fn paused() -> LoopOrder {
    LoopOrder { pause: Some("paused: INC-7".to_owned()), run: None }
}

fn run_order(id: &str) -> LoopOrder {
    LoopOrder { pause: None, run: Some(id.to_owned()) }
}

#[tokio::test(start_paused = true)]
async fn a_paused_loop_starts_no_run_until_it_is_resumed() {
    let acts = [Act::Ends(0, RunEnd::Ok), Act::Ends(0, RunEnd::Ok)];
    let seen = play_orders(&acts, &[(60, paused()), (3600, LoopOrder::default())], 3700).await;
    let expect =
        ["0 began", "0 ok after 0", "0 sleeps 600", "60 paused: INC-7", "3600 resumed", "3600 began"];
    assert_eq!(seen[..6], expect, "{seen:?}");
    // A loop that is paused from the start does not run either.
    let seen = play_orders(&acts, &[(0, paused())], 100).await;
    assert!(seen.len() <= 4 && seen.contains(&"0 paused: INC-7".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_a_run_in_progress_between_two_steps() {
    let acts = [Act::UntilAsked, Act::Ends(0, RunEnd::Ok)];
    let seen = play_orders(&acts, &[(20, paused()), (50, LoopOrder::default())], 100).await;
    let expect = ["0 began", "20 ok after 20", "20 sleeps 600", "20 paused: INC-7", "50 resumed", "50 began"];
    assert_eq!(seen[..6], expect, "{seen:?}");
    // A step in progress is not abandoned, however long it takes.
    let acts = [Act::Ends(55, RunEnd::Ok), Act::Ends(0, RunEnd::Ok)];
    let seen = play_orders(&acts, &[(1, paused())], 58).await;
    assert_eq!(seen[1], "55 ok after 55", "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_a_paused_loop_and_forces_the_run_of_a_paused_one() {
    let seen = play_orders(&[Act::Ends(0, RunEnd::Ok)], &[(5, paused())], 10).await;
    assert_eq!(seen.last().map(String::as_str), Some("5 paused: INC-7"));
    let seen = play_orders(&[Act::UntilForced], &[(5, paused())], 10).await;
    assert_eq!(seen.last().map(String::as_str), Some("40 interrupted after 40"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_order_to_run_starts_one_run() {
    let acts = [Act::Ends(0, RunEnd::Ok), Act::Ends(5, RunEnd::Ok), Act::Ends(0, RunEnd::Ok)];
    let orders = [(60, run_order("1")), (63, run_order("2"))];
    let seen = play_orders(&acts, &orders, 90).await;
    // The second order is given while the run of the first one is in progress, which may have read its targets before.
    let expect =
        ["60 ordered to run", "60 began", "65 ok after 5", "65 sleeps 600", "65 ordered to run", "65 began"];
    assert_eq!(seen[3..9], expect, "{seen:?}");
    assert_eq!(seen.iter().filter(|line| line.ends_with("ordered to run")).count(), 2, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn loops_that_a_server_wakes_start_at_random_times() {
    let script = Script { acts: Mutex::new([Act::Ends(0, RunEnd::Ok); 2].into()), release: Arc::default() };
    let (stopper, shutdown) = ShutdownSignal::pair();
    let (sender, data) = watch::channel(0);
    let seen = EventLog { begun: Instant::now(), events: Mutex::default() };
    let mut reconcile_loop = the_loop(false);
    reconcile_loop.schedule.wake_jitter = Duration::from_secs(10);
    let context = LoopContext { data, shutdown, orders: LoopOrders::none(), random: || 0.7, observer: &seen };
    let timeline = async {
        sleep(Duration::from_secs(30)).await;
        sender.send_replace(1);
        sleep(Duration::from_secs(30)).await;
        stopper.request();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = reconcile_loop.run(Arc::new(script), context) => {}
        () = timeline => unreachable!("it never ends"),
    }
    let seen = seen.events.into_inner().unwrap();
    assert_eq!(seen[3..5], ["30 woken", "37 began"], "{seen:?}");
}

/// Runs a loop over these acts; requests a shutdown after `seconds`, and provides new data at `new_data_at`.
async fn play(acts: &[Act], seconds: u64, new_data_at: Option<u64>, once: bool) -> (LoopExit, Vec<String>) {
    let script = Script { acts: Mutex::new(acts.iter().copied().collect()), release: Arc::default() };
    let (stopper, shutdown) = ShutdownSignal::pair();
    let (sender, data) = watch::channel(0);
    let seen = EventLog { begun: Instant::now(), events: Mutex::default() };
    let timeline = async {
        if let Some(at) = new_data_at {
            sleep(Duration::from_secs(at)).await;
            sender.send_replace(1);
        }
        sleep(Duration::from_secs(seconds - new_data_at.unwrap_or_default())).await;
        stopper.request();
        std::future::pending::<()>().await;
    };
    let reconcile_loop = the_loop(once);
    let finish = tokio::select! {
        finish = reconcile_loop.run(Arc::new(script), LoopContext { data, shutdown, orders: LoopOrders::none(), random: || 0.5, observer: &seen }) => finish,
        () = timeline => unreachable!("it never ends"),
    };
    (finish, seen.events.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_held_run_repeats_after_the_interval() {
    let acts = [Act::Ends(0, RunEnd::Failed), Act::Ends(0, RunEnd::Held), Act::Ends(0, RunEnd::Failed)];
    let (_, seen) = play(&acts, 700, None, false).await;
    let sleeps: Vec<&str> =
        seen.iter().filter_map(|line| line.split_once("sleeps ")).map(|(_, s)| s).collect();
    assert_eq!(sleeps, ["10", "600", "10", "600"], "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_run_is_immediate_and_the_next_after_the_interval() {
    let (finish, seen) = play(&[Act::Ends(2, RunEnd::Ok)], 700, None, false).await;
    assert_eq!(finish, LoopExit::Stopped);
    assert_eq!(
        seen,
        ["0 began", "2 ok after 2", "2 sleeps 600", "602 began", "602 ok after 0", "602 sleeps 600"]
    );
}

#[tokio::test(start_paused = true)]
async fn failed_runs_back_off_until_one_succeeds() {
    let acts = [
        Act::Ends(0, RunEnd::Failed),
        Act::Ends(0, RunEnd::Transient),
        Act::Panics,
        Act::Ends(0, RunEnd::Ok),
    ];
    let (_, seen) = play(&acts, 100, None, false).await;
    let sleeps: Vec<&String> = seen.iter().filter(|line| line.contains("sleeps")).collect();
    assert_eq!(sleeps, ["0 sleeps 10", "10 sleeps 20", "30 sleeps 40", "70 sleeps 600"]);
    assert!(seen.contains(&"30 `the run` panicked: it fell".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn new_data_wakes_the_loop() {
    let (_, seen) = play(&[], 300, Some(200), false).await;
    assert_eq!(
        seen,
        [
            "0 began",
            "0 ok after 0",
            "0 sleeps 600",
            "200 woken",
            "200 began",
            "200 ok after 0",
            "200 sleeps 600"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn new_data_during_a_run_makes_another_one_due_immediately() {
    let (_, seen) = play(&[Act::Works(50)], 100, Some(20), false).await;
    assert_eq!(seen[..4], ["0 began", "50 ok after 50", "50 sleeps 600", "50 woken"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_hangs_is_reported_ended_and_started_again() {
    let (finish, seen) = play(&[Act::Hangs], 100, None, false).await;
    assert_eq!(finish, LoopExit::Stopped);
    assert_eq!(seen[1], "61 stuck, quiet for 60: GET https://c1.example.com/");
    assert_eq!(seen[2..5], ["61 failed for now after 61", "61 sleeps 10", "71 began"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_makes_progress_continues_until_it_takes_too_long() {
    let (_, seen) = play(&[Act::Works(200)], 250, None, false).await;
    assert_eq!(seen[1], "200 ok after 200");
    let (_, seen) = play(&[Act::Works(1000)], 400, None, false).await;
    assert!(seen[1].starts_with("300 stuck"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn after_too_many_consecutive_stalls_the_loop_exits() {
    let (finish, _) = play(&[Act::Hangs, Act::Hangs, Act::Hangs], 10_000, None, false).await;
    assert_eq!(finish, LoopExit::GaveUp);
    let acts = [Act::Hangs, Act::Hangs, Act::Ends(0, RunEnd::Ok), Act::Hangs, Act::Hangs];
    let (finish, _) = play(&acts, 10_000, None, false).await;
    assert_eq!(finish, LoopExit::Stopped, "a successful run resets the count");
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_runs_once_exits_after_the_first_run() {
    let (finish, seen) = play(&[Act::Ends(1, RunEnd::Failed)], 100, None, true).await;
    assert_eq!((finish, seen.len()), (LoopExit::Once(RunEnd::Failed), 2));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_request_finishes_the_run_in_progress() {
    let (finish, seen) = play(&[Act::UntilAsked], 40, None, false).await;
    assert_eq!((finish, seen), (LoopExit::Stopped, vec!["0 began".to_owned(), "40 ok after 40".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_in_time_is_forced_to_and_reports_its_end_state() {
    let (finish, seen) = play(&[Act::UntilForced], 20, None, false).await;
    assert_eq!(
        (finish, &seen[..]),
        (LoopExit::Stopped, &["0 began".to_owned(), "50 interrupted after 50".to_owned()][..])
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ignores_a_shutdown_is_cancelled() {
    let (finish, seen) = play(&[Act::Works(200)], 40, None, false).await;
    assert_eq!((finish, seen), (LoopExit::Stopped, vec!["0 began".to_owned()]));
}

/// With real threads and a real clock, since a blocked thread would stop a paused clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn blocked_threads_are_abandoned_and_beyond_a_limit_the_loop_exits() {
    let release = Arc::<AtomicBool>::default();
    let acts = [Act::Blocks, Act::Blocks, Act::Blocks];
    let script = Script { acts: Mutex::new(acts.into()), release: Arc::clone(&release) };
    let short = Duration::from_millis(20);
    let limits = WatchdogLimits {
        heartbeat_interval: short,
        stall_timeout: short,
        run_timeout: short * 1000,
        grace_period: short,
        shutdown_timeout: short,
        max_stalls: 99,
        max_abandoned: 1,
    };
    let schedule = Schedule { interval: short, initial_backoff: short, jitter: 0.0, ..Schedule::default() };
    let reconcile_loop = LoopSettings {
        schedule,
        limits,
        isolation: Isolation::Thread,
        limiter: Limiter::default(),
        once: false,
    };
    let seen = EventLog { begun: Instant::now(), events: Mutex::default() };
    let (_sender, data) = watch::channel(0);
    let finish = reconcile_loop
        .run(
            Arc::new(script),
            LoopContext {
                data,
                shutdown: ShutdownSignal::never(),
                orders: LoopOrders::none(),
                random: || 0.5,
                observer: &seen,
            },
        )
        .await;
    release.store(true, Ordering::Relaxed);
    assert_eq!(finish, LoopExit::GaveUp);
    let abandoned =
        seen.events.into_inner().unwrap().iter().filter(|line| line.ends_with("abandoned")).count();
    assert_eq!(abandoned, 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_hangs_during_a_shutdown_is_cancelled_at_the_timeout() {
    let (finish, seen) = play(&[Act::Hangs], 10, None, false).await;
    assert_eq!(finish, LoopExit::Stopped);
    assert_eq!(seen, ["0 began"], "the watchdog does not report it");
}

/// Records the heartbeats.
#[derive(Default)]
struct HeartbeatLog(Mutex<Vec<String>>);

impl LoopObserver for HeartbeatLog {
    fn observe(&self, event: LoopEvent) {
        if let LoopEvent::Heartbeat(doing) = event {
            let doing: Vec<String> = doing.iter().map(ToString::to_string).collect();
            self.0.lock().unwrap().push(doing.join(", "));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_reports_the_current_activity_and_its_duration() {
    let script = Script { acts: Mutex::new([Act::Ends(4, RunEnd::Ok)].into()), release: Arc::default() };
    let (beats, (_sender, data)) = (HeartbeatLog::default(), watch::channel(0));
    the_loop(true)
        .run(
            Arc::new(script),
            LoopContext {
                data,
                shutdown: ShutdownSignal::never(),
                orders: LoopOrders::none(),
                random: || 0.5,
                observer: &beats,
            },
        )
        .await;
    let lines = beats.0.into_inner().unwrap();
    assert_eq!(lines[..3], ["work for 1.0 s", "work for 2.0 s", "work for 3.0 s"]);
}
