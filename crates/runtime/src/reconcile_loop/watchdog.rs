//! The watchdog: detects runs that make no progress or take too long.

use std::time::Duration;

use qontract_telemetry::activity::{Activities, Activity};
use tokio::time::{Instant, sleep};

use crate::meta::{IntegrationLimits, IntegrationMeta, Patience};

/// The limits that the watchdog enforces.
#[derive(Clone, Copy, Debug)]
pub struct WatchdogLimits {
    /// The interval between two checks and between two heartbeats.
    pub heartbeat_interval: Duration,
    /// Maximum time during which no activity starts or ends.
    pub stall_timeout: Duration,
    /// Maximum duration of a run.
    pub run_timeout: Duration,
    /// Time that a cancelled run gets to end before it is abandoned.
    pub grace_period: Duration,
    /// Time that a run gets to end after a shutdown request, before the shutdown is forced.
    pub shutdown_timeout: Duration,
    /// Number of consecutive stalls after which the loop exits.
    pub max_stalls: u32,
    /// Maximum number of abandoned threads; the loop exits if there are more.
    pub max_abandoned: u32,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(10),
            stall_timeout: Duration::from_mins(12),
            run_timeout: Duration::from_hours(1),
            grace_period: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(25),
            max_stalls: 5,
            max_abandoned: 3,
        }
    }
}

/// Time that a phase or a step may take beyond its own timeout before the watchdog intervenes.
const STEP_MARGIN: Duration = Duration::from_mins(2);

/// Time that a run gets to end after the shutdown of its process is forced, before the loop forces the run to end.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(5);

impl WatchdogLimits {
    /// Raises these limits so that a phase, a step and a wait of the integration fit into them: a step that takes as
    /// long as its own timeout allows is not a stall.
    #[must_use]
    pub fn for_integration(self, meta: &IntegrationMeta) -> Self {
        let IntegrationLimits { phase_timeout, step_timeout, max_shards: _, shutdown_timeout } = meta.limits;
        let with_margin = |timeout: Option<Duration>| timeout.map_or(Duration::ZERO, |it| it + STEP_MARGIN);
        let (phase, step) = (with_margin(phase_timeout), with_margin(step_timeout));
        let Patience { every, total } = meta.patience;
        // No activity is registered between two observations, and the watchdog notices an activity
        // up to one heartbeat late.
        let pause =
            if total.is_zero() { Duration::ZERO } else { every.min(total) + self.heartbeat_interval * 2 };
        Self {
            stall_timeout: self.stall_timeout.max(step).max(phase).max(pause),
            run_timeout: self.run_timeout + phase + step + total,
            ..self.for_shutdown(shutdown_timeout.unwrap_or_default())
        }
    }

    /// Raises these limits so that a shutdown that waits this long for steps in progress ends before the loop forces
    /// it.
    #[must_use]
    pub fn for_shutdown(self, timeout: Duration) -> Self {
        Self { shutdown_timeout: self.shutdown_timeout.max(timeout + SHUTDOWN_MARGIN), ..self }
    }
}

/// A run that makes no progress or takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The time since the last activity started or ended.
    pub idle: Duration,
    /// Duration of the run so far.
    pub elapsed: Duration,
    /// The activities of the run, oldest first.
    pub activities: Vec<Activity>,
}

/// Waits until the run exceeds one of the limits. Calls `beat` with the current activities at each heartbeat.
pub async fn until_stalled(
    activities: &Activities,
    limits: &WatchdogLimits,
    beat: impl Fn(Vec<Activity>),
) -> Stall {
    let begun = Instant::now();
    let (mut ticks, mut since) = (activities.ticks(), begun);
    loop {
        sleep(limits.heartbeat_interval).await;
        let now = activities.ticks();
        if now != ticks {
            (ticks, since) = (now, Instant::now());
        }
        let (quiet, ran) = (since.elapsed(), begun.elapsed());
        if quiet >= limits.stall_timeout || ran >= limits.run_timeout {
            return Stall { idle: quiet, elapsed: ran, activities: activities.in_progress() };
        }
        beat(activities.in_progress());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_may_take_long_is_not_a_stall() {
        let limits = WatchdogLimits::default();
        let meta = IntegrationMeta::new("x", "");
        let same = limits.for_integration(&meta);
        assert_eq!((same.stall_timeout, same.run_timeout), (limits.stall_timeout, limits.run_timeout));
        assert_eq!(same.shutdown_timeout, limits.shutdown_timeout);
        let own = IntegrationLimits {
            phase_timeout: Some(Duration::from_mins(20)),
            step_timeout: Some(Duration::from_hours(1)),
            max_shards: None,
            shutdown_timeout: Some(Duration::from_mins(5)),
        };
        let meta = meta.limits(own).patience(Duration::from_secs(5), Duration::from_mins(30));
        let raised = limits.for_integration(&meta);
        assert_eq!(raised.stall_timeout, Duration::from_mins(62));
        assert_eq!(raised.run_timeout, Duration::from_mins(60 + 22 + 62 + 30));
        assert_eq!(raised.shutdown_timeout, Duration::from_mins(5) + SHUTDOWN_MARGIN);
        assert_eq!(raised.for_shutdown(Duration::from_mins(1)).shutdown_timeout, raised.shutdown_timeout);
    }

    #[test]
    fn a_pause_between_two_observations_is_not_a_stall() {
        let limits = WatchdogLimits { stall_timeout: Duration::from_secs(30), ..WatchdogLimits::default() };
        let check = |every, total, expect| {
            let [every, total, expect] = [every, total, expect].map(Duration::from_secs);
            let meta = IntegrationMeta::new("x", "").patience(every, total);
            assert_eq!(limits.for_integration(&meta).stall_timeout, expect, "{every:?} {total:?}");
        };
        check(5, 600, 30);
        check(30, 600, 50);
        check(300, 600, 320);
        check(300, 60, 80);
        check(300, 0, 30);
    }
}
