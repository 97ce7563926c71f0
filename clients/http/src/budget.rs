//! What one target is given: so many requests at a time, so many per second, and quiet when it asks for it.
//!
//! **Invariant:** everyone who shares the [`Budgets`] shares the budget of each target.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
        let mut targets = lock(&self.targets);
        Arc::clone(targets.entry(origin).or_insert_with(|| Arc::new(Target::new(concurrency))))
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budgets({} targets)", lock(&self.targets).len())
    }
}

/// The budget of one target.
pub(crate) struct Target {
    slots: Semaphore,
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
        Self { slots: Semaphore::new(concurrency.max(1)), pace: Mutex::default() }
    }

    /// Waits for one's turn, and keeps it until the permit is dropped. `Err` tells how long the target wants to be
    /// left alone, if that is past `deadline`.
    pub async fn turn(&self, spacing: Duration, deadline: Instant) -> Result<SemaphorePermit<'_>, Duration> {
        self.quiet(deadline)?;
        let slot = self.slots.acquire().await.expect("the semaphore is never closed");
        let start = {
            let mut pace = lock(&self.pace);
            let start = pace.next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            pace.next = Some(start + spacing);
            start
        };
        sleep_until(start).await;
        // Somebody may have been asked for quiet meanwhile.
        while let Some(until) = self.quiet(deadline)? {
            sleep_until(until).await;
        }
        Ok(slot)
    }

    /// The target asked to be left alone for so long.
    pub fn hush(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut pace = lock(&self.pace);
        pace.quiet_until = Some(pace.quiet_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// Until when the target is to be left alone.
    fn quiet(&self, deadline: Instant) -> Result<Option<Instant>, Duration> {
        let now = Instant::now();
        let until = lock(&self.pace).quiet_until.filter(|until| *until > now);
        match until {
            Some(until) if until >= deadline => Err(until - now),
            other => Ok(other),
        }
    }
}

/// The tables are whole at any time, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let first = target.turn(Duration::ZERO, soon()).await.unwrap();
        let _second = target.turn(Duration::ZERO, soon()).await.unwrap();
        assert!(timeout(SECOND, target.turn(Duration::ZERO, soon())).await.is_err());
        drop(first);
        assert!(timeout(SECOND, target.turn(Duration::ZERO, soon())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_apart_by_the_rate() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        for turn in 0..5 {
            drop(target.turn(SECOND / 4, soon()).await.unwrap());
            assert_eq!(begin.elapsed().as_millis() / 250, turn);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_for_quiet_is_quiet_for_everyone() {
        let (budgets, begin) = (Budgets::default(), Instant::now());
        budgets.target("http://h".to_owned(), 2).hush(5 * SECOND);
        let (same, other) =
            (budgets.clone().target("http://h".to_owned(), 2), budgets.target("http://o".to_owned(), 2));
        drop(same.turn(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
        drop(other.turn(Duration::ZERO, soon()).await.unwrap());
        assert_eq!(begin.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_past_the_deadline() {
        let (target, begin) = (Budgets::default().target("http://h".to_owned(), 2), Instant::now());
        target.hush(90 * SECOND);
        assert_eq!(target.turn(Duration::ZERO, soon()).await.err(), Some(90 * SECOND));
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }
}
