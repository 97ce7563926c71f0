//! A data server on the loopback interface, for tests of clients and runners. Only used as a dev-dependency.
//!
//! It is the real server, controlled by a test: the test loads bundles and inspects the requests. It runs in
//! a thread with its own runtime, so that tests with and without a runtime can use it.
//!
//! **Invariant:** a bundle can be queried by its sha until the test removes it, even if another bundle is the
//! latest.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_bundle::{Pool, Sha256};
use qontract_server::{BundleRegistry, BundleSource, Bundles, Content, Server, Settings, SourceError, Token};
use qontract_telemetry::server_metrics::ServerMetrics;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A running server; stopped on drop.
pub struct DataServer {
    address: SocketAddr,
    bundles: Arc<Bundles>,
    requests: Arc<Mutex<BTreeMap<String, usize>>>,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The bytes of a bundle.
struct BundleBytes(Vec<u8>);

impl BundleSource for BundleBytes {
    fn name(&self) -> String {
        "a test".to_owned()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        async { Ok(Content::Bytes(self.0.clone())) }.boxed()
    }
}

impl DataServer {
    /// A server without bundles and without authentication.
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// A server without bundles that requires exactly this `Authorization` header.
    pub fn with_token(token: &str) -> Self {
        Self::serve(Some(token))
    }

    fn serve(token: Option<&str>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener for the runtime");
        let address = listener.local_addr().expect("the listener's address");
        let requests = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let counts = Arc::clone(&requests);
        let settings = Settings {
            token: token.map(Token::new),
            access_log: Some(Arc::new(move |one| {
                *counts.lock().entry(one.path.to_owned()).or_default() += 1;
            })),
            ..Settings::default()
        };
        // Bundles never expire; the test removes them.
        let bundles =
            Arc::new(Bundles::new(BundleRegistry::new(u64::MAX / 2, 0), None, None, Arc::new(|_| {})));
        let ids = AtomicU64::new(1);
        let new_id = move || ids.fetch_add(1, Ordering::Relaxed);
        let server = Server::new(settings, Arc::clone(&bundles), Arc::<ServerMetrics>::default(), new_id);
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let handle = runtime.handle().clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let serving = server.serve(listener, std::future::pending());
                // Open connections end with the runtime.
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { address, bundles, requests, runtime: handle, stop: Some(stop), thread: Some(thread) }
    }

    /// Loads the bytes of a bundle and makes it the latest, as a reload does; returns its sha.
    pub fn load(&self, bytes: &[u8]) -> String {
        let (bundles, origin) = (Arc::clone(&self.bundles), Arc::new(BundleBytes(bytes.to_vec())));
        let (sender, loaded) = std::sync::mpsc::channel();
        // Runs on the threads of the server, because the test may not have a runtime.
        self.runtime.spawn(async move { sender.send(bundles.load(origin).await) });
        loaded.recv().expect("a server").expect("the bytes of a bundle");
        Sha256::of(bytes).to_string()
    }

    /// Makes a loaded bundle the latest.
    pub fn make_latest(&self, sha: &str) {
        assert!(self.bundles.registry().make_latest(parse(sha), 0), "`{sha}` is not loaded");
    }

    /// Removes a bundle, as the server does with expired ones.
    pub fn forget(&self, sha: &str) {
        self.bundles.registry().remove(parse(sha));
    }

    /// The URL for the configuration.
    pub fn url(&self) -> String {
        format!("http://{}/graphql", self.address)
    }

    /// Number of requests for a path, including unauthenticated ones.
    pub fn requests(&self, path: &str) -> usize {
        self.requests.lock().get(path).copied().unwrap_or_default()
    }

    /// Number of requests.
    pub fn all_requests(&self) -> usize {
        self.requests.lock().values().sum()
    }

    /// Number of active leases.
    pub fn leases(&self) -> usize {
        self.bundles.registry().leases(0)
    }
}

impl Drop for DataServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server is already printed; a second panic during drop would hide the panic of
            // the test.
            let _ = thread.join();
        }
    }
}

fn parse(sha: &str) -> Sha256 {
    Sha256::parse(sha).expect("a sha")
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::DataServer;

    /// Sends a `GET` without a runtime; returns the status line and the body.
    fn get(server: &DataServer, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[test]
    fn a_test_without_a_runtime_can_send_requests() {
        let server = DataServer::start();
        assert_eq!(get(&server, "/sha256").0, "HTTP/1.1 503 Service Unavailable");
        let empty = r#"{"git_commit": "c", "git_commit_timestamp": "1", "schemas": {}, "resources": {}, "data": {},
            "graphql": [{"name": "Query", "fields": [{"name": "x", "type": "string"}]}]}"#;
        let sha = server.load(empty.as_bytes());
        assert_eq!(get(&server, "/sha256").1, sha);
        let commit = r#"{"commit":"c","timestamp":"1"}"#;
        assert_eq!(get(&server, "/git-commit-info").1, commit);
        assert_eq!(get(&server, &format!("/git-commit-info/{sha}")).1, commit);
        let newer = server.load(empty.replace("\"c\"", "\"d\"").as_bytes());
        assert_eq!(get(&server, "/sha256").1, newer);
        server.forget(&sha);
        assert_eq!(get(&server, &format!("/git-commit-info/{sha}")).1, format!("Bundle {sha} not found"));
        assert_eq!(get(&server, "/reload").0, "HTTP/1.1 404 Not Found");
        assert_eq!((server.requests("/sha256"), server.all_requests()), (3, 7));
    }

    #[test]
    fn a_dropped_server_is_stopped() {
        let server = DataServer::start();
        let address = server.address;
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
