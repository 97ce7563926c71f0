//! Lock files that serialize the writes of several processes.

use std::fs::{File, OpenOptions, TryLockError};
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

/// Takes the lock of `path`, and creates the file if it is missing. The lock is held until the returned file
/// is dropped. Fails if another process holds the lock for longer than `timeout`, and if `path` is a symbolic
/// link.
pub fn acquire(path: &Path, timeout: Duration) -> io::Result<File> {
    poll(open(path)?, timeout)
}

/// Takes a lock as [`acquire`] does, but on the directory itself, so that no lock file is created.
pub fn acquire_folder(folder: &Path, timeout: Duration) -> io::Result<File> {
    poll(OpenOptions::new().read(true).custom_flags(SAFE_OPEN_FLAGS).open(folder)?, timeout)
}

/// Takes the lock of `path` as [`acquire`] does, without waiting; `None` if another process holds it.
pub fn try_acquire(path: &Path) -> io::Result<Option<File>> {
    try_lock(open(path)?).map(Result::ok)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = private_files::options();
    require_regular(options.write(true).truncate(false).custom_flags(SAFE_OPEN_FLAGS).open(path)?)
}

/// The file if it could be locked. If another process holds the lock, the inner error is the file.
fn try_lock(file: File) -> io::Result<Result<File, File>> {
    match file.try_lock() {
        Ok(()) => Ok(Ok(file)),
        Err(TryLockError::WouldBlock) => Ok(Err(file)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn poll(mut file: File, timeout: Duration) -> io::Result<File> {
    let start = Instant::now();
    loop {
        file = match try_lock(file)? {
            Ok(locked) => return Ok(locked),
            Err(file) => file,
        };
        if start.elapsed() >= timeout {
            let why = format!("another process has held it for {} s", timeout.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        std::thread::sleep(POLL_INTERVAL);
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
    fn a_lock_that_is_held_is_not_waited_for() {
        let scratch = qontract_testkit::Scratch::new();
        let path = scratch.path().join(".lock");
        let held = try_acquire(&path).unwrap().expect("a free lock");
        assert!(try_acquire(&path).unwrap().is_none());
        drop(held);
        assert!(try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn the_lock_of_a_folder_leaves_no_file() {
        let scratch = qontract_testkit::Scratch::new();
        let held = acquire_folder(scratch.path(), Duration::ZERO).unwrap();
        let error = acquire_folder(scratch.path(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(held);
        acquire_folder(scratch.path(), Duration::ZERO).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_is_not_followed() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("elsewhere", "");
        scratch.link(".lock", "elsewhere");
        acquire(&scratch.path().join(".lock"), Duration::ZERO).unwrap_err();
    }
}
