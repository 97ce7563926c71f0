//! A child process in a group of its own, which ends with all that it started.
//!
//! **Invariant:** nothing of a group is left once its first process was seen to have ended, or nobody holds the [`Group`] any more.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A child that takes its group with it.
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// How it ended. Without it the child is not reaped, so that its number, and that of its group, is still its own.
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a program as the first of a group.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        Ok(Self { child, status: None })
    }

    /// Its stdin, stdout and stderr: those that are pipes, and were not taken before.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// How it ended, if it has; what it started and left behind ends with it.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() && waitid(WaitId::Pid(self.pid()?), options)?.is_some() {
            self.end()?;
        }
        Ok(self.status)
    }

    /// Kills what is left of the group, and reaps the child.
    fn end(&mut self) -> io::Result<()> {
        // Gone already is fine.
        let _ = kill_process_group(self.pid()?, Signal::KILL);
        self.status = Some(self.child.wait()?);
        Ok(())
    }

    fn pid(&self) -> io::Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("the child has no number"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Nobody is left who could be told.
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
        assert!(waitid(WaitId::Pid(group.pid().unwrap()), exited).unwrap().is_some());
        drop(group);
        all_are_gone(stdout);
    }
}
