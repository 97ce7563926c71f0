//! The rules of the loop, each with a clock that only goes when everybody waits; and threads that really block.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_runtime::Ended;
use qontract_runtime::looping::{
    Carrier, Event, Finish, Limiter, Limits, Loop, LoopContext, Pace, Stop, Told, Turn,
};
use qontract_telemetry::activity;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// What a run does.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Takes so many seconds and ends like this.
    Ends(u64, Ended),
    /// Works in many small pieces for so many seconds.
    Works(u64),
    Panics,
    /// Waits for a call that never comes back.
    Hangs,
    /// Blocks its thread.
    Blocks,
    /// Goes on until it is asked to end.
    UntilAsked,
    /// Goes on until it is forced to end.
    UntilForced,
}

/// Runs that do one act after the other; when there are none left, they end well.
struct Script {
    acts: Mutex<VecDeque<Act>>,
    release: Arc<AtomicBool>,
}

impl Turn for Script {
    fn turn(&self, stop: Stop) -> BoxFuture<'static, Ended> {
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Ends(0, Ended::Ok));
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
                    Ended::Ok
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
                    Ended::Ok
                }
                Act::UntilAsked => {
                    stop.asked().await;
                    Ended::Ok
                }
                Act::UntilForced => {
                    stop.forced().await;
                    Ended::Interrupted
                }
            }
        }
        .boxed()
    }
}

/// Remembers what happened, and when.
struct Seen {
    begun: Instant,
    events: Mutex<Vec<String>>,
}

impl Told for Seen {
    fn tell(&self, event: Event) {
        let at = self.begun.elapsed().as_secs();
        let text = match event {
            Event::Beat(_) | Event::Measured(..) | Event::Finished(_) => return,
            Event::Began => format!("{at} began"),
            Event::Ended(ended, took) => format!("{at} {} after {}", ended.as_str(), took.as_secs()),
            Event::Panicked(text) => format!("{at} {text}"),
            Event::Stuck(stuck) => {
                let doing: Vec<&str> = stuck.doing.iter().map(|one| one.what.as_str()).collect();
                format!("{at} stuck, quiet for {}: {}", stuck.quiet.as_secs(), doing.join(", "))
            }
            Event::Abandoned => format!("{at} abandoned"),
            Event::Sleeps(pause) => format!("{at} sleeps {}", pause.as_secs()),
            Event::Woken => format!("{at} woken"),
        };
        self.events.lock().unwrap().push(text);
    }
}

fn the_loop(once: bool) -> Loop {
    Loop {
        pace: Pace { every: Duration::from_mins(10), retry: Duration::from_secs(10), jitter: 0.0 },
        limits: Limits {
            beat: Duration::from_secs(1),
            stall: Duration::from_mins(1),
            run: Duration::from_mins(5),
            grace: Duration::from_secs(5),
            wind_down: Duration::from_secs(30),
            stuck: 3,
            abandoned: 1,
        },
        carrier: Carrier::Task,
        limiter: Limiter::default(),
        once,
    }
}

