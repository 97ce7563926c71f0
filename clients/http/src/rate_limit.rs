//! Rate limits per origin: concurrent requests, requests per second, and back-off after `Retry-After`.
//!
//! **Invariant:** all callers that share the [`OriginLimiters`] share the limits of each origin.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use qontract_concurrency::{Limiter, Permit};
use tokio::time::{Instant, sleep_until};

/// The rate limiters of all targets, by origin. Clones share the limiters.
#[derive(Clone, Default)]
pub struct OriginLimiters {
    limiters: Arc<Mutex<BTreeMap<String, Arc<OriginLimiter>>>>,
}

impl OriginLimiters {
    /// The limiter of an origin. The first caller determines its concurrency.
    pub(crate) fn for_origin(&self, origin: String, concurrency: usize) -> Arc<OriginLimiter> {
        let mut targets = self.limiters.lock();
        Arc::clone(targets.entry(origin).or_insert_with(|| Arc::new(OriginLimiter::new(concurrency))))
    }
}

impl fmt::Debug for OriginLimiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginLimiters({} origins)", self.limiters.lock().len())
    }
}

/// The rate limiter of one origin.
pub(crate) struct OriginLimiter {
    permits: Limiter,
    pacing: Mutex<Pacing>,
}

/// The earliest start of the next request.
#[derive(Default)]
struct Pacing {
    next: Option<Instant>,
    back_off_until: Option<Instant>,
}

impl OriginLimiter {
    fn new(concurrency: usize) -> Self {
        Self { permits: Limiter::new(concurrency), pacing: Mutex::default() }
    }

    /// Waits for a permit to send a request, at least `spacing` after the previous one. `Err` is the
    /// remaining back-off, if the back-off ends past `deadline`.
    pub async fn acquire(&self, spacing: Duration, deadline: Instant) -> Result<Permit, Duration> {
        self.back_off_end(deadline)?;
        let permit =
            self.permits.acquire().await.expect("neither the number of waiters nor their time is limited");
        let start = {
            let mut pace = self.pacing.lock();
            let start = pace.next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            pace.next = Some(start + spacing);
            start
        };
        sleep_until(start).await;
        // Another caller may have received a `Retry-After` while this caller waited.
        while let Some(until) = self.back_off_end(deadline)? {
            sleep_until(until).await;
        }
        Ok(permit)
    }

    /// Delays all requests to the origin by `pause`, as requested by `Retry-After`.
    pub fn back_off(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut pace = self.pacing.lock();
        pace.back_off_until = Some(pace.back_off_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// The end of the current back-off. `Err` is the remaining time, if the back-off ends past `deadline`.
    fn back_off_end(&self, deadline: Instant) -> Result<Option<Instant>, Duration> {
        let now = Instant::now();
        let until = self.pacing.lock().back_off_until.filter(|until| *until > now);
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

    use super::OriginLimiters;

    const SECOND: Duration = Duration::from_secs(1);

    fn soon() -> Instant {
        Instant::now() + 60 * SECOND
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_are_limited() {
        let target = OriginLimiters::default().for_origin("http://h".to_owned(), 2);
        let first = target.acquire(Duration::ZERO, soon()).await.unwrap();
        let _second = target.acquire(Duration::ZERO, soon()).await.unwrap();
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_err());
        drop(first);
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_spaced_by_the_rate() {
        let (target, begin) =
            (OriginLimiters::default().for_origin("http://h".to_owned(), 2), Instant::now());
        for number in 0..5 {
            drop(target.acquire(SECOND / 4, soon()).await.unwrap());
            assert_eq!(begin.elapsed().as_millis() / 250, number);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_back_off_applies_to_all_callers_of_the_origin() {
        let (budgets, begin) = (OriginLimiters::default(), Instant::now());
        budgets.for_origin("http://h".to_owned(), 2).back_off(5 * SECOND);
        let (same, other) = (
            budgets.clone().for_origin("http://h".to_owned(), 2),
            budgets.for_origin("http://o".to_owned(), 2),
        );
        drop(same.acquire(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
        drop(other.acquire(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_back_off_past_the_deadline_fails_immediately() {
        let (target, begin) =
            (OriginLimiters::default().for_origin("http://h".to_owned(), 2), Instant::now());
        target.back_off(90 * SECOND);
        assert_eq!(target.acquire(Duration::ZERO, soon()).await.err(), Some(90 * SECOND));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
