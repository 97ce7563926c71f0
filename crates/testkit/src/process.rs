//! A server that is a process of its own, and does not outlive the one who started it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a server for as long as somebody holds the other end of stdin: if that process dies, even by SIGKILL, the server
/// is ended, too.
const SUPERVISE: &str = r#"
trap '' HUP INT TERM
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(read -r _ <&3; kill -KILL "$server") >/dev/null 2>&1 &
watcher=$!
wait "$server"
status=$?
kill -KILL "$watcher" 2>/dev/null
exit "$status"
"#;
/// How long a server may take to listen: long, since the machine may be busy.
const LIMIT: Duration = Duration::from_mins(1);
/// How many lines of a log are told.
const LAST_WORDS: usize = 20;

/// Ports to try, below those that systems give to outgoing connections.
const FIRST_PORT: u32 = 11_000;
const PORTS: u32 = 8_000;

/// A running server. **Invariant:** it ends when this value or this process does, in whichever way.
#[derive(Debug)]
pub struct Process {
    log: PathBuf,
    supervisor: Child,
}

impl Process {
    /// Starts a program that says what it has to say into a log in `folder`, which is where it runs.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(program: &Path, arguments: &[String], folder: &Path) -> Self {
        let log = folder.join("server.log");
        let output = File::options().create(true).append(true).open(&log).expect("a log can be written");
        let supervisor = Command::new("sh")
            .args(["-c", SUPERVISE, "supervise"])
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone().expect("a handle of the log"))
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        Self { log, supervisor }
    }

    /// Waits until it listens on a port of the loopback interface.
    ///
    /// # Panics
    ///
    /// With its last words, if it ends or does not listen within a minute.
    pub fn wait_for(&mut self, port: u16) {
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let is_running = matches!(self.supervisor.try_wait(), Ok(None));
            assert!(is_running, "the server ended:\n{}", self.last_words());
            assert!(start.elapsed() < LIMIT, "the server does not listen:\n{}", self.last_words());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // the supervisor ends its server at the end of its stdin, and then itself
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// A port of the loopback interface that nobody listens on. Each call in each process begins to look elsewhere, so that
/// servers which start at the same time do not meet.
///
/// # Panics
///
/// If all are taken.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed) * 31);
    let candidates = (0..PORTS).map(|step| FIRST_PORT + start.wrapping_add(step) % PORTS);
    candidates
        .filter_map(|candidate| u16::try_from(candidate).ok())
        .find(|candidate| TcpListener::bind((Ipv4Addr::LOCALHOST, *candidate)).is_ok())
        .expect("a free port")
}

/// The program that a variable of the environment names, as `cargo xtask test` sets it.
///
/// # Panics
///
/// In one line that tells what to do, if there is none.
pub fn tool(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    let path = path.unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test`, or set it"));
    assert!(path.is_file(), "{variable} names no file: run `cargo xtask setup`");
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::thread;
    use std::time::Duration;

    use super::{Process, free_port};
    use crate::Scratch;

    fn start(script: &str) -> (Scratch, Process) {
        let scratch = Scratch::new();
        let arguments = ["-c".to_owned(), script.to_owned()];
        let process = Process::start(Path::new("/bin/sh"), &arguments, scratch.path());
        (scratch, process)
    }

    #[test]
    fn a_server_ends_with_its_value() {
        let (scratch, process) = start("echo $$ > pid.new; mv pid.new pid; exec sleep 600");
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
    }

    #[test]
    #[should_panic(expected = "the server ended:\nno such thing")]
    fn a_server_that_ends_by_itself_leaves_its_last_words() {
        let (_scratch, mut process) = start("echo no such thing; exit 3");
        process.wait_for(free_port());
    }
}
