//! Server processes and an HTTP client for benchmarks. Each benchmark uses a part of it.
#![allow(dead_code, reason = "each benchmark uses its part of this module")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::measure;

/// A server process; killed on drop.
pub struct ServerProcess {
    child: Child,
    port: u16,
    /// Time from the start to the first response.
    pub load: Duration,
    /// CPU time up to the first response, in milliseconds.
    pub load_cpu: f64,
}

impl ServerProcess {
    /// Starts `qontract serve` with these arguments, without its response cache.
    pub fn ours(arguments: &[&str]) -> Self {
        let mut command = Command::new(measure::binary("qontract"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--answer-cache", "0"]).args(arguments);
        Self::start(command.stderr(Stdio::piped()).stdout(Stdio::null()), |child| {
            let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
            let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("Running at")));
            let line = line.expect("it listens").expect("text");
            // Drain further output, so that the server does not block.
            std::thread::spawn(move || lines.count());
            line.rsplit(':').next().and_then(|rest| rest.split('/').next()?.parse().ok()).expect("a port")
        })
    }

    /// Starts a server; `port` determines its port.
    pub fn start(command: &mut Command, port: impl FnOnce(&mut Child) -> u16) -> Self {
        let begun = Instant::now();
        let mut child = command.spawn().expect("a server");
        let port = port(&mut child);
        let mut server = Self { child, port, load: Duration::ZERO, load_cpu: 0.0 };
        assert_eq!(server.connect().get("/sha256").len(), 64);
        server.load = begun.elapsed();
        server.load_cpu = server.cpu();
        server
    }

    /// A client of this server.
    pub fn connect(&self) -> HttpClient {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server that listens");
        stream.set_nodelay(true).expect("a socket");
        HttpClient { reader: BufReader::with_capacity(1 << 16, stream) }
    }

    /// CPU time of the process, in milliseconds; the kernel counts hundredths of a second.
    pub fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) * 10.0
    }

    /// Memory of the process, in bytes.
    pub fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).expect("a number")
            * 1024.0
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client with a persistent connection.
pub struct HttpClient {
    reader: BufReader<TcpStream>,
}

impl HttpClient {
    /// Sends a request; returns the status and the body of the response.
    pub fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.reader.get_mut().write_all(request.as_bytes()).expect("a server that listens");
        let (mut line, mut length, mut status) = (String::new(), 0, 0);
        loop {
            line.clear();
            self.reader.read_line(&mut line).expect("a line");
            if status == 0 {
                status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
            }
            if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = number.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a body");
        (status, body)
    }

    /// The body at a path.
    pub fn get(&mut self, path: &str) -> Vec<u8> {
        self.send("GET", path, "").1
    }

    /// The response to a query.
    pub fn query(&mut self, query: &str) -> Vec<u8> {
        let (status, body) = self.send("POST", "/graphql", &json!({ "query": query }).to_string());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        body
    }
}
