//! Attacks on `serve`: half-sent requests, foreign host names, false lengths, clients that read nothing.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::running::Running;
use qontract_testkit::{Scratch, tool, vectors};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

/// Longer than any of these requests takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// `qontract serve` of a bundle on its own port.
struct Server {
    process: Running,
    client: Client,
}

/// A client of the server.
struct Client {
    address: String,
}

impl std::ops::Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Server {
    fn of(bundle: &str, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
        command.args(["serve", "--bundle", bundle, "--listen", "127.0.0.1:0"]).args(options);
        Self::run(command.env_remove("QONTRACT_SERVER_TOKEN"))
    }

    fn run(command: &mut Command) -> Self {
        let mut process = Running::of(command);
        let line = process.until("Running at http://");
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { process, client: Client { address } }
    }

    fn start(options: &[&str]) -> Self {
        Self::of(&vectors().join("bundle.json").display().to_string(), options)
    }

    /// A line of `/proc/PID/status`, in KiB.
    fn memory(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id())).unwrap();
        let line = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Client {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// A connection on which `request` was sent.
    fn begin(&self, request: &str) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The status of the response, or 0 without a response.
    fn status(&self, request: &str) -> u16 {
        let mut head = [0; 12];
        match self.begin(request).read_exact(&mut head) {
            Ok(()) => std::str::from_utf8(&head[9..]).unwrap().parse().unwrap(),
            Err(_) => 0,
        }
    }

    fn get(&self, path: &str) -> u16 {
        self.status(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address))
    }
}

/// Number of connections that this process can open: as many as the attack needs, if the system allows it.
fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The old ones stay open until the new ones are.
    wanted.min(usize::try_from(files / 3).unwrap_or(usize::MAX))
}

#[test]
fn health_is_answered_while_half_sent_requests_are_refilled() {
    let attackers = connections(1060);
    let limit = (attackers - 36).to_string();
    let server = Server::start(&["--connections", &limit]);
    let half =
        format!("POST /graphql HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000\r\n\r\n{{", server.address);
    let mut held: Vec<TcpStream> = (0..attackers).map(|_| server.begin(&half)).collect();
    assert_eq!((server.get("/healthz"), server.get("/sha256")), (200, 200), "filled");
    // Refilled twice, a part at a time.
    for round in 0..2 {
        for part in held.chunks_mut(attackers / 10) {
            part.fill_with(|| server.begin(&half));
            assert_eq!((server.get("/healthz"), server.get("/sha256")), (200, 200), "round {round}");
        }
    }
}

#[test]
fn a_server_that_is_out_of_files_closes_waiting_connections() {
    let bundle = vectors().join("bundle.json");
    let mut command = Command::new("sh");
    let line = format!(
        "ulimit -n 64; exec {} serve --bundle {} --listen 127.0.0.1:0",
        env!("CARGO_BIN_EXE_qontract"),
        bundle.display()
    );
    let server = Server::run(command.args(["-c", &line]));
    let idle: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    assert_eq!(server.get("/healthz"), 200);
    drop(idle);
}

/// A bundle with a string of the size of the wanted response.
fn large(scratch: &Scratch, bytes: usize) -> String {
    note(scratch, &"x".repeat(bytes))
}

/// A bundle of one note.
fn note(scratch: &Scratch, text: &str) -> String {
    let bundle = json!({
        "git_commit": "c", "git_commit_timestamp": "1", "schemas": {}, "resources": {},
        "data": { "/a.yml": { "$schema": "/note.yml", "text": text } },
        "graphql": [
            { "name": "Query", "fields": [{ "name": "notes", "type": "Note", "isList": true, "datafileSchema": "/note.yml" }] },
            { "name": "Note", "fields": [{ "name": "text", "type": "string" }] },
        ],
    });
    scratch.write("bundle.json", bundle.to_string()).display().to_string()
}

