//! A concurrency limit with an optional maximum number of waiters and an optional wait timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Permission to run. Dropping the permit releases it.
pub type Permit = OwnedSemaphorePermit;

/// Limits concurrent work. Clones share the limit. The default has no limit.
///
/// ```
/// use qontract_concurrency::{LimitError, Limiter};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let limiter = Limiter::new(1).with_max_waiting(0);
/// let permit = limiter.acquire().await;
/// assert!(permit.is_ok());
/// assert_eq!(limiter.acquire().await.err(), Some(LimitError::QueueFull));
/// drop(permit);
/// assert!(limiter.acquire().await.is_ok());
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    max_waiting: usize,
    wait_timeout: Option<Duration>,
}

/// The reason why a permit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitError {
    /// The maximum number of callers is already waiting.
    QueueFull,
    /// No permit became free within the wait timeout.
    TimedOut,
}

impl Default for Limiter {
    fn default() -> Self {
        Self::new(Semaphore::MAX_PERMITS)
    }
}

impl Limiter {
    /// Allows up to `max_concurrent` permits at a time; 0 is treated as 1.
    pub fn new(max_concurrent: usize) -> Self {
        let permits = Arc::new(Semaphore::new(max_concurrent.clamp(1, Semaphore::MAX_PERMITS)));
        Self { permits, waiting: Arc::default(), max_waiting: usize::MAX, wait_timeout: None }
    }

    /// Refuses a caller while `max_waiting` others are waiting.
    #[must_use]
    pub fn with_max_waiting(self, max_waiting: usize) -> Self {
        Self { max_waiting, ..self }
    }

    /// Refuses a caller that has waited for `wait_timeout`.
    #[must_use]
    pub fn with_wait_timeout(self, wait_timeout: Duration) -> Self {
        Self { wait_timeout: Some(wait_timeout), ..self }
    }

    /// Waits for a permit. Waiters are served in the order of their calls.
    pub async fn acquire(&self) -> Result<Permit, LimitError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _waiter = Waiter::new(&self.waiting, self.max_waiting)?;
        let permit = Arc::clone(&self.permits).acquire_owned();
        let permit = match self.wait_timeout {
            Some(limit) => timeout(limit, permit).await.map_err(|_| LimitError::TimedOut)?,
            None => permit.await,
        };
        Ok(permit.expect("the semaphore is never closed"))
    }
}

/// Counts a caller as waiting until it gets a permit or is cancelled.
struct Waiter<'l>(&'l AtomicUsize);

impl<'l> Waiter<'l> {
    fn new(waiting: &'l AtomicUsize, max_waiting: usize) -> Result<Self, LimitError> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let waiter = Self(waiting);
        if before < max_waiting { Ok(waiter) } else { Err(LimitError::QueueFull) }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_without_a_permit_is_refused_after_the_timeout() {
        let (limiter, begun) = (Limiter::new(1).with_wait_timeout(Duration::from_secs(2)), Instant::now());
        let first = limiter.acquire().await.unwrap();
        assert_eq!(limiter.clone().acquire().await.err(), Some(LimitError::TimedOut));
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
        drop(first);
        assert!(limiter.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn a_caller_is_refused_while_the_queue_is_full() {
        let limiter = Limiter::new(1).with_max_waiting(1);
        let first = limiter.acquire().await.unwrap();
        let mut second = Box::pin(limiter.acquire());
        assert!(poll!(&mut second).is_pending());
        assert_eq!(limiter.acquire().await.err(), Some(LimitError::QueueFull));
        drop(first);
        let second = second.await.unwrap();
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
        drop(second);
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_leaves_the_queue() {
        let limiter = Limiter::new(1).with_max_waiting(1);
        let _first = limiter.acquire().await.unwrap();
        let mut second = Box::pin(limiter.acquire());
        assert!(poll!(&mut second).is_pending());
        drop(second);
        let mut third = Box::pin(limiter.acquire());
        assert!(poll!(&mut third).is_pending(), "the queue accepts a waiter again");
    }

    #[tokio::test]
    async fn at_least_one_permit_exists_and_the_default_has_no_limit() {
        assert!(Limiter::new(0).acquire().await.is_ok());
        let unlimited = Limiter::default();
        let mut permits = Vec::new();
        for _ in 0..1000 {
            permits.push(unlimited.acquire().await.unwrap());
        }
    }
}
