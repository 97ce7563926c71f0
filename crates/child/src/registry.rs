//! Registry of the child processes: the process groups that were started and still run, so that a shutdown
//! can end all of them, and the orphans that were adopted.
//!
//! The registry is global because a process has one set of children. Its lock is held while a child is
//! started or reaped. **Invariant:** a registered group is not reaped, so that its id is not reused and a
//! signal cannot reach another process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::POLL_INTERVAL;
use crate::orphans::{Adoption, RunningGroup, SweepFilter, SweepResult, SweepScope};
use crate::watchdog::Watchdog;

/// Time between `SIGTERM` and `SIGKILL` for a group.
pub const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Time that a sweep waits for killed orphans to end.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(1);

/// The purpose of a child process, which decides when a shutdown ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// The child only reads: a shutdown ends it at once.
    Read,
    /// The child changes something: a shutdown lets it finish, unless the shutdown is forced.
    Write,
}

/// The children of this process.
pub(crate) static CHILDREN: Children = Children::new();

/// The registry behind its lock, which is held while a child is started or reaped.
pub(crate) struct Children(Mutex<ChildRegistry>);

struct ChildRegistry {
    /// Groups by the id of their first process.
    groups: BTreeMap<i32, GroupEntry>,
    /// Groups up to this purpose are being ended, and no new ones are started.
    stopping: Option<Purpose>,
    watchdog: Watchdog,
    /// Whether orphans are adopted from the first child on.
    adopts_orphans: bool,
    /// Set with the first child.
    adoption: Option<Adoption>,
    /// Orphans that were killed and did not end within a sweep. Later sweeps do not wait for them.
    lingering: BTreeSet<i32>,
}

struct GroupEntry {
    purpose: Purpose,
    /// The start time of the first process, in clock ticks since boot; 0 if it is unknown.
    started: u64,
}

impl ChildRegistry {
    /// The groups whose purpose is at most `purpose`.
    fn up_to(&self, purpose: Purpose) -> Vec<Pid> {
        let chosen = self.groups.iter().filter(|(_, entry)| entry.purpose <= purpose);
        chosen.filter_map(|(group, _)| Pid::from_raw(*group)).collect()
    }

    fn signal(&self, purpose: Purpose, signal: Signal) {
        for group in self.up_to(purpose) {
            // A group whose processes have all ended needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills and reaps the current orphans.
    fn sweep_once(&mut self, scope: SweepScope) -> SweepResult {
        let Some(adoption) = &self.adoption else { return SweepResult::default() };
        let running = |(id, entry): (&i32, &GroupEntry)| RunningGroup { id: *id, started: entry.started };
        let groups: Vec<RunningGroup> = self.groups.iter().map(running).collect();
        let swept = adoption.sweep(SweepFilter { groups: &groups, watchdog: self.watchdog.id(), scope });
        self.lingering.retain(|pid| !swept.reaped.contains(pid));
        swept
    }
}

impl Children {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(ChildRegistry {
            groups: BTreeMap::new(),
            stopping: None,
            watchdog: Watchdog::disabled(),
            adopts_orphans: false,
            adoption: None,
            lingering: BTreeSet::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, ChildRegistry> {
        self.0.lock()
    }

    /// Takes the lock if it is free within `timeout`: a start that hangs on an unresponsive file system holds
    /// it.
    fn lock_within(&self, timeout: Duration) -> Option<MutexGuard<'_, ChildRegistry>> {
        self.0.try_lock_for(timeout)
    }

    /// Starts a command as the first process of a group, unless a shutdown ends such groups
    /// ([`io::ErrorKind::Interrupted`]).
    ///
    /// The lock is held from the check to the registration: a shutdown ends this group or prevents it, and a
    /// sweep never takes it for an orphan.
    pub(crate) fn start(&self, command: &mut Command, purpose: Purpose) -> io::Result<Child> {
        let mut registry = self.lock();
        if is_stopped(registry.stopping, purpose) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "shutting down"));
        }
        if registry.adopts_orphans && registry.adoption.is_none() {
            registry.adoption = Adoption::begin();
        }
        let groups = registry.up_to(Purpose::Write);
        // The watchdog starts before the first child.
        registry.watchdog.ensure(&groups);
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        let started = registry.adoption.as_ref().map_or(0, |_| Adoption::start_time(group));
        registry.groups.insert(group.as_raw_nonzero().get(), GroupEntry { purpose, started });
        registry.watchdog.add(group);
        Ok(child)
    }

