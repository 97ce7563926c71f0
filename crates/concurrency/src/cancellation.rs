//! Cancels work on another thread when its caller is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether some work was cancelled. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels work when it is dropped.
///
/// ```
/// use qontract_concurrency::CancelOnDrop;
///
/// let caller = CancelOnDrop::default();
/// let cancellation = caller.cancellation();
/// assert!(!cancellation.is_cancelled());
/// drop(caller);
/// assert!(cancellation.is_cancelled());
/// ```
#[derive(Debug, Default)]
pub struct CancelOnDrop(Cancellation);

impl CancelOnDrop {
    /// The cancellation state to pass to the work.
    pub fn cancellation(&self) -> Cancellation {
        self.0.clone()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
