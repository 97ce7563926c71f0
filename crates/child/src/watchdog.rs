//! Watchdog: a helper process that outlives this process, and ends the process groups of this process if this
//! process is killed.
//!
//! This process holds the write end of a pipe to the watchdog. The kernel closes the pipe when this process
//! ends in any way. Until then, this process writes a line for each group that it starts (`+ID GRACE`, with
//! the grace period in milliseconds) and for each group that has ended (`-ID`). See
//! `docs/adr/0030-graceful-shutdown-and-child-processes.md`.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, test_kill_process_group};

use crate::POLL_INTERVAL;
use crate::registry::EndSignal;

/// The only argument of the watchdog process.
pub const WATCHDOG_ARGUMENT: &str = "__watch-children";

/// Handle of the watchdog process.
#[derive(Debug)]
pub struct Watchdog {
    is_enabled: bool,
    process: Option<Child>,
}

impl Watchdog {
    /// Never starts a watchdog: for tests, whose executable does not call [`watch`].
    pub const fn disabled() -> Self {
        Self { is_enabled: false, process: None }
    }

    /// The process id of the watchdog, if one is running.
    pub fn id(&self) -> Option<i32> {
        self.process.as_ref().map(|process| Pid::from_child(process).as_raw_nonzero().get())
    }

    /// Allows a watchdog to be started.
    pub fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Ends the watchdog process. Another watchdog is started with the next child.
    pub fn retire(&mut self) {
        if let Some(mut process) = self.process.take() {
            // `wait` first closes the stdin of the watchdog, which ends the process.
            let _ = process.wait();
        }
    }

    /// Starts the watchdog if none is running, and registers `groups`, the running groups.
    ///
    /// A failure to start the watchdog is ignored: without a watchdog, children still end in every regular
    /// exit of this process.
    pub fn ensure(&mut self, groups: &BTreeMap<i32, Duration>) {
        let is_running = self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)));
        if !self.is_enabled || is_running {
            return;
        }
        self.process = start().ok();
        for (group, grace) in groups {
            self.write(&added(*group, *grace));
        }
    }

    /// Registers a group that was started.
    pub fn add(&mut self, group: Pid, grace: Duration) {
        self.write(&added(group.as_raw_nonzero().get(), grace));
    }

    /// Removes a group that has ended.
    pub fn remove(&mut self, group: Pid) {
        self.write(&format!("-{}\n", group.as_raw_nonzero()));
    }

    fn write(&mut self, line: &str) {
        let Some(stdin) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) else { return };
        // Lines are short enough for an atomic write to a pipe. A watchdog that no longer reads is killed;
        // another one is started with the next child.
        if stdin.write_all(line.as_bytes()).is_err()
            && let Some(mut process) = self.process.take()
        {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The line for a group that was started.
fn added(group: i32, grace: Duration) -> String {
    format!("+{group} {}\n", grace.as_millis())
}

fn start() -> io::Result<Child> {
    // The running executable, even if its file was replaced.
    let own = PathBuf::from("/proc/self/exe");
    let own = if own.exists() { own } else { std::env::current_exe()? };
    let mut command = Command::new(own);
    // The watchdog has its own group, so that Ctrl-C does not reach it, and it holds none of our files open.
    command.arg(WATCHDOG_ARGUMENT).env_clear().current_dir("/").process_group(0);
    let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if let Some(stdin) = &process.stdin {
        fcntl_setfl(stdin, fcntl_getfl(stdin)? | OFlags::NONBLOCK)?;
    }
    Ok(process)
}

/// Main function of the watchdog process: reads until its input ends, then ends the groups that are still
/// registered.
pub fn watch(input: impl Read) {
    end_groups(running_groups(input));
}

/// Ends groups, each within its grace period.
fn end_groups(mut groups: BTreeMap<i32, Duration>) {
    let began = Instant::now();
    let mut sent: BTreeMap<i32, EndSignal> = BTreeMap::new();
    while !groups.is_empty() {
        groups.retain(|id, grace| {
            let group = Pid::from_raw(*id).filter(|group| test_kill_process_group(*group).is_ok());
            let Some(group) = group else { return false };
            let due = EndSignal::after(began.elapsed(), *grace);
            if sent.insert(*id, due) < Some(due) {
                due.send(group);
            }
            due < EndSignal::Kill
        });
        thread::sleep(POLL_INTERVAL);
    }
}

/// The groups that were started and have not ended when the input ends, with their grace periods.
fn running_groups(input: impl Read) -> BTreeMap<i32, Duration> {
    let mut groups = BTreeMap::new();
    for line in BufReader::new(input).lines().map_while(Result::ok) {
        // The ids 0 and 1 would signal our own group or every process.
        let id = |text: &str| text.parse::<i32>().ok().filter(|id| *id > 1);
        if let Some(started) = line.strip_prefix('+')
            && let Some((group, grace)) = started.split_once(' ')
            && let (Some(group), Ok(grace)) = (id(group), grace.parse())
        {
            groups.insert(group, Duration::from_millis(grace));
        } else if let Some(group) = line.strip_prefix('-').and_then(id) {
            groups.remove(&group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{running_groups, watch};
    use crate::{ProcessGroup, Purpose};
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    #[test]
    fn groups_that_have_not_ended_are_listed() {
        let check = |lines: &str, expect: &str| {
            let groups = running_groups(lines.as_bytes()).into_iter();
            let groups: Vec<String> = groups.map(|(group, grace)| format!("{group} {grace:?}")).collect();
            assert_eq!(groups.join(", "), expect, "{lines}");
        };
        check("", "");
        check("+7 2000\n+9 60000\n-7\n", "9 60s");
        check("+7 5\n-7\n+7 6\n", "7 6ms");
        check("-7\n+2 0\n", "2 0ns");
        check("+1 5\n+0 5\n+-5 5\n+x 5\n7 5\n+8\n+8 x\n+99999999999 5\n", "");
    }

    #[test]
    fn a_group_that_ignores_signals_is_killed_at_the_end_of_its_grace_period() {
        let script = "trap '' INT TERM; sleep 600 & echo; wait";
        let mut command = Command::new("sh");
        let mut group = ProcessGroup::start_for(
            command.args(["-c", script]).stdout(Stdio::piped()),
            Purpose::Write.into(),
        )
        .unwrap();
        let mut stdout = group.take_pipes().1.unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        let line = format!("+{} 20\n", group.pid().as_raw_nonzero());
        watch(line.as_bytes());
        stdout.read_to_end(&mut Vec::new()).unwrap();
    }
}
