//! The process groups that this process has started and that are still running, so that a shutdown can end all of them.
//!
//! The registry is global because a process has one set of children. Its lock is held only to look something up, and to write a few bytes
//! to the watchdog's pipe, which never blocks.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroI32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::POLL_INTERVAL;
use crate::watchdog::Watchdog;

/// How long a group that was asked to end (`SIGTERM`) has before it is killed (`SIGKILL`).
pub const GRACE: Duration = Duration::from_secs(2);

/// What a child process is for, which decides when a shutdown ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// It only reads: a shutdown ends it at once.
    Read,
    /// It changes something: a shutdown lets it finish, until it is forced.
    Write,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { groups: BTreeMap::new(), stopping: None, watchdog: Watchdog::disabled() });

struct Registry {
    /// Groups by the id of their first process.
    groups: BTreeMap<NonZeroI32, Purpose>,
    /// Groups up to this purpose are being ended, and no other is started.
    stopping: Option<Purpose>,
    watchdog: Watchdog,
}

impl Registry {
    /// The groups up to a purpose.
    fn up_to(&self, purpose: Purpose) -> Vec<Pid> {
        let chosen = self.groups.iter().filter(|(_, one)| **one <= purpose);
        chosen.filter_map(|(group, _)| Pid::from_raw(group.get())).collect()
    }
}

fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a watchdog process with the first child from now on: it ends all groups when this process dies, even by `SIGKILL`.
///
/// The watchdog is this executable with [`crate::WATCHDOG_ARGUMENT`] as its only argument, which must call [`crate::watch`].
pub fn enable_watchdog() {
    lock().watchdog.enable();
}

/// Ends the watchdog process, before another program replaces this one. No child is running then.
pub fn retire_watchdog() {
    lock().watchdog.retire();
}

/// Prepares for a child: there is a watchdog before there is a child.
pub(crate) fn prepare() {
    let mut registry = lock();
    let groups = registry.up_to(Purpose::Write);
    registry.watchdog.ensure(&groups);
}

/// Adds a group. During a shutdown that ends such groups this is an error, and the caller kills it.
pub(crate) fn add(group: Pid, purpose: Purpose) -> io::Result<()> {
    let mut registry = lock();
    if is_stopped(registry.stopping, purpose) {
        return Err(io::Error::new(io::ErrorKind::Interrupted, "shutting down"));
    }
    registry.groups.insert(group.as_raw_nonzero(), purpose);
    registry.watchdog.add(group);
    Ok(())
}

/// Removes a group. Its first process is not reaped yet, so that its id cannot have been given to another process.
pub(crate) fn remove(group: Pid) {
    let mut registry = lock();
    if registry.groups.remove(&group.as_raw_nonzero()).is_some() {
        registry.watchdog.remove(group);
    }
}

/// Whether a shutdown ends children of this purpose.
pub fn is_stopping(purpose: Purpose) -> bool {
    is_stopped(lock().stopping, purpose)
}

fn is_stopped(stopping: Option<Purpose>, purpose: Purpose) -> bool {
    stopping.is_some_and(|last| purpose <= last)
}

/// Ends all groups up to a purpose, and lets no other start: asks with `SIGTERM`, waits up to [`GRACE`], and kills what is left.
///
/// Stopping [`Purpose::Write`] stops [`Purpose::Read`] as well. Blocks until all are killed; their owners reap them.
pub fn stop(purpose: Purpose) {
    let groups: Vec<Pid> = {
        let mut registry = lock();
        registry.stopping = registry.stopping.max(Some(purpose));
        registry.up_to(purpose)
    };
    end(&groups, GRACE, has_ended);
}

/// Asks groups to end, waits until all have or the time is over, and kills what is left of them.
pub(crate) fn end(groups: &[Pid], grace: Duration, has_ended: fn(Pid) -> bool) {
    for group in groups {
        // A group that is gone already needs no signal.
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let deadline = Instant::now() + grace;
    while !groups.iter().all(|group| has_ended(*group)) && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
    for group in groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// Whether the first process of a group has ended. What it left behind in the group is killed then.
fn has_ended(group: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that its owner has reaped it.
    waitid(WaitId::Pid(group), options).map_or(true, |status| status.is_some())
}

#[cfg(test)]
mod tests {
    use super::{Purpose, is_stopped};

    #[test]
    fn a_shutdown_stops_readers_first() {
        let check = |stopping, expect: [bool; 2]| {
            assert_eq!([Purpose::Read, Purpose::Write].map(|one| is_stopped(stopping, one)), expect);
        };
        check(None, [false, false]);
        check(Some(Purpose::Read), [true, false]);
        check(Some(Purpose::Write), [true, true]);
    }
}
