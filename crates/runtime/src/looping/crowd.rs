//! How many runs go at a time, of all loops that share a process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How many runs go at a time, of all loops that have a clone of it. One that hangs keeps nobody waiting for long. By
/// default, any number.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Option<(Arc<Semaphore>, Duration)>);

impl Crowd {
    /// At most `most` at a time; whoever has waited for `patience` does not wait any longer.
    pub fn new(most: usize, patience: Duration) -> Self {
        Self(Some((Arc::new(Semaphore::new(most.max(1))), patience)))
    }

    /// Waits for one's turn, which lasts until what is returned is dropped.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let (turns, patience) = self.0.as_ref()?;
        timeout(*patience, Arc::clone(turns).acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_long() {
        let (crowd, begun) = (Crowd::new(1, Duration::from_secs(2)), Instant::now());
        let first = crowd.turn().await;
        assert!(first.is_some() && begun.elapsed().is_zero());
        assert!(crowd.turn().await.is_none());
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
        drop(first);
        assert!(crowd.turn().await.is_some());
        assert!(Crowd::default().turn().await.is_none());
    }
}
