//! AWS for tests: a moto server, run with the Python environment of the tests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use std::process::Command;

use crate::{Process, Scratch, free_port, tool};

/// Headers of a form for SQS without a valid signature. The server reads the name of the service from the
/// signature, but does not verify the signature.
const QUEUE_FORM: &str = "content-type: application/x-www-form-urlencoded\r\nauthorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0\r\n";

/// A running moto server; stopped on drop.
pub struct TestAws {
    port: u16,
    // Fields are dropped in this order: the directory is removed after the process has ended.
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

    /// Stops the server with `SIGSTOP`: its connections stay open, and nothing responds.
    pub fn suspend(&self) {
        self.process.suspend();
    }

    /// Continues a server that was suspended.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// The requests that the server received so far, as lines of its log.
    pub fn requests(&self) -> Vec<String> {
        let log = self.process.log();
        log.lines().filter(|line| line.contains(" HTTP/1.1\" ")).map(str::to_owned).collect()
    }

    /// Creates a bucket.
    pub fn bucket(&self, name: &str) {
        self.send("PUT", &format!("/{name}"), "", "");
    }

    /// Creates a queue; a FIFO queue if its name ends in `.fifo`.
    pub fn queue(&self, name: &str) {
        let fifo = "&Attribute.1.Name=FifoQueue&Attribute.1.Value=true";
        let fifo = name.strip_suffix(".fifo").map_or("", |_| fifo);
        let form = format!("Action=CreateQueue&Version=2012-11-05&QueueName={name}{fifo}");
        self.send("POST", "/", QUEUE_FORM, &form);
    }

    /// Turns on the verification of signatures and policies.
    pub fn require_permissions(&self) {
        self.send("POST", "/moto-api/reset-auth", "", "0");
    }

    /// Runs a Python script with boto3, whose first argument is the URL of the server. Returns its stdout.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn script(&self, text: &str) -> String {
        let mut python = Command::new(tool("QONTRACT_PYTHON"));
        let output = python.args(["-c", text, &self.url()]).env("NO_PROXY", "127.0.0.1").output();
        let output = output.expect("Python starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Puts an object into a bucket.
    pub fn put(&self, bucket: &str, key: &str, text: &str) {
        self.send("PUT", &format!("/{bucket}/{key}"), "", text);
    }

    /// Removes all buckets, objects and queues.
    pub fn reset(&self) {
        self.send("POST", "/moto-api/reset", "", "");
    }

    /// Sends a request with these headers, which must succeed.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a server that listens");
        let (host, length) = (format!("127.0.0.1:{}", self.port), body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        )
        .expect("a request can be sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("a response");
        assert!(answer.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
    }
}
