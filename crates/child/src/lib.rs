//! A child process in a group of its own, which ends with all that it started.
//!
//! **Invariant:** no process of a group is left once its first process was seen to have ended, its [`Group`] was dropped, or this process
//! has ended, even by `SIGKILL` ([`enable_watchdog`]). A process that has left its group ends with the last group that may have started it
//! ([`adopt_orphans`]), unless this process is killed before.

mod orphans;
mod pipe;
mod proc;
mod registry;
mod watchdog;

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit, prlimit};

pub use pipe::DeadlineReader;
pub use registry::{
    GRACE, Purpose, adopt_orphans, enable_watchdog, is_stopping, retire_watchdog, shut_down, stop,
};
pub use watchdog::{WATCHDOG_ARGUMENT, watch};

use orphans::SweepScope;
use registry::CHILDREN;

/// Interval between two checks whether a child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A child that takes its group with it.
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// How it ended. Without it the child is not reaped, so that its number, and that of its group, is still its own.
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a program that only reads as the first of a group.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::start_for(command, Purpose::Read)
    }

    /// Starts a program as the first of a group. Fails with [`io::ErrorKind::Interrupted`] during a shutdown ([`stop`]).
    pub fn start_for(command: &mut Command, purpose: Purpose) -> io::Result<Self> {
        Ok(Self { child: CHILDREN.start(command, purpose)?, status: None })
    }

    /// Its stdin, stdout and stderr: those that are pipes, and were not taken before.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// How it ended, if it has; what it started and left behind ends with it.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() && waitid(WaitId::Pid(self.pid()), options)?.is_some() {
            self.end()?;
        }
        Ok(self.status)
    }

    /// Waits until the child ends or the deadline passes; `None` means that it is still running.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Limits the memory of the child: its heap and private writable mappings, in bytes. Files that it maps for reading do not count.
    ///
    /// The limit is set right after the start, so that a child could allocate more only in its first moments.
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

    /// Asks the group to end (`SIGTERM`), waits for up to `grace`, and kills what is left (`SIGKILL`).
    pub fn terminate(mut self, grace: Duration) -> io::Result<()> {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid(), Signal::TERM);
            self.wait_until(Instant::now() + grace)?;
        }
        Ok(())
    }

    /// Kills what is left of the group and reaps the child, and then what has left the group.
    fn end(&mut self) -> io::Result<()> {
        // Gone already is fine.
        let _ = kill_process_group(self.pid(), Signal::KILL);
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

impl Drop for Group {
    fn drop(&mut self) {
        if self.status.is_none() {
            // There is no caller left to report an error to.
            let _ = self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, WaitId, WaitIdOptions, waitid};
    use std::io::Read as _;
    use std::process::{ChildStdout, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A shell with a script, and what all that it starts have as their stdout.
    fn shell(script: &str) -> (Group, ChildStdout) {
        let mut group = Group::start(Command::new("sh").args(["-c", script]).stdout(Stdio::piped())).unwrap();
        let stdout = group.take_pipes().1.unwrap();
        (group, stdout)
    }

    /// Returns once nobody holds it any more.
    fn all_are_gone(mut stdout: ChildStdout) {
        stdout.read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn one_that_ends_takes_along_what_it_left_behind() {
        let (mut group, stdout) = shell("sleep 600 & exit 3");
        let status = loop {
            match group.ended().unwrap() {
                Some(status) => break status,
                None => thread::yield_now(),
            }
        };
        assert_eq!(status.code(), Some(3));
        all_are_gone(stdout);
        assert_eq!(group.ended().unwrap(), Some(status), "it is told again");
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
    #[cfg(target_os = "linux")]
    fn memory_is_limited() {
        let script = "read go; dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null";
        let mut command = Command::new("sh");
        let mut group = Group::start(command.args(["-c", script]).stdin(Stdio::piped())).unwrap();
        group.limit_memory(64 << 20).unwrap();
        drop(group.take_pipes());
        let status = group.wait_until(Instant::now() + Duration::from_mins(1)).unwrap().unwrap();
        assert!(!status.success(), "{status}");
    }

    #[test]
    fn a_group_is_asked_to_end_before_it_is_killed() {
        let (group, mut stdout) = shell("trap 'echo asked; exit' TERM; echo; while :; do sleep 0.01; done");
        stdout.read_exact(&mut [0]).unwrap();
        group.terminate(Duration::from_mins(1)).unwrap();
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(text, "asked\n");
        let (group, mut stdout) = shell("trap '' TERM; sleep 600 & echo; wait");
        stdout.read_exact(&mut [0]).unwrap();
        group.terminate(Duration::from_millis(20)).unwrap();
        all_are_gone(stdout);
    }

    #[test]
    fn one_that_nobody_holds_is_killed_with_all_that_it_started() {
        let (mut group, mut stdout) = shell("sleep 600 & echo; wait");
        stdout.read_exact(&mut [0]).unwrap();
        assert_eq!(group.ended().unwrap(), None);
        drop(group);
        all_are_gone(stdout);
    }

    #[test]
    fn what_was_left_behind_is_killed_although_nobody_asked_how_it_ended() {
        let (group, stdout) = shell("sleep 600 & exit 0");
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        assert!(waitid(WaitId::Pid(group.pid()), exited).unwrap().is_some());
        drop(group);
        all_are_gone(stdout);
    }
}
