//! Runs blocking work outside of the async threads.

/// Runs `work`, such as file operations, on a blocking thread. A panic of the work continues in the caller.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
