//! The timing of a lease.

use std::time::Duration;

/// Minimum duration of a lease that another process wrote.
const MIN_DURATION: Duration = Duration::from_secs(1);

/// Maximum duration of a lease that another process wrote, so that a damaged number does not block a shard.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// Minimum pause between two attempts to renew a lease.
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The timing that follows from the duration of a lease.
///
/// **Invariant:** a holder stops before any other process takes over, even if the speeds of their clocks differ by up
/// to 20 % (`at_most_one_fence_holds_in_random_histories`). The fence holds for the duration less a margin, and a
/// takeover needs the duration plus the margin. The margin is a tenth of the duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    duration: Duration,
}

impl LeaseTiming {
    /// Creates the timing of a lease with this duration.
    pub fn new(duration: Duration) -> Self {
        Self { duration: duration.clamp(MIN_DURATION, MAX_DURATION) }
    }

    /// The duration of the lease.
    pub fn duration(self) -> Duration {
        self.duration
    }

    /// The time for which the fence holds after a renewal was sent.
    pub fn fence(self) -> Duration {
        self.duration * 9 / 10
    }

    /// The time for which the lease must have been unchanged before another process may take it over.
    pub fn takeover(self) -> Duration {
        self.duration * 11 / 10
    }

    /// The interval between two renewals, and the maximum duration of a renewal.
    pub fn renewal(self) -> Duration {
        self.duration / 3
    }

    /// The pause after a renewal that failed.
    pub fn retry(self) -> Duration {
        (self.duration / 30).max(MIN_RETRY_INTERVAL)
    }
}
