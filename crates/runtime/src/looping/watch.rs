//! The watchdog: detects runs that make no progress or take too long.

use std::time::Duration;

use qontract_telemetry::activity::{Activities, Activity};
use tokio::time::{Instant, sleep};

/// The limits that the watchdog enforces.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Interval between two checks, and between two heartbeats.
    pub beat: Duration,
    /// Maximum time without an activity starting or ending.
    pub stall: Duration,
    /// Maximum duration of a run.
    pub run: Duration,
    /// Time for a cancelled run to end, before it is abandoned.
    pub grace: Duration,
    /// Time for a run to end after a shutdown request, before the shutdown is forced.
    pub wind_down: Duration,
    /// Number of consecutive stalls after which the loop exits.
    pub stuck: u32,
    /// Maximum number of abandoned threads; with more, the loop exits.
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

/// A run that makes no progress or takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Time since an activity last started or ended.
    pub quiet: Duration,
    /// Duration of the run so far.
    pub ran: Duration,
    /// Its activities, oldest first.
    pub doing: Vec<Activity>,
}

/// Waits until the run stalls. Calls `beat` with the current activities at each heartbeat.
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
