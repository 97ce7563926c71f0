//! The binary as a long-running process, and its output.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

/// A long-running process, which is killed when this is dropped.
pub struct Running {
    pub child: Child,
    lines: Option<BufReader<Box<dyn Read + Send>>>,
}

impl Running {
    /// Starts it.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines =
            child.stderr.take().map(|printed| BufReader::new(Box::new(printed) as Box<dyn Read + Send>));
        Self { child, lines }
    }

    /// Starts a process whose log is on stdout.
    pub fn with_log_on_stdout(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines =
            child.stdout.take().map(|printed| BufReader::new(Box::new(printed) as Box<dyn Read + Send>));
        Self { child, lines }
    }

    /// Waits until the process ends, and returns its exit status.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Reads until a line contains a string, and returns the line.
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

    /// Reads until a line contains a string, and returns all lines up to it.
    pub fn collect_until(&mut self, text: &str) -> String {
        let lines = self.lines.as_mut().expect("the output is not drained");
        let mut printed = String::new();
        while !printed.lines().last().is_some_and(|line| line.contains(text)) {
            assert_ne!(lines.read_line(&mut printed).unwrap(), 0, "no line contains `{text}`: {printed}");
        }
        printed
    }

    /// Reads until a line contains a string, and parses the line as JSON.
    pub fn json(&mut self, text: &str) -> serde_json::Value {
        serde_json::from_str(&self.until(text)).unwrap()
    }

    /// Reads the remaining output until the process ends.
    pub fn drain(&mut self) -> JoinHandle<String> {
        let mut lines = self.lines.take().expect("it is drained once");
        std::thread::spawn(move || {
            let mut printed = String::new();
            lines.read_to_string(&mut printed).unwrap();
            printed
        })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The response to a `GET` request, with its head.
pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
