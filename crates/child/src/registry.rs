//! Registry of the child processes: the running process groups, all of which a shutdown can end, and the
//! adopted orphans.
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

/// Default time that a group has to end after `SIGINT`.
pub const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Time that a sweep waits for killed orphans to end.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(1);

/// The purpose of a child process, which decides when a shutdown ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// The child only reads: a shutdown ends it at once.
    Read,
    /// The child may change something, and exits cleanly when it gets `SIGINT`: a shutdown sends the signal
    /// at once, and the child has its grace period to exit.
    InterruptibleWrite,
    /// The child changes something: a shutdown lets it finish, unless the shutdown is forced.
    Write,
}

/// How a group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// The purpose, which decides when a shutdown ends the group.
    pub purpose: Purpose,
    /// Time between `SIGINT` and `SIGKILL`.
    pub grace: Duration,
}

impl From<Purpose> for GroupSettings {
    fn from(purpose: Purpose) -> Self {
        Self { purpose, grace: GRACE_PERIOD }
    }
}

/// The signals that end a group, in the order in which they are sent.
///
/// `SIGTERM` is for programs that do not handle `SIGINT`, such as the background processes of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndSignal {
    /// `SIGINT`, at once.
    Interrupt,
    /// `SIGTERM`, after half of the grace period.
    Terminate,
    /// `SIGKILL`, at the end of the grace period.
    Kill,
}

impl EndSignal {
    /// The last signal that is due after this time.
    pub fn after(elapsed: Duration, grace: Duration) -> Self {
        if elapsed >= grace {
            Self::Kill
        } else if elapsed >= grace / 2 {
            Self::Terminate
        } else {
            Self::Interrupt
        }
    }

    /// Sends the signal to a group.
    pub fn send(self, group: Pid) {
        let signal = match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
        };
        // A group whose processes have all ended needs no signal.
        let _ = kill_process_group(group, signal);
    }
}

/// The children of this process.
pub(crate) static CHILDREN: Children = Children::new();

/// The registry behind its lock, which is held while a child is started or reaped.
pub(crate) struct Children(Mutex<ChildRegistry>);

struct ChildRegistry {
    /// Groups by the id of their first process.
    groups: BTreeMap<i32, GroupEntry>,
    /// Groups up to this purpose are being ended, and no new groups of these purposes are started.
    stopping: Option<Purpose>,
    watchdog: Watchdog,
    /// Whether this process adopts orphans once it has started its first child.
    adopts_orphans: bool,
    /// This process as the parent of orphans; set when the first child is started.
    adoption: Option<Adoption>,
    /// Orphans that were killed and did not end within a sweep. Later sweeps do not wait for them.
    lingering: BTreeSet<i32>,
}

struct GroupEntry {
    settings: GroupSettings,
    /// The last signal that a shutdown sent.
    sent: Option<EndSignal>,
    /// The start time of the first process, in clock ticks since boot; 0 if it is unknown.
    started: u64,
}

impl ChildRegistry {
    /// The groups whose purpose is at most `purpose`.
    fn up_to(&self, purpose: Purpose) -> Vec<Pid> {
        let chosen = self.groups.iter().filter(|(_, entry)| entry.settings.purpose <= purpose);
        chosen.filter_map(|(group, _)| Pid::from_raw(*group)).collect()
    }

