//! A scripted server that records the requests it receives.

use std::sync::{Arc, Mutex};

use qontract_client_http::Url;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The reply of the server to a request.
#[derive(Clone)]
pub enum Reply {
    /// Status line, further headers, body.
    Full(&'static str, String, String),
    /// An endless body.
    Endless,
    /// Fewer bytes than announced.
    Cut,
    /// The connection is closed at once.
    Nothing,
    /// No reply, ever.
    Never,
}

/// A reply without further headers.
pub fn reply(status: &'static str, body: &str) -> Reply {
    Reply::Full(status, String::new(), body.to_owned())
}

/// A reply with one header and no body.
pub fn reply_with(status: &'static str, header: &str) -> Reply {
    Reply::Full(status, format!("{header}\r\n"), String::new())
}

/// The server; it stops with the runtime of the test.
pub struct Loopback {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Loopback {
    /// Starts a server that replies as `script` returns. It gets the number of the request, counted from 0,
    /// and the request line.
    pub async fn start(script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (seen, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(script));
        let remembered = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&remembered));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(head) = head(&mut stream).await else { return };
                    let line = head.lines().next().unwrap_or_default().to_owned();
                    let number = {
                        let mut seen = seen.lock().expect("no panic before");
                        seen.push(head);
                        seen.len() - 1
                    };
                    let _ = answer(stream.get_mut(), script(number, &line)).await;
                });
            }
        });
        Self { address, seen }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).expect("a URL")
    }

    /// The request heads received so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic before").clone()
    }

    /// Number of requests received so far.
    pub fn count(&self) -> usize {
        self.seen().len()
    }
}

/// Reads a request and returns its head; its body is discarded.
async fn head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().expect("a number"))
    });
    stream.read_exact(&mut vec![0; length.unwrap_or(0)]).await.ok()?;
    Some(head)
}

async fn answer(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    let begin = |status: &str, headers: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n")
    };
    match reply {
        Reply::Full(status, headers, body) => {
            stream.write_all((begin(status, &headers, body.len()) + &body).as_bytes()).await
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            loop {
                stream.write_all(b"10\r\n0123456789abcdef\r\n").await?;
            }
        }
        Reply::Cut => stream.write_all((begin("200 OK", "", 100) + "half").as_bytes()).await,
        Reply::Nothing => Ok(()),
        Reply::Never => std::future::pending().await,
    }
}
