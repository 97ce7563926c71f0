//! A server for one test, and a client that sends raw bytes.
#![allow(dead_code, reason = "each test target uses a part of it")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_bundle::Pool;
use qontract_server::{
    BundleEvent, BundleRegistry, BundleSource, BundleStore, Bundles, Content, Server, Settings, SourceError,
};
use qontract_telemetry::server_metrics::ServerMetrics;
use tokio::runtime::Handle;
use tokio::sync::{RwLock, oneshot};

/// A bundle in memory, which a test can change.
#[derive(Clone, Default)]
pub struct MemorySource {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Number of reads that began.
    pub begun: Arc<AtomicU64>,
    /// Write-locked, it blocks readers.
    pub gate: Arc<RwLock<()>>,
}

impl MemorySource {
    pub fn set(&self, bytes: &[u8]) {
        *self.bytes.lock().unwrap() = bytes.to_vec();
    }
}

impl BundleSource for MemorySource {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        async {
            self.begun.fetch_add(1, Ordering::Relaxed);
            let _open = self.gate.read().await;
            Ok(Content::Bytes(self.bytes.lock().unwrap().clone()))
        }
        .boxed()
    }
}

/// The configuration of a server.
pub struct Setup {
    pub settings: Settings,
    /// In milliseconds.
    pub ttl: u64,
    pub store: Option<BundleStore>,
    pub max_fetched: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { settings: Settings::default(), ttl: 60_000, store: None, max_fetched: 8 }
    }
}

/// A running server; stops when dropped.
pub struct RunningServer {
    pub address: SocketAddr,
    pub source: MemorySource,
    pub events: Arc<Mutex<Vec<BundleEvent>>>,
    pub bundles: Arc<Bundles>,
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RunningServer {
    /// Starts a server with these bundles, the last one as the latest.
    pub fn start(setup: Setup, bundles: &[&[u8]]) -> Self {
        let source = MemorySource::default();
        let events = Arc::<Mutex<Vec<BundleEvent>>>::default();
        let observer = {
            let events = Arc::clone(&events);
            Arc::new(move |one| events.lock().unwrap().push(one))
        };
        let registry = BundleRegistry::new(setup.ttl, setup.max_fetched);
        let held = Arc::new(Bundles::new(registry, Some(Arc::new(source.clone())), setup.store, observer));
        let ids = AtomicU64::new(1);
        let new_id = move || ids.fetch_add(1, Ordering::Relaxed);
        let server = Server::new(setup.settings, Arc::clone(&held), Arc::<ServerMetrics>::default(), new_id);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        for bundle in bundles {
            source.set(bundle);
            runtime.block_on(held.reload()).unwrap();
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                server.serve(listener, async { drop(stopped.await) }).await;
            });
            runtime.shutdown_background();
        });
        Self { address, source, events, bundles: held, handle, stop: Some(stop), thread: Some(thread) }
    }

    /// Stops the server and waits until it has stopped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Signals the server to stop, without waiting.
    pub fn signal_stop(&mut self) {
        drop(self.stop.take());
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// Sends bytes on a new connection and returns the response.
    pub fn send(&self, method: &str, bytes: &[u8]) -> HttpAnswer {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        HttpAnswer::read(&mut stream, method)
    }

    pub fn request(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpAnswer {
        self.send(method, &request(method, target, headers, body))
    }

    pub fn get(&self, target: &str) -> HttpAnswer {
        self.request("GET", target, &[], b"")
    }

    pub fn post(&self, target: &str, body: &str) -> HttpAnswer {
        self.request("POST", target, &[("content-type", "application/json")], body.as_bytes())
    }

    pub fn query(&self, target: &str, query: &str) -> HttpAnswer {
        self.post(target, &serde_json::json!({ "query": query }).to_string())
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

pub fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if !body.is_empty() {
        bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Reads one response to a request with this method.
    pub fn read(stream: &mut TcpStream, method: &str) -> Self {
        let mut head = Vec::new();
        let mut byte = [0];
        loop {
            while !head.ends_with(b"\r\n\r\n") {
                assert_eq!(stream.read(&mut byte).unwrap(), 1, "{:?}", String::from_utf8_lossy(&head));
                head.push(byte[0]);
            }
            if !head.starts_with(b"HTTP/1.1 100") {
                break;
            }
            head.clear();
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut body = Vec::new();
        let has_body = method != "HEAD" && status != 304 && status != 204;
        if let Some(length) = headers.get("content-length").filter(|_| has_body) {
            body.resize(length.parse().unwrap(), 0);
            stream.read_exact(&mut body).unwrap();
        }
        Self { status, headers, body }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Shuts the connection down in both directions.
pub fn leave(stream: &TcpStream) {
    stream.shutdown(Shutdown::Both).unwrap();
}
