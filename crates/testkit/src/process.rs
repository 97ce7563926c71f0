//! A server process that ends with the process that started it.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The supervisor script.
const SUPERVISOR_SCRIPT: &str = include_str!("supervise.sh");
/// Timeout until a server listens. The timeout is long, because the machine may be busy.
const LISTEN_TIMEOUT: Duration = Duration::from_mins(1);
/// Number of lines at the end of a log that are shown.
const TAIL_LINES: usize = 20;

/// A running server. **Invariant:** the server ends when this value is dropped or this process ends, even by
/// SIGKILL.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    log: PathBuf,
    supervisor: Child,
}

/// The files that are kept when a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// The directory.
    Folder,
    /// No files: the directory is removed.
    Nothing,
}

impl Process {
    /// Starts a program in `folder`, with its output in a log there. The directory remains when the program
    /// ends.
    ///
    /// # Panics
    ///
    /// If the program does not start.
    pub fn start(program: &Path, arguments: &[String], folder: &Path) -> Self {
        Self::try_start(program, arguments, folder, Leftover::Folder)
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()))
    }

    /// Starts a program in `folder`, with its output in a log there.
    pub fn try_start(
        program: &Path,
        arguments: &[String],
        folder: &Path,
        leftover: Leftover,
    ) -> io::Result<Self> {
        let log = folder.join(program.file_name().unwrap_or_default()).with_extension("log");
        let output = File::options().create(true).append(true).open(&log)?;
        let removed = match leftover {
            Leftover::Folder => Path::new(""),
            Leftover::Nothing => folder,
        };
        let supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR_SCRIPT, "supervise"])
            .arg(removed)
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        Ok(Self { program: program.to_owned(), log, supervisor })
    }

    /// The name of the program.
    pub fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether the process is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.supervisor.try_wait(), Ok(None))
    }

    /// Stops the server with `SIGSTOP`: its connections stay open, and nothing responds.
    ///
    /// # Panics
    ///
    /// If the server is not running.
    pub fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Continues a server that was suspended.
    ///
    /// # Panics
    ///
    /// If the server is not running.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let supervisor = self.supervisor.id();
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
        let children = children.expect("the supervisor runs");
        // A program may be a link to its executable.
        let program = fs::canonicalize(&self.program).ok();
        let is_server = |pid: &&str| fs::read_link(format!("/proc/{pid}/exe")).ok() == program;
        let server = children.split_whitespace().find(is_server).expect("the server runs");
        let sent = Command::new("kill").args([signal, server]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send {signal} to {server}");
    }

    /// Waits until the server listens on a port of the loopback interface.
    ///
    /// # Panics
    ///
    /// If the server ends or does not listen within a minute; the message contains the end of its log.
    pub fn wait_for(&mut self, port: u16) {
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(self.is_running(), "the server ended:\n{}", self.log_tail());
            assert!(start.elapsed() < LISTEN_TIMEOUT, "the server does not listen:\n{}", self.log_tail());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of the log of the server.
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // At the end of its stdin, the supervisor kills the server and exits.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// The program that an environment variable names; `cargo xtask test` sets it.
///
/// # Panics
///
/// If the variable is not set or does not name a file; the message names the remedy.
pub fn tool(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test`, or set it"));
    assert!(path.is_file(), "{variable} does not name a file: run `cargo xtask setup`");
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::thread;
    use std::time::Duration;

    use super::{Leftover, Process};
    use crate::{Scratch, free_port};

    fn start(script: &str, leftover: Leftover) -> (Scratch, Process) {
        let scratch = Scratch::new();
        let arguments = ["-c".to_owned(), script.to_owned()];
        let process = Process::try_start(Path::new("/bin/sh"), &arguments, scratch.path(), leftover);
        (scratch, process.unwrap())
    }

    #[test]
    fn a_server_ends_on_drop_and_its_directory_is_removed_if_requested() {
        for leftover in [Leftover::Folder, Leftover::Nothing] {
            let (scratch, process) = start("echo $$ > pid.new; mv pid.new pid; exec sleep 600", leftover);
            let pid = loop {
                match fs::read_to_string(scratch.path().join("pid")) {
                    Ok(pid) => break pid,
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            };
            let alive = || Command::new("kill").args(["-0", pid.trim()]).output().unwrap().status.success();
            assert!(alive());
            drop(process);
            assert!(!alive());
            assert_eq!(scratch.path().exists(), leftover == Leftover::Folder);
        }
    }

    #[test]
    #[should_panic(expected = "the server ended:\nno such thing")]
    fn the_log_of_a_server_that_exits_is_shown() {
        let (_scratch, mut process) = start("echo no such thing; exit 3", Leftover::Nothing);
        process.wait_for(free_port());
    }
}
