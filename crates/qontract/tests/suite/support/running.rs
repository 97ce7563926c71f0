//! The binary as a process that goes on, and what it tells.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

/// A process that goes on; it ends with this.
pub struct Running {
    pub child: Child,
    lines: Option<BufReader<Box<dyn Read + Send>>>,
}

impl Running {
    /// Starts it.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = child.stderr.take().map(|told| BufReader::new(Box::new(told) as Box<dyn Read + Send>));
        Self { child, lines }
    }

    /// Starts one that tells everything on stdout.
    pub fn telling_on_stdout(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = child.stdout.take().map(|told| BufReader::new(Box::new(told) as Box<dyn Read + Send>));
        Self { child, lines }
    }

    /// Waits until it ends; how.
    pub fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Reads until a line has this; the line.
    pub fn until(&mut self, text: &str) -> String {
        let (mut line, lines) = (String::new(), self.lines.as_mut().expect("what it tells is not drained"));
        loop {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it ended before it said `{text}`");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The same, of lines that are objects.
    pub fn json(&mut self, text: &str) -> serde_json::Value {
        serde_json::from_str(&self.until(text)).unwrap()
    }

    /// Reads whatever else it tells, until it ends.
    pub fn drain(&mut self) -> JoinHandle<String> {
        let mut lines = self.lines.take().expect("it is drained once");
        std::thread::spawn(move || {
            let mut told = String::new();
            lines.read_to_string(&mut told).unwrap();
            told
        })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone, if all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is answered to a `GET`, with its head.
pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
