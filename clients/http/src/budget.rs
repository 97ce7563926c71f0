//! What one target is given: so many requests at a time, so many per second, and quiet when it asks for it.
//!
//! **Invariant:** everyone who shares the [`Budgets`] shares the budget of each target.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// The budgets of all targets, by origin. A clone is the same budgets.
#[derive(Clone, Default)]
pub struct Budgets {
    targets: Arc<Mutex<BTreeMap<String, Arc<Target>>>>,
}

impl Budgets {
    /// The budget of a target; whoever asks first decides on its concurrency.
    pub(crate) fn target(&self, origin: String, concurrency: usize) -> Arc<Target> {
        let mut targets = self.targets.lock();
        Arc::clone(targets.entry(origin).or_insert_with(|| Arc::new(Target::new(concurrency))))
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budgets({} targets)", self.targets.lock().len())
    }
}

/// The budget of one target.
pub(crate) struct Target {
    permits: Semaphore,
    pace: Mutex<Pace>,
}

/// When the next request may start.
#[derive(Default)]
struct Pace {
    next: Option<Instant>,
    quiet_until: Option<Instant>,
}

impl Target {
    fn new(concurrency: usize) -> Self {
        Self { permits: Semaphore::new(concurrency.max(1)), pace: Mutex::default() }
    }

    /// Waits for a permit to send a request. `Err` tells how long the target wants to be left alone, if that is past
    /// `deadline`.
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
        // Somebody may have been asked for quiet meanwhile.
        while let Some(until) = self.quiet(deadline)? {
            sleep_until(until).await;
        }
        Ok(permit)
    }

    /// The target asked to be left alone for so long.
    pub fn hush(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut pace = self.pace.lock();
        pace.quiet_until = Some(pace.quiet_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// Until when the target is to be left alone.
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
    async fn only_so_many_have_their_turn_at_a_time() {
        let target = Budgets::default().target("http://h".to_owned(), 2);
        let first = target.acquire(Duration::ZERO, soon()).await.unwrap();
        let _second = target.acquire(Duration::ZERO, soon()).await.unwrap();
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_err());
        drop(first);
        assert!(timeout(SECOND, target.acquire(Duration::ZERO, soon())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_apart_by_the_rate() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        for turn in 0..5 {
            drop(target.acquire(SECOND / 4, soon()).await.unwrap());
            assert_eq!(begin.elapsed().as_millis() / 250, turn);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_for_quiet_is_quiet_for_everyone() {
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
    async fn nobody_waits_past_the_deadline() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        target.hush(90 * SECOND);
        assert_eq!(target.acquire(Duration::ZERO, soon()).await.err(), Some(90 * SECOND));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