/// Plays acts; after `seconds` it is asked to stop, and at `news` there is new data.
async fn play(acts: &[Act], seconds: u64, news: Option<u64>, once: bool) -> (Finish, Vec<String>) {
    let script = Script { acts: Mutex::new(acts.iter().copied().collect()), release: Arc::default() };
    let (stopper, stop) = Stop::pair();
    let (sender, data) = watch::channel(0);
    let seen = Seen { begun: Instant::now(), events: Mutex::default() };
    let meddle = async {
        if let Some(at) = news {
            sleep(Duration::from_secs(at)).await;
            sender.send_replace(1);
        }
        sleep(Duration::from_secs(seconds - news.unwrap_or_default())).await;
        stopper.ask();
        std::future::pending::<()>().await;
    };
    let looping = the_loop(once);
    let finish = tokio::select! {
        finish = looping.keep(Arc::new(script), LoopContext { data, stop, random: || 0.5, observer: &seen }) => finish,
        () = meddle => unreachable!("it never ends"),
    };
    (finish, seen.events.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_is_held_runs_again_after_the_usual_time() {
    let acts = [Act::Ends(0, Ended::Failed), Act::Ends(0, Ended::Held), Act::Ends(0, Ended::Failed)];
    let (_, seen) = play(&acts, 700, None, false).await;
    let sleeps: Vec<&str> =
        seen.iter().filter_map(|line| line.split_once("sleeps ")).map(|(_, s)| s).collect();
    assert_eq!(sleeps, ["10", "600", "10", "600"], "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_run_is_at_once_and_the_next_after_the_usual_time() {
    let (finish, seen) = play(&[Act::Ends(2, Ended::Ok)], 700, None, false).await;
    assert_eq!(finish, Finish::Stopped);
    assert_eq!(
        seen,
        ["0 began", "2 ok after 2", "2 sleeps 600", "602 began", "602 ok after 0", "602 sleeps 600"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_soon_and_ever_later_until_it_goes_well() {
    let acts =
        [Act::Ends(0, Ended::Failed), Act::Ends(0, Ended::Transient), Act::Panics, Act::Ends(0, Ended::Ok)];
    let (_, seen) = play(&acts, 100, None, false).await;
    let sleeps: Vec<&String> = seen.iter().filter(|line| line.contains("sleeps")).collect();
    assert_eq!(sleeps, ["0 sleeps 10", "10 sleeps 20", "30 sleeps 40", "70 sleeps 600"]);
    assert!(seen.contains(&"30 `the run` panicked: it fell".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn new_data_wakes_it() {
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
async fn data_that_comes_during_a_run_makes_another_one_due_at_once() {
    let (_, seen) = play(&[Act::Works(50)], 100, Some(20), false).await;
    assert_eq!(seen[..4], ["0 began", "50 ok after 50", "50 sleeps 600", "50 woken"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_hangs_is_told_ended_and_begun_anew() {
    let (finish, seen) = play(&[Act::Hangs], 100, None, false).await;
    assert_eq!(finish, Finish::Stopped);
    assert_eq!(seen[1], "61 stuck, quiet for 60: GET https://c1.example.com/");
    assert_eq!(seen[2..5], ["61 failed for now after 61", "61 sleeps 10", "71 began"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_makes_progress_is_left_alone_until_it_takes_too_long() {
    let (_, seen) = play(&[Act::Works(200)], 250, None, false).await;
    assert_eq!(seen[1], "200 ok after 200");
    let (_, seen) = play(&[Act::Works(1000)], 400, None, false).await;
    assert!(seen[1].starts_with("300 stuck"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn after_too_many_in_a_row_it_gives_up() {
    let (finish, _) = play(&[Act::Hangs, Act::Hangs, Act::Hangs], 10_000, None, false).await;
    assert_eq!(finish, Finish::GaveUp);
    let acts = [Act::Hangs, Act::Hangs, Act::Ends(0, Ended::Ok), Act::Hangs, Act::Hangs];
    let (finish, _) = play(&acts, 10_000, None, false).await;
    assert_eq!(finish, Finish::Stopped, "one that goes well begins the count anew");
}

#[tokio::test(start_paused = true)]
async fn once_is_once() {
    let (finish, seen) = play(&[Act::Ends(1, Ended::Failed)], 100, None, true).await;
    assert_eq!((finish, seen.len()), (Finish::Once(Ended::Failed), 2));
}

#[tokio::test(start_paused = true)]
async fn asked_to_end_it_finishes_what_is_under_way() {
    let (finish, seen) = play(&[Act::UntilAsked], 40, None, false).await;
    assert_eq!((finish, seen), (Finish::Stopped, vec!["0 began".to_owned(), "40 ok after 40".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_in_time_is_forced_to_and_says_how_it_ended() {
    let (finish, seen) = play(&[Act::UntilForced], 20, None, false).await;
    assert_eq!(
        (finish, &seen[..]),
        (Finish::Stopped, &["0 began".to_owned(), "50 interrupted after 50".to_owned()][..])
    );
}

#[tokio::test(start_paused = true)]
async fn asked_to_end_what_does_not_end_is_ended() {
    let (finish, seen) = play(&[Act::Works(200)], 40, None, false).await;
    assert_eq!((finish, seen), (Finish::Stopped, vec!["0 began".to_owned()]));
}

/// With real threads and a real clock, since a blocked thread stands still for everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thread_that_is_blocked_is_abandoned_and_beyond_a_limit_it_gives_up() {
    let release = Arc::<AtomicBool>::default();
    let acts = [Act::Blocks, Act::Blocks, Act::Blocks];
    let script = Script { acts: Mutex::new(acts.into()), release: Arc::clone(&release) };
    let short = Duration::from_millis(20);
    let limits = Limits {
        beat: short,
        stall: short,
        run: short * 1000,
        grace: short,
        wind_down: short,
        stuck: 99,
        abandoned: 1,
    };
    let pace = Pace { every: short, retry: short, jitter: 0.0 };
    let looping = Loop { pace, limits, carrier: Carrier::Thread, limiter: Limiter::default(), once: false };
    let seen = Seen { begun: Instant::now(), events: Mutex::default() };
    let (_sender, data) = watch::channel(0);
    let finish = looping
        .keep(Arc::new(script), LoopContext { data, stop: Stop::never(), random: || 0.5, observer: &seen })
        .await;
    release.store(true, Ordering::Relaxed);
    assert_eq!(finish, Finish::GaveUp);
    let abandoned =
        seen.events.into_inner().unwrap().iter().filter(|line| line.ends_with("abandoned")).count();
    assert_eq!(abandoned, 2);
}

#[tokio::test(start_paused = true)]
async fn asked_to_end_a_run_that_hangs_is_ended_when_its_time_is_over() {
    let (finish, seen) = play(&[Act::Hangs], 10, None, false).await;
    assert_eq!(finish, Finish::Stopped);
    assert_eq!(seen, ["0 began"], "it is no watchdog's business");
}

/// What a heartbeat tells, and when.
#[derive(Default)]
struct Beats(Mutex<Vec<String>>);

impl Told for Beats {
    fn tell(&self, event: Event) {
        if let Event::Beat(doing) = event {
            let doing: Vec<String> = doing.iter().map(ToString::to_string).collect();
            self.0.lock().unwrap().push(doing.join(", "));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_tells_what_is_waited_for_and_since_when() {
    let script = Script { acts: Mutex::new([Act::Ends(4, Ended::Ok)].into()), release: Arc::default() };
    let (beats, (_sender, data)) = (Beats::default(), watch::channel(0));
    the_loop(true)
        .keep(Arc::new(script), LoopContext { data, stop: Stop::never(), random: || 0.5, observer: &beats })
        .await;
    let told = beats.0.into_inner().unwrap();
    assert_eq!(told[..3], ["work for 1.0 s", "work for 2.0 s", "work for 3.0 s"]);
}
