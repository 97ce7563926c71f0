//! AWS for tests: a moto server, run with the Python environment of the tests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use crate::{Process, Scratch, free_port, tool};

/// A running moto server; stopped on drop.
pub struct TestAws {
    port: u16,
    // in this order: the directory is removed after the process has ended
    process: Process,
    _folder: Scratch,
}

impl TestAws {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If the variable `QONTRACT_PYTHON` does not name a Python with moto; `cargo xtask test` sets it.
    pub fn start() -> Self {
        let (folder, port) = (Scratch::new(), free_port());
        let arguments = ["-m", "moto.server", "-H", "127.0.0.1", "-p"].map(str::to_owned);
        let arguments: Vec<String> = arguments.into_iter().chain([port.to_string()]).collect();
        let mut process = Process::start(&tool("QONTRACT_PYTHON"), &arguments, folder.path());
        process.wait_for(port);
        Self { port, process, _folder: folder }
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Creates a bucket.
    pub fn bucket(&self, name: &str) {
        self.send("PUT", &format!("/{name}"), "");
    }

    /// Puts an object into a bucket.
    pub fn put(&self, bucket: &str, key: &str, text: &str) {
        self.send("PUT", &format!("/{bucket}/{key}"), text);
    }

    /// Removes all buckets and objects.
    pub fn reset(&self) {
        self.send("POST", "/moto-api/reset", "");
    }

    /// Stops the server with `SIGSTOP`: it accepts connections and answers none.
    pub fn pause(&self) {
        self.process.suspend();
    }

    /// Continues a paused server.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Sends a request, which must succeed.
    fn send(&self, method: &str, path: &str, body: &str) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a server that listens");
        let (host, length) = (format!("127.0.0.1:{}", self.port), body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("a request can be sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a response");
        assert!(answer.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
    }
}