    /// Reaps the first process of a group if it has ended, and removes the group from the registry at the
    /// same time.
    pub(crate) fn reap(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let group = Pid::from_child(child);
        let mut registry = self.lock();
        if !has_ended(group) {
            return Ok(None);
        }
        registry.groups.remove(&group.as_raw_nonzero().get());
        // Before the child is reaped: the watchdog never signals an id that may belong to another process.
        registry.watchdog.remove(group);
        child.try_wait()
    }

    pub(crate) fn is_stopping(&self, purpose: Purpose) -> bool {
        is_stopped(self.lock().stopping, purpose)
    }

    pub(crate) fn stop(&self, purpose: Purpose, grace: Duration) {
        let deadline = Instant::now() + grace;
        {
            let Some(mut registry) = self.lock_within(GRACE_PERIOD) else { return };
            registry.stopping = registry.stopping.max(Some(purpose));
            registry.signal(purpose, Signal::TERM);
        }
        // From here on there are no new groups of this purpose.
        while !self.have_ended(purpose) && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        self.lock().signal(purpose, Signal::KILL);
    }

    fn have_ended(&self, purpose: Purpose) -> bool {
        self.lock().up_to(purpose).into_iter().all(has_ended)
    }

    /// Ends all groups, and then all orphans.
    pub(crate) fn shut_down(&self, grace: Duration) {
        self.stop(Purpose::Write, grace);
        let deadline = Instant::now() + SWEEP_TIMEOUT;
        // A descendant becomes an orphan once the process that started it is dead.
        while !self.have_ended(Purpose::Write) && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        self.sweep(SweepScope::All);
    }

