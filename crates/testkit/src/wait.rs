//! Waits for asynchronous effects of a server.

use std::thread;
use std::time::{Duration, Instant};

/// Polling interval.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout of a wait. The timeout is long, because the machine may be busy.
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Calls `poll` until it returns a value.
///
/// # Panics
///
/// After a minute; the message contains `what`.
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(
            start.elapsed() < WAIT_TIMEOUT,
            "timed out after {} s waiting for: {what}",
            WAIT_TIMEOUT.as_secs()
        );
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::eventually;

    #[test]
    fn polling_ends_at_the_first_value() {
        let mut polls = 0;
        let value = eventually("the third poll", || {
            polls += 1;
            (polls == 3).then_some("it")
        });
        assert_eq!((value, polls), ("it", 3));
    }
}
