//! Child processes in their own process groups, which end together with all their descendants.
//!
//! **Invariant:** no process of a group is left after the exit of its first process was observed, its
//! [`ProcessGroup`] was dropped, or this process has ended, even by `SIGKILL` ([`enable_watchdog`]). A
//! process that has left its group is killed with the last group that may have started it
//! ([`adopt_orphans`]), unless this process is killed first.

mod identity;
mod interpreter;
mod orphans;
mod pipe;
mod proc;
mod registry;
mod watchdog;

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, prlimit};

pub use identity::ProcessIdentity;
pub use pipe::DeadlineReader;
pub use registry::{
    GRACE_PERIOD, GroupSettings, Purpose, adopt_orphans, enable_watchdog, is_stopping, retire_watchdog,
    shut_down, stop,
};
pub use watchdog::{WATCHDOG_ARGUMENT, watch};

use orphans::SweepScope;
use registry::{CHILDREN, EndSignal};

/// Interval at which the state of a child is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A child process and its process group, which is killed when the child ends or this value is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    /// The exit status; `None` until the child is reaped. Until then, no other process can get the id of the
    /// child or of its group.
    status: Option<ExitStatus>,
    grace: Duration,
}

impl ProcessGroup {
    /// Starts a program that only reads ([`Purpose::Read`]) as the first process of a new group.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::start_for(command, Purpose::Read.into())
    }

    /// Starts a program as the first process of a new group. Fails with [`io::ErrorKind::Interrupted`] during
    /// a shutdown ([`stop`]).
    pub fn start_for(command: &mut Command, settings: GroupSettings) -> io::Result<Self> {
        let child =
            CHILDREN.start(command, settings).map_err(|error| interpreter::explain(command, error))?;
        Ok(Self { child, status: None, grace: settings.grace })
    }

    /// Takes those of stdin, stdout and stderr that are pipes and have not been taken yet.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// The exit status if the child has ended. In that case, the rest of its group is killed.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() && waitid(WaitId::Pid(self.pid()), options)?.is_some() {
            self.kill_and_reap()?;
        }
        Ok(self.status)
    }

    /// Waits until the child ends or the deadline passes; `None` means that it is still running.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        self.wait_while(|| Instant::now() < deadline)
    }

    /// Waits until the child ends or `is_wanted` returns false; `None` means that it is still running.
    pub fn wait_while(&mut self, mut is_wanted: impl FnMut() -> bool) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            if !is_wanted() {
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Limits the memory of the child: its heap and private writable mappings, in bytes. Files that it maps
    /// for reading do not count.
    ///
    /// The limit is set right after the start. The child can exceed it only before it is set.
    #[cfg(target_os = "linux")]
    pub fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        prlimit(Some(self.pid()), Resource::Data, limit)?;
        Ok(())
    }

    /// Limits the memory of the child; not available on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn limit_memory(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    /// Ends the group within its grace period: sends `SIGINT` at once, `SIGTERM` after half of the period,
    /// and `SIGKILL` at its end.
    pub fn terminate(self) -> io::Result<()> {
        let grace = self.grace;
        self.terminate_within(grace)
    }

    /// Ends the group as [`Self::terminate`] does, with a different grace period.
    pub fn terminate_within(mut self, grace: Duration) -> io::Result<()> {
        let began = Instant::now();
        for (signal, until) in [(EndSignal::Interrupt, grace / 2), (EndSignal::Terminate, grace)] {
            if self.status.is_none() {
                signal.send(self.pid());
                self.wait_until(began + until)?;
            }
        }
        // Dropping kills the group.
        Ok(())
    }

    /// Kills the rest of the group, reaps the child, and then ends orphans that have left the group.
    fn kill_and_reap(&mut self) -> io::Result<()> {
        EndSignal::Kill.send(self.pid());
        let status = loop {
            match CHILDREN.reap(&mut self.child)? {
                Some(status) => break status,
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        self.status = Some(status);
        CHILDREN.sweep(SweepScope::Unowned);
        Ok(())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.status.is_none() {
            // An error is ignored, because it can no longer be reported to a caller.
            let _ = self.kill_and_reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ProcessGroup, WaitId, WaitIdOptions, waitid};
    use std::io::Read as _;
    use std::process::{ChildStdout, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A shell that runs a script, and the stdout that it shares with its child processes.
    fn shell(script: &str) -> (ProcessGroup, ChildStdout) {
        // Background jobs of a shell ignore `SIGINT`, and a shell cannot trap a signal that was ignored when
        // it started.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]).stdout(Stdio::piped());
        let mut group = ProcessGroup::start(&mut command).unwrap();
        let stdout = group.take_pipes().1.unwrap();
        (group, stdout)
    }

    /// Returns once no process holds the pipe open.
    fn all_are_gone(mut stdout: ChildStdout) {
        stdout.read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn a_child_that_ends_takes_its_background_processes_with_it() {
        let (mut group, stdout) = shell("sleep 600 & exit 3");
        let status = loop {
            match group.try_wait().unwrap() {
                Some(status) => break status,
                None => thread::yield_now(),
            }
        };
        assert_eq!(status.code(), Some(3));
        all_are_gone(stdout);
        assert_eq!(group.try_wait().unwrap(), Some(status), "the status stays available");
    }

    #[test]
    fn waiting_ends_with_the_deadline_or_the_child() {
        let (mut group, _stdout) = shell("sleep 600");
        let now = Instant::now();
        assert_eq!(group.wait_until(now).unwrap(), None);
        assert_eq!(group.wait_until(now + Duration::from_millis(20)).unwrap(), None);
        let (mut group, _stdout) = shell("exit 4");
        let status = group.wait_until(now + Duration::from_mins(1)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(4));
    }

    #[test]
    fn waiting_ends_when_the_result_is_not_wanted_any_more() {
        let (mut group, _stdout) = shell("sleep 600");
        let mut checks = 0;
        let status = group.wait_while(|| {
            checks += 1;
            checks < 3
        });
        assert_eq!((status.unwrap(), checks), (None, 3));
        let (mut group, _stdout) = shell("exit 4");
        let status = group.wait_while(|| true).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(4));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_limited() {
        let script = "read go; dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null";
        let mut command = Command::new("sh");
        let mut group = ProcessGroup::start(command.args(["-c", script]).stdin(Stdio::piped())).unwrap();
        group.limit_memory(64 << 20).unwrap();
        drop(group.take_pipes());
        let status = group.wait_until(Instant::now() + Duration::from_mins(1)).unwrap().unwrap();
        assert!(!status.success(), "{status}");
    }

    /// The output of a script after its first byte, until its group has ended.
    fn printed_at_its_end(script: &str, end: impl FnOnce(ProcessGroup) -> std::io::Result<()>) -> String {
        let (group, mut stdout) = shell(script);
        stdout.read_exact(&mut [0]).unwrap();
        end(group).unwrap();
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_group_gets_time_to_end_before_it_is_killed() {
        let endless = "echo; while :; do sleep 0.01; done";
        let saving = format!("trap 'echo saved; exit' INT; {endless}");
        let long = Duration::from_mins(1);
        assert_eq!(printed_at_its_end(&saving, |group| group.terminate_within(long)), "saved\n");
        let old = format!("trap '' INT; trap 'echo ended; exit' TERM; {endless}");
        assert_eq!(printed_at_its_end(&old, ProcessGroup::terminate), "ended\n", "`SIGTERM` follows");
        let deaf = "trap '' INT TERM; sleep 600 & echo; wait";
        let short = Duration::from_millis(20);
        assert_eq!(printed_at_its_end(deaf, |group| group.terminate_within(short)), "");
    }

    #[test]
    fn a_dropped_child_is_killed_with_its_descendants() {
        let (mut group, mut stdout) = shell("sleep 600 & echo; wait");
        stdout.read_exact(&mut [0]).unwrap();
        assert_eq!(group.try_wait().unwrap(), None);
        drop(group);
        all_are_gone(stdout);
    }

    #[test]
    fn background_processes_are_killed_on_drop_even_if_the_exit_was_not_observed() {
        let (group, stdout) = shell("sleep 600 & exit 0");
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        assert!(waitid(WaitId::Pid(group.pid()), exited).unwrap().is_some());
        drop(group);
        all_are_gone(stdout);
    }
}
