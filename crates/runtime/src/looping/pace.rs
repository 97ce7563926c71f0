//! When the next run is due. Pure: chance comes in as an argument.

use std::time::Duration;

/// Less than this is a busy loop; in real ones the time is of seconds.
const SHORTEST: Duration = Duration::from_millis(1);

/// Nobody waits for longer.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// When the next run is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The time between runs that go well.
    pub every: Duration,
    /// The time after the first run that fails; it doubles with each that follows, up to `every`.
    pub retry: Duration,
    /// By which part of it a time may be longer or shorter, so that not everybody comes at once.
    pub jitter: f64,
}

impl Pace {
    /// The time until the next run, after so many failures in a row; `chance` is from 0 to 1.
    pub fn pause(&self, failures: u32, chance: f64) -> Duration {
        let base = match failures {
            0 => self.every,
            many => {
                let doubled = 1u32.checked_shl(many - 1).unwrap_or(u32::MAX);
                self.retry.saturating_mul(doubled).min(self.every.max(self.retry))
            }
        };
        let base = base.clamp(SHORTEST, LONGEST);
        let jitter = self.jitter.clamp(0.0, 1.0);
        base.mul_f64(1.0 - jitter + 2.0 * jitter * chance.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use std::time::Duration;

    fn check(failures: u32, chance: f64, expect: u64) {
        let pace = Pace { every: Duration::from_mins(10), retry: Duration::from_secs(10), jitter: 0.1 };
        assert_eq!(pace.pause(failures, chance), Duration::from_secs(expect));
    }

    #[test]
    fn what_goes_well_comes_again_after_the_usual_time() {
        check(0, 0.5, 600);
    }

    #[test]
    fn what_fails_is_tried_again_soon_and_ever_later() {
        for (failures, seconds) in [(1, 10), (2, 20), (3, 40), (7, 600), (99, 600)] {
            check(failures, 0.5, seconds);
        }
    }

    #[test]
    fn no_time_is_too_long_or_too_short_to_wait() {
        let pace = |every| Pace { every, retry: every, jitter: 1.0 };
        assert!(pace(Duration::MAX).pause(0, 1.0) <= Duration::from_hours(24 * 800));
        assert!(pace(Duration::ZERO).pause(9, 1.0) > Duration::ZERO);
    }

    #[test]
    fn chance_makes_it_a_little_shorter_or_longer() {
        check(0, 0.0, 540);
        check(0, 1.0, 660);
        check(1, 0.0, 9);
    }
}