/// A request for a large response, of which only the first bytes are read. Identical requests would share one
/// response, so each has a comment with another number.
fn read_slowly(server: &Client, number: usize) -> TcpStream {
    let query = format!("/graphql?query=%7Bnotes%7Btext%7D%7D%23{number}");
    let mut stream = server.begin(&format!("GET {query} HTTP/1.1\r\nhost: {}\r\n\r\n", server.address));
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

#[test]
fn health_is_answered_while_every_connection_is_busy() {
    let scratch = Scratch::new();
    let server = Server::of(&large(&scratch, 16 << 20), &["--connections", "3", "--answer-cache", "0"]);
    let slow: Vec<TcpStream> = (0..3).map(|number| read_slowly(&server, number)).collect();
    for _ in 0..40 {
        assert_eq!(server.get("/healthz"), 200);
    }
    assert_eq!(server.get("/sha256"), 503);
    // A client that waits in the reserve does not block others.
    let half: Vec<TcpStream> = (0..40).map(|_| server.begin("GET /healthz HTTP/1.1\r\n")).collect();
    assert_eq!(server.get("/healthz"), 200);
    drop((half, slow));
}

#[test]
fn memory_of_slow_readers_is_released_without_another_request() {
    let scratch = Scratch::new();
    let options = ["--answer-cache", "0", "--write-timeout", "2s"];
    let server = Server::of(&large(&scratch, 12 << 20), &options);
    let before = server.memory("VmRSS");
    let slow: Vec<TcpStream> = (0..16).map(|number| read_slowly(&server, number)).collect();
    let peak = server.memory("VmHWM");
    assert!(peak > before + (40 << 10), "{peak} KiB at most, {before} KiB before");
    let began = Instant::now();
    loop {
        let now = server.memory("VmRSS");
        if now < before + (16 << 10) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{now} KiB, {before} KiB before, {peak} KiB at most");
        std::thread::yield_now();
    }
    drop(slow);
}

#[test]
fn a_loopback_server_without_a_token_answers_to_loopback_names_only() {
    let server = Server::start(&["--allow-host", "data.example"]);
    let port = server.address.rsplit(':').next().unwrap();
    let get = |host: &str| server.status(&format!("GET /sha256 HTTP/1.1\r\nhost: {host}\r\n\r\n"));
    for own in [&server.address, "localhost", "data.localhost:1", "[::1]", "127.3.2.1", "data.example"] {
        assert_eq!(get(own), 200, "{own}");
    }
    for foreign in
        [&format!("evil.example:{port}"), "localhost.evil.example", "10.0.0.1", "0.0.0.0", "x@localhost"]
    {
        assert_eq!(get(foreign), 421, "{foreign}");
    }
    assert_eq!(server.status("GET http://evil.example/sha256 HTTP/1.1\r\nhost: localhost\r\n\r\n"), 421);
    assert_eq!(server.status("GET /sha256 HTTP/1.0\r\n\r\n"), 200);
    assert_eq!(server.status("GET /sha256 HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(server.status("GET /sha256 HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n"), 400);
    // With a token, every host name is accepted.
    let scratch = Scratch::new();
    let token = scratch.write("token", "secret").display().to_string();
    let server = Server::start(&["--token-file", &token]);
    let request = "GET /sha256 HTTP/1.1\r\nhost: evil.example\r\nauthorization: secret\r\n\r\n";
    assert_eq!(server.status(request), 200);
}

#[test]
fn a_page_of_another_origin_does_not_reload() {
    let server = Server::start(&[]);
    let reload = |origin: &str| {
        let head =
            format!("POST /reload HTTP/1.1\r\nhost: {}\r\n{origin}content-length: 0\r\n\r\n", server.address);
        server.status(&head)
    };
    assert_eq!(reload(""), 200);
    assert_eq!(reload(&format!("origin: http://{}\r\n", server.address)), 200);
    assert_eq!(reload("origin: https://evil.example\r\n"), 403);
    assert_eq!(reload("origin: null\r\n"), 403);
}

#[test]
#[ignore = "needs QONTRACT_PYTHON and QONTRACT_CHROMIUM; run by `cargo xtask test`"]
fn the_page_shows_hostile_data_as_escapes() {
    let scratch = Scratch::new();
    let server = Server::of(&note(&scratch, "a\u{202e}\u{9b}\u{200b}\u{e0041}b"), &[]);
    let link = format!("http://{}/graphql#query=%7Bnotes%7Btext%7D%7D&run=1", server.address);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/browser.py");
    let mut command = Command::new(tool("QONTRACT_PYTHON"));
    command.arg("-B").arg(script).arg(tool("QONTRACT_CHROMIUM")).arg(link);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let steps = "[\"wait\", \"#result\", \"notes\"]\n[\"print\", \"#result\"]\n";
    child.stdin.take().unwrap().write_all(steps.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(r"a\\u202e\\u009b\\u200b\\udb40\\udc41b"), "{text:?}");
}

#[test]
fn false_lengths_are_refused_at_once() {
    let server = Server::start(&[]);
    let post = |length: &str| {
        let head =
            format!("POST /graphql HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n\r\n", server.address);
        server.status(&format!("{head}{{"))
    };
    for long in ["1048577", "99999999999999"] {
        assert_eq!(post(long), 413, "{long}");
    }
    for wrong in ["99999999999999999999", "-1", "abc", "1 2", "1\r\ncontent-length: 2"] {
        assert_eq!(post(wrong), 400, "{wrong}");
    }
}
