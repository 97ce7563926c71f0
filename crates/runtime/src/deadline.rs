//! Enforces the deadline of one phase of a run.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::fault::{Fault, panic_fault};

/// Runs code of an integration with a deadline and converts a panic into a fault.
pub async fn with_deadline<T>(
    deadline: Duration,
    what: &str,
    future: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(deadline, AssertUnwindSafe(future).catch_unwind()).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(panic_fault(what, &*panic)),
        Err(_) => Err(Fault::remote(format!("`{what}` took longer than {} s", deadline.as_secs()))),
    }
}
