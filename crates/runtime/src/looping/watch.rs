//! The watchdog: sees whether anything goes on.

use std::time::Duration;

use qontract_telemetry::activity::{Activities, Activity};
use tokio::time::{Instant, sleep};

/// What a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often it is looked after.
    pub beat: Duration,
    /// How long nothing may begin or end.
    pub stall: Duration,
    /// How long a run may take.
    pub run: Duration,
    /// How long a run that is ended may take to end.
    pub grace: Duration,
    /// How long a run may go on after the end was asked for.
    pub wind_down: Duration,
    /// So many runs in a row that get stuck are too many.
    pub stuck: u32,
    /// More blocked threads than this are too many.
    pub abandoned: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(10),
            stall: Duration::from_mins(12),
            run: Duration::from_hours(1),
            grace: Duration::from_secs(10),
            wind_down: Duration::from_secs(25),
            stuck: 5,
            abandoned: 3,
        }
    }
}

/// A run in which nothing goes on, or that takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// For how long nothing began or ended.
    pub quiet: Duration,
    /// For how long it ran.
    pub ran: Duration,
    /// What it was doing, the oldest first.
    pub doing: Vec<Activity>,
}

/// Waits until nothing goes on. `beat` is called now and then with what is being done.
pub async fn until_stuck(activities: &Activities, limits: &Limits, beat: impl Fn(Vec<Activity>)) -> Stuck {
    let begun = Instant::now();
    let (mut ticks, mut since) = (activities.ticks(), begun);
    loop {
        sleep(limits.beat).await;
        let now = activities.ticks();
        if now != ticks {
            (ticks, since) = (now, Instant::now());
        }
        let (quiet, ran) = (since.elapsed(), begun.elapsed());
        if quiet >= limits.stall || ran >= limits.run {
            return Stuck { quiet, ran, doing: activities.doing() };
        }
        beat(activities.doing());
    }
}
