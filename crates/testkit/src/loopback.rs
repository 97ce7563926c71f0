//! A scripted HTTP server on the loopback interface that records the received requests, and that can misbehave.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// A request to a scripted server.
#[derive(Debug)]
pub struct LoopbackRequest {
    /// The request line.
    pub line: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The reply to a request.
pub enum Reply {
    /// Status, further headers, body.
    Full(&'static str, String, String),
    /// Status and body; only the first half of the body is sent.
    Half(&'static str, String, BodyFraming),
    /// No reply.
    Never,
    /// Status, further headers, the start of a chunked body, and a part that is repeated until the client
    /// closes the connection.
    Endless(&'static str, String, String, String),
    /// Status, and then a byte of a chunked body every 20 ms until the client closes the connection.
    Drip(&'static str),
}

/// The way in which the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// By its length.
    Length,
    /// By an empty chunk.
    Chunks,
    /// By the end of the connection.
    Close,
}

/// A scripted server; it ends with the test process.
pub struct Loopback {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicUsize>,
}

impl Loopback {
    /// Starts a server that replies with the result of `script`, which gets the request line.
    pub fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_bodies(move |request| script(&request.line))
    }

    /// Starts a server that replies with the result of `script`, which gets the whole request.
    pub fn with_bodies(script: impl Fn(&LoopbackRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (seen, sent) = (Arc::default(), Arc::default());
        let (remembered, counter, script) = (Arc::clone(&seen), Arc::clone(&sent), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (remembered, script) = (Arc::clone(&remembered), Arc::clone(&script));
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || {
                    if let Some(reply) = read(&stream, &remembered, &*script) {
                        // The client may have disconnected.
                        let _ = answer(&stream, reply, &counter);
                    }
                });
            }
        });
        Self { url, seen, sent }
    }

    /// The URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The request heads received so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// Number of bytes of endless bodies sent so far.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

/// Reads a whole request and calls the script.
fn read(
    stream: &TcpStream,
    seen: &Mutex<Vec<String>>,
    script: &dyn Fn(&LoopbackRequest) -> Reply,
) -> Option<Reply> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut head), Ok(1..)) {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = head.lines().next().unwrap_or_default().to_owned();
    let reply = script(&LoopbackRequest { line, body });
    seen.lock().push(head);
    Some(reply)
}

fn answer(mut stream: &TcpStream, reply: Reply, sent: &AtomicUsize) -> std::io::Result<()> {
    let chunked = "connection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    match reply {
        Reply::Full(status, headers, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
        Reply::Half(status, body, framing) => {
            let half = &body.as_bytes()[..body.len() / 2];
            let head = match framing {
                BodyFraming::Length => format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()),
                BodyFraming::Chunks => format!("{chunked}{:x}\r\n", half.len()),
                BodyFraming::Close => "connection: close\r\n\r\n".to_owned(),
            };
            write!(stream, "HTTP/1.1 {status}\r\n{head}")?;
            stream.write_all(half)
        }
        // Blocks until the client closes the connection.
        Reply::Never => stream.read(&mut [0]).map(drop),
        Reply::Endless(status, headers, start, part) => {
            write!(stream, "HTTP/1.1 {status}\r\n{headers}{chunked}{:x}\r\n{start}\r\n", start.len().max(1))?;
            let part = part.repeat((64 << 10) / part.len().max(1) + 1);
            let chunk = format!("{:x}\r\n{part}\r\n", part.len());
            loop {
                stream.write_all(chunk.as_bytes())?;
                sent.fetch_add(part.len(), Ordering::Relaxed);
            }
        }
        Reply::Drip(status) => {
            write!(stream, "HTTP/1.1 {status}\r\n{chunked}")?;
            loop {
                stream.write_all(b"1\r\n \r\n")?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
