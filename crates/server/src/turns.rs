//! Work that takes long waits for its turn, so that what takes little time does not have to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns for work that takes long.
pub struct Turns {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// Too many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl Turns {
    /// So many at a time, and so many wait.
    pub fn new(at_a_time: usize, most_waiting: usize) -> Self {
        let free = Arc::new(Semaphore::new(at_a_time.max(1)));
        Self { free, waiting: AtomicUsize::new(0), most_waiting }
    }

    /// Waits for one's turn, which lasts until what is returned is dropped.
    pub async fn take(&self) -> Result<OwnedSemaphorePermit, TooMany> {
        if let Ok(turn) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(turn);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(TooMany);
        }
        let _waits = Waits(&self.waiting);
        Ok(Arc::clone(&self.free).acquire_owned().await.expect("the semaphore is never closed"))
    }
}

/// One who waits, until it has its turn or goes away.
struct Waits<'t>(&'t AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells work that nobody waits for it any more when this is dropped.
#[derive(Default)]
pub struct Waiter(Arc<AtomicBool>);

impl Waiter {
    /// Whether it was dropped.
    pub fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_work_so_many_wait_and_the_others_are_sent_away() {
        let turns = Arc::new(Turns::new(1, 1));
        let first = turns.take().await.unwrap();
        let second = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take().await.is_ok() }
        });
        while turns.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.take().await.err(), Some(TooMany));
        drop(first);
        assert!(second.await.unwrap());
        assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn who_goes_away_does_not_wait_any_more() {
        let turns = Turns::new(1, 1);
        let _first = turns.take().await.unwrap();
        let mut second = Box::pin(turns.take());
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(second);
        assert_eq!(turns.waiting.load(Ordering::Relaxed), 0);
    }
}
