//! Loop back-off (backoff): the schedule of a loop, with its interval, exponential back-off and jitter. Pure:
//! randomness is an argument.

use std::time::Duration;

/// Minimum pause before the next run, to prevent a busy loop.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Maximum pause before the next run.
const MAX_PAUSE: Duration = Duration::from_hours(24 * 365);

/// Decides when the next run is due.
///
/// ```
/// use std::time::Duration;
///
/// use qontract_runtime::reconcile_loop::Schedule;
///
/// let (interval, initial_backoff) = (Duration::from_mins(10), Duration::from_secs(10));
/// let schedule = Schedule { interval, initial_backoff, jitter: 0.1, ..Schedule::default() };
/// let seconds = [0, 1, 2, 3, 7, 99].map(|failures| schedule.pause(failures, 0.5).as_secs());
/// assert_eq!(seconds, [600, 10, 20, 40, 600, 600]);
///
/// // Jitter makes a pause up to 10 % shorter or longer.
/// assert_eq!(schedule.pause(0, 0.0), Duration::from_mins(9));
/// assert_eq!(schedule.pause(0, 1.0), Duration::from_mins(11));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The interval between successful runs, and the maximum back-off.
    pub interval: Duration,
    /// The back-off after the first failure. The back-off doubles with each further failure, up to `interval`.
    pub initial_backoff: Duration,
    /// The fraction by which a pause is randomly longer or shorter, so that loops do not run in lockstep.
    pub jitter: f64,
    /// Maximum random delay of a run that new data starts, so that the loops of many processes do not query a server
    /// at the same time.
    pub wake_jitter: Duration,
}

impl Default for Schedule {
    /// A schedule with a run every ten minutes.
    fn default() -> Self {
        let (interval, initial_backoff) = (Duration::from_mins(10), Duration::from_secs(10));
        Self { interval, initial_backoff, jitter: 0.1, wake_jitter: Duration::ZERO }
    }
}

impl Schedule {
    /// The pause before the next run after this many consecutive failures; `chance` is a random number from 0 to 1.
    pub fn pause(&self, failures: u32, chance: f64) -> Duration {
        let base = match failures {
            0 => self.interval,
            many => {
                let doubled = 1u32.checked_shl(many - 1).unwrap_or(u32::MAX);
                self.initial_backoff.saturating_mul(doubled).min(self.interval.max(self.initial_backoff))
            }
        };
        let base = base.clamp(MIN_PAUSE, MAX_PAUSE);
        let jitter = self.jitter.clamp(0.0, 1.0);
        base.mul_f64(1.0 - jitter + 2.0 * jitter * chance.clamp(0.0, 1.0))
    }

    /// The delay of a run that new data starts; `chance` is a random number from 0 to 1.
    pub fn wake_delay(&self, chance: f64) -> Duration {
        self.wake_jitter.min(self.interval).mul_f64(chance.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use std::time::Duration;

    fn check(failures: u32, chance: f64, expect: u64) {
        let pace = Schedule {
            interval: Duration::from_mins(10),
            initial_backoff: Duration::from_secs(10),
            jitter: 0.1,
            ..Schedule::default()
        };
        assert_eq!(pace.pause(failures, chance), Duration::from_secs(expect));
    }

    #[test]
    fn a_successful_run_repeats_after_the_interval() {
        check(0, 0.5, 600);
    }

    #[test]
    fn failures_back_off_exponentially() {
        for (failures, seconds) in [(1, 10), (2, 20), (3, 40), (7, 600), (99, 600)] {
            check(failures, 0.5, seconds);
        }
    }

    #[test]
    fn the_pause_has_a_minimum_and_a_maximum() {
        let pace =
            |every| Schedule { interval: every, initial_backoff: every, jitter: 1.0, ..Schedule::default() };
        assert!(pace(Duration::MAX).pause(0, 1.0) <= Duration::from_hours(24 * 800));
        assert!(pace(Duration::ZERO).pause(9, 1.0) > Duration::ZERO);
    }

    #[test]
    fn new_data_starts_runs_at_random_times() {
        let pace = Schedule { wake_jitter: Duration::from_secs(10), ..Schedule::default() };
        assert_eq!([0.0, 0.5, 1.0].map(|chance| pace.wake_delay(chance).as_secs()), [0, 5, 10]);
        let short = Schedule { interval: Duration::from_secs(2), ..pace };
        assert_eq!(short.wake_delay(1.0), Duration::from_secs(2));
        assert_eq!(Schedule::default().wake_delay(1.0), Duration::ZERO);
    }

    #[test]
    fn jitter_makes_the_pause_shorter_or_longer() {
        check(0, 0.0, 540);
        check(0, 1.0, 660);
        check(1, 0.0, 9);
    }
}
