//! Identifies processes of this machine despite reused process ids, reboots and namespaces.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::proc::ProcessInfo;

/// Identifies a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
    /// Identifies the boot of the machine and the namespaces in which `pid` and `started` are valid; `None` if they
    /// are unknown.
    pub machine: Option<String>,
}

impl ProcessIdentity {
    /// The identity of this process.
    pub fn own() -> Self {
        let pid = std::process::id();
        // If `/proc` belongs to another PID namespace, it shows a different process id.
        let own =
            ProcessInfo::read(Path::new("/proc/self/stat")).filter(|own| u32::try_from(own.pid) == Ok(pid));
        let machine = own.as_ref().and_then(|_| machine());
        Self { pid, started: own.map_or(0, |own| own.started), machine }
    }

    /// Whether the process runs on this machine, in the namespaces of this process.
    pub fn is_local(&self) -> bool {
        let own = Self::own();
        own.machine.is_some() && own.machine == self.machine
    }

    /// Whether the process has certainly ended. `false` for processes that are not local, because their state
    /// is unknown.
    pub fn is_gone(&self) -> bool {
        if !self.is_local() {
            return false;
        }
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        // `/proc` may hide the processes of other users, but a signal reaches them.
        if test_kill_process(pid) == Err(Errno::SRCH) {
            return true;
        }
        let file = format!("/proc/{}/stat", self.pid);
        ProcessInfo::read(Path::new(&file))
            .is_some_and(|process| process.is_zombie || process.started != self.started)
    }
}

/// Identifies the boot of this machine, and the namespaces of this process.
fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = |name: &str| {
        let link = fs::read_link(Path::new("/proc/self/ns").join(name)).ok()?;
        link.to_str().map(str::to_owned)
    };
    // Kernels without time namespaces have a single boot time for all processes.
    Some(format!("{} {} {}", boot.trim(), namespace("pid")?, namespace("time").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::ProcessIdentity;

    #[test]
    fn this_process_exists() {
        let own = ProcessIdentity::own();
        assert!(own.machine.is_some() && own.started > 0, "{own:?}");
        assert!(!own.is_gone());
        let recycled = ProcessIdentity { started: own.started - 1, ..own.clone() };
        assert!(recycled.is_gone(), "its process id is used again");
        for machine in [None, Some("another".to_owned())] {
            assert!(!ProcessIdentity { machine, ..recycled.clone() }.is_gone(), "unknown");
        }
    }

    #[test]
    fn a_process_is_gone_once_it_has_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let started = crate::proc::ProcessInfo::read(stat.as_ref()).unwrap().started;
        let process = ProcessIdentity { pid: child.id(), started, ..ProcessIdentity::own() };
        assert!(!process.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.is_gone());
    }
}
