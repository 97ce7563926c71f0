//! A proxy in front of an HTTP server that counts requests and bytes at the socket.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A running proxy. Its threads end with the test program.
pub struct CountingProxy {
    pub address: String,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    upstream: Mutex<String>,
    /// Request lines, without the protocol.
    requests: Mutex<Vec<String>>,
    /// Bytes of responses.
    received: AtomicUsize,
    /// Whether the header of our extensions is dropped.
    hides_extensions: AtomicBool,
    /// Called before a request is forwarded, with its request line.
    hook: Mutex<Option<Hook>>,
}

type Hook = Box<dyn FnMut(&str) + Send>;

impl CountingProxy {
    /// Starts a proxy in front of this address.
    pub fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let counts = Arc::<Counts>::default();
        upstream.clone_into(&mut counts.upstream.lock().unwrap());
        let shared = Arc::clone(&counts);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counts = Arc::clone(&shared);
                std::thread::spawn(move || forward(&client, &counts));
            }
        });
        Self { address, counts }
    }

    /// Forwards to another address from now on.
    pub fn forward_to(&self, upstream: &str) {
        upstream.clone_into(&mut self.counts.upstream.lock().unwrap());
    }

    /// Makes the server look like qontract-server, which has no extensions.
    pub fn hide_extensions(&self) {
        self.counts.hides_extensions.store(true, Ordering::Relaxed);
    }

    /// Calls `hook` before each request is forwarded.
    pub fn before_requests(&self, hook: impl FnMut(&str) + Send + 'static) {
        *self.counts.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// The request lines since the last call, and the number of bytes received.
    pub fn take(&self) -> (Vec<String>, usize) {
        let requests = std::mem::take(&mut *self.counts.requests.lock().unwrap());
        (requests, self.counts.received.swap(0, Ordering::Relaxed))
    }
}

/// The number of requests of each kind: shas in paths are replaced by `#`.
pub fn kinds(requests: &[String]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for request in requests {
        let parts = request.split('/').map(|part| if part.len() == 64 { "#" } else { part });
        *kinds.entry(parts.collect::<Vec<_>>().join("/")).or_default() += 1;
    }
    kinds
}

fn forward(client: &TcpStream, counts: &Arc<Counts>) {
    let mut requests = BufReader::new(client.try_clone().unwrap());
    let mut upstream: Option<TcpStream> = None;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let begin = head.len();
            if requests.read_line(&mut head).unwrap_or_default() == 0 {
                break;
            }
            let line = head[begin..].to_ascii_lowercase();
            if line.starts_with("qontract-extensions:") && counts.hides_extensions.load(Ordering::Relaxed) {
                head.truncate(begin);
                continue;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let Some((request, _)) = head.split_once(" HTTP/1.1") else { break };
        let mut body = vec![0; length];
        if requests.read_exact(&mut body).is_err() {
            break;
        }
        counts.requests.lock().unwrap().push(request.to_owned());
        if let Some(hook) = &mut *counts.hook.lock().unwrap() {
            hook(request);
        }
        let address = counts.upstream.lock().unwrap().clone();
        if upstream.is_none() {
            let Ok(stream) = TcpStream::connect(address) else { break };
            let (mut from, mut to) = (stream.try_clone().unwrap(), client.try_clone().unwrap());
            let counts = Arc::clone(counts);
            std::thread::spawn(move || {
                let mut part = vec![0; 64 << 10];
                while let Ok(length @ 1..) = from.read(&mut part) {
                    counts.received.fetch_add(length, Ordering::Relaxed);
                    if to.write_all(&part[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
            upstream = Some(stream);
        }
        let Some(server) = &mut upstream else { break };
        if server.write_all(head.as_bytes()).and_then(|()| server.write_all(&body)).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    if let Some(server) = upstream {
        let _ = server.shutdown(Shutdown::Both);
    }
}