    /// Kills and reaps orphans until there are none, or [`SWEEP_TIMEOUT`] has passed.
    pub(crate) fn sweep(&self, scope: SweepScope) {
        let deadline = Instant::now() + SWEEP_TIMEOUT;
        loop {
            let mut registry = self.lock();
            let swept = registry.sweep_once(scope);
            let is_pending = swept.killed.iter().any(|pid| !registry.lingering.contains(pid));
            // A process that has just ended may have left children, which are new orphans.
            if !is_pending && swept.reaped.is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                registry.lingering.extend(swept.killed);
                return;
            }
            drop(registry);
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Starts a watchdog process with the first child from now on: it ends all groups when this process dies,
/// even by `SIGKILL`.
///
/// The watchdog is this executable with [`crate::WATCHDOG_ARGUMENT`] as its only argument, which must call
/// [`crate::watch`].
pub fn enable_watchdog() {
    CHILDREN.lock().watchdog.enable();
}

/// Ends the watchdog process and all orphans before `exec` replaces this program. No child may be running.
pub fn retire_watchdog() {
    CHILDREN.sweep(SweepScope::All);
    CHILDREN.lock().watchdog.retire();
}

/// Makes this process the parent of every descendant whose own parent has ended, and ends those that have
/// left their process group: when the groups that may have started them have ended, and in [`shut_down`].
///
/// It takes effect with the first child. Processes that are already children of this process, such as those
/// of a shell that executed it, are left alone, and so are children in our own process group. Without
/// `/proc`, and on systems other than Linux, nothing is adopted.
pub fn adopt_orphans() {
    CHILDREN.lock().adopts_orphans = true;
}

/// Whether a shutdown ends children of this purpose.
pub fn is_stopping(purpose: Purpose) -> bool {
    CHILDREN.is_stopping(purpose)
}

/// Ends all groups whose purpose is at most `purpose`, and prevents new ones: sends `SIGTERM`, waits up to
/// [`GRACE_PERIOD`], and kills the rest.
///
/// Stopping [`Purpose::Write`] stops [`Purpose::Read`] as well. Blocks until all are killed; their owners
/// reap them.
pub fn stop(purpose: Purpose) {
    CHILDREN.stop(purpose, GRACE_PERIOD);
}

/// Ends every child before this process exits: all groups, and processes that have left their group.
pub fn shut_down() {
    CHILDREN.shut_down(GRACE_PERIOD);
}

fn is_stopped(stopping: Option<Purpose>, purpose: Purpose) -> bool {
    stopping.is_some_and(|last| purpose <= last)
}

/// Whether the first process of a group has ended. The rest of the group is then killed.
fn has_ended(group: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that it is no longer our child.
    waitid(WaitId::Pid(group), options).map_or(true, |status| status.is_some())
}

#[cfg(test)]
mod tests {
    use super::{Children, GroupEntry, Purpose, has_ended, is_stopped};
    use rustix::process::Pid;
    use std::io;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    const TEST_TIMEOUT: Duration = Duration::from_mins(1);

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600");
        command
    }

    /// Waits until a child has ended, and reaps it.
    fn reap(children: &Children, child: &mut Child) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt as _;
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = children.reap(child).unwrap() {
                return status.signal();
            }
            assert!(Instant::now() < deadline, "the child has not ended");
            thread::yield_now();
        }
    }

    #[test]
    fn a_shutdown_stops_readers_first() {
        let check = |stopping, expect: [bool; 2]| {
            assert_eq!([Purpose::Read, Purpose::Write].map(|one| is_stopped(stopping, one)), expect);
        };
        check(None, [false, false]);
        check(Some(Purpose::Read), [true, false]);
        check(Some(Purpose::Write), [true, true]);
    }

    #[test]
    fn a_command_is_not_even_started_once_a_shutdown_ends_its_purpose() {
        let children = Children::new();
        children.stop(Purpose::Read, TEST_TIMEOUT);
        let error = children.start(&mut Command::new("/does/not/exist"), Purpose::Read).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let mut writer = children.start(&mut sleeper(), Purpose::Write).unwrap();
        children.stop(Purpose::Read, TEST_TIMEOUT);
        assert!(children.reap(&mut writer).unwrap().is_none(), "a stop of readers spares writers");
        children.stop(Purpose::Write, TEST_TIMEOUT);
        assert_eq!(reap(&children, &mut writer), Some(15));
        let error = children.start(&mut Command::new("/does/not/exist"), Purpose::Write).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_child_that_is_being_started_when_the_shutdown_begins_is_ended() {
        let children = Children::new();
        let (begin, begun) = mpsc::channel();
        thread::scope(|scope| {
            // Simulates `start`, halted between the start of the process and its registration.
            let mut registry = children.lock();
            let stopping = scope.spawn(|| {
                begin.send(()).unwrap();
                children.stop(Purpose::Write, TEST_TIMEOUT);
            });
            begun.recv().unwrap();
            let mut child = sleeper().process_group(0).spawn().unwrap();
            assert!(!stopping.is_finished(), "a shutdown waits for a start in progress");
            let group = Pid::from_child(&child).as_raw_nonzero().get();
            registry.groups.insert(group, GroupEntry { purpose: Purpose::Read, started: 0 });
            drop(registry);
            stopping.join().unwrap();
            assert_eq!(reap(&children, &mut child), Some(15));
        });
    }

    #[test]
    fn a_shutdown_does_not_wait_for_a_start_that_hangs() {
        let children = Children::new();
        let registry = children.lock();
        assert!(children.lock_within(Duration::from_millis(5)).is_none());
        drop(registry);
        assert!(children.lock_within(Duration::ZERO).is_some());
    }

    #[test]
    fn a_group_is_registered_until_it_is_reaped() {
        let children = Children::new();
        let mut child = children.start(&mut Command::new("true"), Purpose::Read).unwrap();
        let group = Pid::from_child(&child);
        while !has_ended(group) {
            thread::yield_now();
        }
        assert_eq!(children.lock().up_to(Purpose::Read), [group]);
        assert!(children.reap(&mut child).unwrap().is_some());
        assert_eq!(children.lock().up_to(Purpose::Write), []);
    }
}
