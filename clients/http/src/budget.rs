//! Rate limits per origin: concurrent requests, requests per second, and back-off after `Retry-After`.
//!
//! **Invariant:** all callers that share the [`Budgets`] share the limits of each origin.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// The rate limiters of all targets, by origin. Clones share them.
#[derive(Clone, Default)]
pub struct Budgets {
    targets: Arc<Mutex<BTreeMap<String, Arc<Target>>>>,
}

impl Budgets {
    /// The limiter of an origin. The first caller sets its concurrency.
    pub(crate) fn target(&self, origin: String, concurrency: usize) -> Arc<Target> {
        let mut targets = self.targets.lock();
        Arc::clone(targets.entry(origin).or_insert_with(|| Arc::new(Target::new(concurrency))))
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginLimiters({} origins)", self.targets.lock().len())
    }
}

/// The rate limiter of one origin.
pub(crate) struct Target {
    permits: Semaphore,
    pace: Mutex<Pace>,
}

/// The earliest start of the next request.
#[derive(Default)]
struct Pace {
    next: Option<Instant>,
    quiet_until: Option<Instant>,
}

impl Target {
    fn new(concurrency: usize) -> Self {
        Self { permits: Semaphore::new(concurrency.max(1)), pace: Mutex::default() }
    }

    /// Waits for a permit to send a request, at least `spacing` after the previous one. `Err` is the
    /// remaining back-off, if it ends past `deadline`.
    pub async fn acquire(
        &self,
        spacing: Duration,
        deadline: Instant,
    ) -> Result<SemaphorePermit<'_>, Duration> {
        self.quiet(deadline)?;
        let permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let start = {
            let mut pace = self.pace.lock();
            let start = pace.next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            pace.next = Some(start + spacing);
            start
        };
        sleep_until(start).await;
        // Another caller may have received a `Retry-After` in the meantime.
        while let Some(until) = self.quiet(deadline)? {
            sleep_until(until).await;
        }
        Ok(permit)
    }

    /// Delays all requests to the origin by `pause`, as requested by `Retry-After`.
    pub fn hush(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut pace = self.pace.lock();
        pace.quiet_until = Some(pace.quiet_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// The end of the current back-off. `Err` is the remaining time, if it ends past `deadline`.
    fn quiet(&self, deadline: Instant) -> Result<Option<Instant>, Duration> {
        let now = Instant::now();
        let until = self.pace.lock().quiet_until.filter(|until| *until > now);
        match until {
            Some(until) if until >= deadline => Err(until - now),
            other => Ok(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::Budgets;

    const SECOND: Duration = Duration::from_secs(1);

    fn soon() -> Instant {
        Instant::now() + 60 * SECOND
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_are_limited() {
        let target = Budgets::default().target("http://h".to_owned(), 2);
        let first = target.acquire(Duration::ZERO, soon()).await.unwrap();
        let _second = target.acquire(Duration::ZERO, soon()).await.unwrap();
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_err());
        drop(first);
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_spaced_by_the_rate() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        for number in 0..5 {
            drop(target.acquire(SECOND / 4, soon()).await.unwrap());
            assert_eq!(begin.elapsed().as_millis() / 250, number);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_back_off_applies_to_all_callers_of_the_origin() {
        let (budgets, begin) = (Budgets::default(), Instant::now());
        budgets.target("http://h".to_owned(), 2).hush(5 * SECOND);
        let (same, other) =
            (budgets.clone().target("http://h".to_owned(), 2), budgets.target("http://o".to_owned(), 2));
        drop(same.acquire(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
        drop(other.acquire(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_back_off_past_the_deadline_fails_immediately() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        target.hush(90 * SECOND);
        assert_eq!(target.acquire(Duration::ZERO, soon()).await.err(), Some(90 * SECOND));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