    /// Sends the groups up to this purpose the signals that are due after `elapsed`. Returns whether a group
    /// is left that has not ended and has not been killed.
    fn send_due(&mut self, purpose: Purpose, elapsed: Duration, max_grace: Duration) -> bool {
        let mut is_pending = false;
        for (id, entry) in self.groups.iter_mut().filter(|(_, entry)| entry.settings.purpose <= purpose) {
            let Some(group) = Pid::from_raw(*id) else { continue };
            // The rest of a group whose first process has ended is killed.
            let due = if has_ended(group) {
                EndSignal::Kill
            } else {
                EndSignal::after(elapsed, entry.settings.grace.min(max_grace))
            };
            if entry.sent < Some(due) {
                entry.sent = Some(due);
                due.send(group);
            }
            is_pending |= due < EndSignal::Kill;
        }
        is_pending
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
    /// The lock is held from the check to the registration: a shutdown ends this group or prevents its start,
    /// and a sweep never treats it as an orphan.
    pub(crate) fn start(&self, command: &mut Command, settings: GroupSettings) -> io::Result<Child> {
        let mut registry = self.lock();
        if is_stopped(registry.stopping, settings.purpose) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "shutting down"));
        }
        if registry.adopts_orphans && registry.adoption.is_none() {
            registry.adoption = Adoption::begin();
        }
        let groups = registry.groups.iter();
        let groups = groups.map(|(id, entry)| (*id, entry.settings.grace)).collect();
        // The watchdog starts before the first child.
        registry.watchdog.ensure(&groups);
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        let started = registry.adoption.as_ref().map_or(0, |_| Adoption::start_time(group));
        registry.groups.insert(group.as_raw_nonzero().get(), GroupEntry { settings, sent: None, started });
        registry.watchdog.add(group, settings.grace);
        Ok(child)
    }

    /// Reaps the first process of a group if it has ended. At the same time, removes the group from the
    /// registry.
    pub(crate) fn reap(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let group = Pid::from_child(child);
        let mut registry = self.lock();
        if !has_ended(group) {
            return Ok(None);
        }
        registry.groups.remove(&group.as_raw_nonzero().get());
        // The group is removed before the child is reaped, so that the watchdog never signals an id that may
        // belong to another process.
        registry.watchdog.remove(group);
        child.try_wait()
    }

    pub(crate) fn is_stopping(&self, purpose: Purpose) -> bool {
        is_stopped(self.lock().stopping, purpose)
    }

    /// Ends all groups up to a purpose, each within its grace period or `max_grace`, whichever is shorter.
    pub(crate) fn stop(&self, purpose: Purpose, max_grace: Duration) {
        let began = Instant::now();
        {
            let Some(mut registry) = self.lock_within(GRACE_PERIOD) else { return };
            registry.stopping = registry.stopping.max(Some(purpose));
            registry.send_due(purpose, Duration::ZERO, max_grace);
        }
        // From here on, no groups of this purpose are started.
        while self.lock().send_due(purpose, began.elapsed(), max_grace) {
            thread::sleep(POLL_INTERVAL);
        }
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

    /// Kills and reaps orphans until none are left or [`SWEEP_TIMEOUT`] has passed.
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

/// Lets the next child start a watchdog process, which ends all groups when this process dies, even by `SIGKILL`.
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

/// Makes this process the parent of every descendant whose own parent has ended. Such a descendant that has
/// left its process group is ended when the groups that may have started it have ended, or in [`shut_down`].
///
/// Adoption takes effect when the first child is started. Processes that are already children of this
/// process, such as those of a shell that executed it, are left alone, and so are children in our own process
/// group. Without `/proc`, and on systems other than Linux, nothing is adopted.
pub fn adopt_orphans() {
    CHILDREN.lock().adopts_orphans = true;
}

/// Whether a shutdown ends children of this purpose.
pub fn is_stopping(purpose: Purpose) -> bool {
    CHILDREN.is_stopping(purpose)
}

/// Ends all groups whose purpose is at most `purpose`, and prevents new groups: sends `SIGINT`, then
/// `SIGTERM` after half of the group's grace period, and `SIGKILL` at its end.
///
/// Stopping [`Purpose::Write`] stops the others as well. Blocks until all these groups have ended or are
/// killed; their owners reap them.
pub fn stop(purpose: Purpose) {
    CHILDREN.stop(purpose, Duration::MAX);
}

/// Ends every child before this process exits: all groups, within [`GRACE_PERIOD`], and processes that have
/// left their group.
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
    use super::{Children, EndSignal, GroupEntry, GroupSettings, Purpose, has_ended, is_stopped};
    use rustix::process::Pid;
    use std::io::{self, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, ExitStatus, Stdio};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    const TEST_TIMEOUT: Duration = Duration::from_mins(1);

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600");
        command
    }

    fn shell(script: &str) -> Command {
        // Background jobs of a shell ignore `SIGINT`, and a shell cannot trap a signal that was ignored when
        // it started.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]).stdout(Stdio::piped());
        command
    }

    /// A child that has printed its first byte.
    fn started(children: &Children, command: &mut Command, settings: GroupSettings) -> Child {
        let mut child = children.start(command, settings).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    /// Waits until a child has ended, and reaps it; the signal that ended it.
    fn reap(children: &Children, child: &mut Child) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt as _;
        reap_status(children, child).signal()
    }

    /// Whether a child got a signal to end: `SIGINT`, or `SIGTERM` if it ignores `SIGINT` as a background job
    /// of a shell does.
    fn was_terminated(signal: Option<i32>) -> bool {
        matches!(signal, Some(2 | 15))
    }

    fn reap_status(children: &Children, child: &mut Child) -> ExitStatus {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = children.reap(child).unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the child has not ended");
            thread::yield_now();
        }
    }

    #[test]
    fn a_shutdown_stops_readers_first() {
        let all = [Purpose::Read, Purpose::InterruptibleWrite, Purpose::Write];
        let check = |stopping, expect: [bool; 3]| {
            assert_eq!(all.map(|one| is_stopped(stopping, one)), expect);
        };
        check(None, [false, false, false]);
        check(Some(Purpose::Read), [true, false, false]);
        check(Some(Purpose::InterruptibleWrite), [true, true, false]);
        check(Some(Purpose::Write), [true, true, true]);
    }

    #[test]
    fn signals_become_stronger_during_the_grace_period() {
        let grace = Duration::from_secs(10);
        let check = |seconds, expect| {
            assert_eq!(EndSignal::after(Duration::from_secs(seconds), grace), expect, "{seconds} s");
        };
        check(0, EndSignal::Interrupt);
        check(4, EndSignal::Interrupt);
        check(5, EndSignal::Terminate);
        check(9, EndSignal::Terminate);
        check(10, EndSignal::Kill);
        assert_eq!(EndSignal::after(Duration::ZERO, Duration::ZERO), EndSignal::Kill);
    }

    #[test]
    fn each_group_has_its_own_grace_period() {
        let children = Children::new();
        let settings = |grace| GroupSettings { purpose: Purpose::InterruptibleWrite, grace };
        let mut deaf = shell("trap '' INT TERM; echo; sleep 600");
        let mut saving = shell("trap 'exit 7' INT; echo; while :; do sleep 0.01; done");
        let mut deaf = started(&children, &mut deaf, settings(Duration::from_millis(20)));
        let mut saving = started(&children, &mut saving, settings(TEST_TIMEOUT));
        let mut writer = children.start(&mut sleeper(), Purpose::Write.into()).unwrap();
        children.stop(Purpose::InterruptibleWrite, Duration::MAX);
        assert_eq!(reap(&children, &mut deaf), Some(9));
        assert_eq!(reap_status(&children, &mut saving).code(), Some(7));
        assert!(children.reap(&mut writer).unwrap().is_none());
        children.stop(Purpose::Write, Duration::ZERO);
        assert_eq!(reap(&children, &mut writer), Some(9), "the last stop limits the grace period");
    }

    #[test]
    fn a_command_is_not_even_started_once_a_shutdown_ends_its_purpose() {
        let children = Children::new();
        children.stop(Purpose::Read, TEST_TIMEOUT);
        let error = children.start(&mut Command::new("/does/not/exist"), Purpose::Read.into()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let mut writer = children.start(&mut sleeper(), Purpose::Write.into()).unwrap();
        children.stop(Purpose::Read, TEST_TIMEOUT);
        assert!(children.reap(&mut writer).unwrap().is_none(), "a stop of readers spares writers");
        children.stop(Purpose::Write, TEST_TIMEOUT);
        assert!(was_terminated(reap(&children, &mut writer)));
        let error = children.start(&mut Command::new("/does/not/exist"), Purpose::Write.into()).unwrap_err();
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
            registry
                .groups
                .insert(group, GroupEntry { settings: Purpose::Read.into(), sent: None, started: 0 });
            drop(registry);
            stopping.join().unwrap();
            assert!(was_terminated(reap(&children, &mut child)));
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
        let mut child = children.start(&mut Command::new("true"), Purpose::Read.into()).unwrap();
        let group = Pid::from_child(&child);
        while !has_ended(group) {
            thread::yield_now();
        }
        assert_eq!(children.lock().up_to(Purpose::Read), [group]);
        assert!(children.reap(&mut child).unwrap().is_some());
        assert_eq!(children.lock().up_to(Purpose::Write), []);
    }
}
