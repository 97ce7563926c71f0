//! A web server on the loopback interface that answers by a script, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How a request is answered.
pub enum Reply {
    /// Status, further headers, body.
    Full(&'static str, String, String),
    /// Not ever.
    Never,
}

/// The server; it ends with the process of the test.
pub struct Loopback {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Loopback {
    /// Answers as `script` says, which gets the request line.
    pub fn start(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (remembered, script) = (Arc::clone(&seen), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (remembered, script) = (Arc::clone(&remembered), Arc::clone(&script));
                std::thread::spawn(move || answer(&stream, &remembered, &*script));
            }
        });
        Self { url, seen }
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The heads of the requests so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(stream: &TcpStream, seen: &Mutex<Vec<String>>, script: &dyn Fn(&str) -> Reply) {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut head), Ok(1..)) {
            return;
        }
    }
    let reply = script(head.lines().next().unwrap_or_default());
    seen.lock().unwrap().push(head);
    match reply {
        Reply::Full(status, headers, body) => {
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            // Whoever asked may be gone.
            let _ = (&*stream).write_all(text.as_bytes());
        }
        // Until whoever asked has had enough.
        Reply::Never => {
            let _ = reader.read_line(&mut String::new());
        }
    }
}
