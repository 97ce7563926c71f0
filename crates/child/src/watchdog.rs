//! Watchdog: a helper process that outlives this one and ends its process groups if it is killed.
//!
//! This process holds the write end of a pipe to the watchdog, which the kernel closes however this process
//! ends. Until then it writes a line for each group that it starts (`+ID`) and for each that has ended
//! (`-ID`). See `docs/adr/0030-graceful-shutdown-and-child-processes.md`.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::POLL_INTERVAL;
use crate::registry::GRACE_PERIOD;

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

    /// Ends the watchdog process; the next child starts another one.
    pub fn retire(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Waiting closes its stdin first, which ends it.
            let _ = process.wait();
        }
    }

    /// Starts the watchdog if none is running, and registers `groups`, the running groups.
    ///
    /// A failure to start it is ignored: without a watchdog, children still end in every regular exit.
    pub fn ensure(&mut self, groups: &[Pid]) {
        let is_running = self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)));
        if !self.is_enabled || is_running {
            return;
        }
        self.process = start().ok();
        for group in groups {
            self.add(*group);
        }
    }

    /// Registers a group that was started.
    pub fn add(&mut self, group: Pid) {
        self.write(&format!("+{}\n", group.as_raw_nonzero()));
    }

    /// Removes a group that has ended.
    pub fn remove(&mut self, group: Pid) {
        self.write(&format!("-{}\n", group.as_raw_nonzero()));
    }

    fn write(&mut self, line: &str) {
        let Some(stdin) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) else { return };
        // Lines are short enough for an atomic write to a pipe. A watchdog that no longer reads is killed;
        // the next child starts another one.
        if stdin.write_all(line.as_bytes()).is_err()
            && let Some(mut process) = self.process.take()
        {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn start() -> io::Result<Child> {
    // The running executable, even if its file was replaced.
    let own = PathBuf::from("/proc/self/exe");
    let own = if own.exists() { own } else { std::env::current_exe()? };
    let mut command = Command::new(own);
    // Its own group, so that Ctrl-C does not reach it; it holds none of our files open.
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
    watch_with(input, GRACE_PERIOD);
}

fn watch_with(input: impl Read, grace: Duration) {
    let groups: Vec<Pid> = running_groups(input).into_iter().filter_map(Pid::from_raw).collect();
    end_groups(&groups, grace);
}

/// Sends `SIGTERM` to groups, waits until all have ended or `grace` has passed, and kills the rest.
fn end_groups(groups: &[Pid], grace: Duration) {
    let signal = |signal| {
        for group in groups {
            // A group that has already ended needs no signal.
            let _ = kill_process_group(*group, signal);
        }
    };
    signal(Signal::TERM);
    let deadline = Instant::now() + grace;
    let has_ended = |group: &Pid| test_kill_process_group(*group).is_err();
    while !groups.iter().all(has_ended) && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
    signal(Signal::KILL);
}

/// The groups that were started and have not ended when the input ends.
fn running_groups(input: impl Read) -> BTreeSet<i32> {
    let mut groups = BTreeSet::new();
    for line in BufReader::new(input).lines().map_while(Result::ok) {
        // 0 and 1 would be our own group and every process.
        let id = |text: &str| text.parse::<i32>().ok().filter(|id| *id > 1);
        if let Some(id) = line.strip_prefix('+').and_then(id) {
            groups.insert(id);
        } else if let Some(id) = line.strip_prefix('-').and_then(id) {
            groups.remove(&id);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{running_groups, watch_with};
    use crate::{ProcessGroup, Purpose};
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn groups_that_have_not_ended_are_listed() {
        let check = |lines: &str, expect: &[i32]| {
            assert_eq!(running_groups(lines.as_bytes()).into_iter().collect::<Vec<_>>(), expect, "{lines}");
        };
        check("", &[]);
        check("+7\n+9\n-7\n", &[9]);
        check("+7\n-7\n+7\n", &[7]);
        check("-7\n+2\n", &[2]);
        check("+1\n+0\n+-5\n+x\n7\n+99999999999\n", &[]);
    }

    #[test]
    fn a_group_that_ignores_sigterm_is_killed_at_the_end_of_the_input() {
        let script = "trap '' TERM; sleep 600 & echo; wait";
        let mut command = Command::new("sh");
        let mut group =
            ProcessGroup::start_for(command.args(["-c", script]).stdout(Stdio::piped()), Purpose::Write)
                .unwrap();
        let mut stdout = group.take_pipes().1.unwrap();
        stdout.read_exact(&mut [0]).unwrap();
        let line = format!("+{}\n", group.pid().as_raw_nonzero());
        watch_with(line.as_bytes(), Duration::from_millis(20));
        stdout.read_to_end(&mut Vec::new()).unwrap();
    }
}
