//! Waiting for what a server does in its own time.

use std::thread;
use std::time::{Duration, Instant};

/// How often is looked.
pub(crate) const POLL: Duration = Duration::from_millis(100);
/// How long a test waits: long, since the machine may be busy.
const LIMIT: Duration = Duration::from_mins(1);

/// Looks again and again until there is something to return.
///
/// # Panics
///
/// After a minute, with what was waited for.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "after {} s still not: {what}", LIMIT.as_secs());
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::eventually;

    #[test]
    fn it_is_looked_until_something_is_there() {
        let mut looks = 0;
        let found = eventually("the third look", || {
            looks += 1;
            (looks == 3).then_some("it")
        });
        assert_eq!((found, looks), ("it", 3));
    }
}
