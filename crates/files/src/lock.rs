//! Lock files that serialize the writes of several processes.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::private_files;

/// Timeout for a lock: a process that was stopped during a write must not block all others forever.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval at which a lock is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Open flags: do not follow links, and do not block on pipes.
pub const SAFE_OPEN_FLAGS: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Takes the lock of `path`, and creates the file if it is missing. The lock is held until the returned file is
/// dropped. Fails if another process holds it for longer than `timeout`, and if `path` is a symbolic link.
pub fn acquire(path: &Path, timeout: Duration) -> io::Result<File> {
    let file =
        private_files::options().write(true).truncate(false).custom_flags(SAFE_OPEN_FLAGS).open(path)?;
    let file = require_regular(file)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if start.elapsed() < timeout => std::thread::sleep(POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process has held it for {} s", timeout.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
        }
    }
}

/// Returns the file if it is a regular file.
pub fn require_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_it_is_dropped() {
        let scratch = qontract_testkit::Scratch::new();
        let path = scratch.path().join(".lock");
        let held = acquire(&path, DEFAULT_TIMEOUT).unwrap();
        let error = acquire(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "another process has held it for 0 s");
        drop(held);
        acquire(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("elsewhere", "");
        scratch.link(".lock", "elsewhere");
        acquire(&scratch.path().join(".lock"), Duration::ZERO).unwrap_err();
    }
}
