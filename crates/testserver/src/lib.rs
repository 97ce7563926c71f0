//! A data server on the loopback interface: what clients and runners are tested against. Only ever a dev-dependency.
//!
//! It answers as qontract-server does where a client can tell: the same paths, statuses and bodies. It lives in
//! a thread with a runtime of its own, so that tests with and without one can use it.
//!
//! **Invariant:** a bundle answers under its sha until it is forgotten, whatever is the latest.

mod answers;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use axum::Router;
use qontract_bundle::{Pool, load};
use qontract_graphql::Engine;
use tokio::sync::oneshot;

/// A running server; dropped, it is gone.
pub struct DataServer {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the server has and what it was asked.
struct State {
    token: Option<String>,
    bundles: Mutex<Bundles>,
    requests: Mutex<BTreeMap<String, usize>>,
}

/// The loaded bundles.
#[derive(Default)]
struct Bundles {
    engines: BTreeMap<String, Arc<Engine>>,
    latest: String,
}

impl DataServer {
    /// A server without bundles that anyone may ask.
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// A server without bundles; requests need exactly this `Authorization`.
    pub fn with_token(token: &str) -> Self {
        Self::serve(Some(token.to_owned()))
    }

    fn serve(token: Option<String>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener for the runtime");
        let address = listener.local_addr().expect("the listener's address");
        let state = Arc::new(State { token, bundles: Mutex::default(), requests: Mutex::default() });
        let router = Router::new().fallback(answers::answer).with_state(Arc::clone(&state));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::spawn(async { axum::serve(listener, router).await });
                // Whatever comes, it is over: connections end with the runtime.
                let _ = stopped.await;
            });
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// Loads the bytes of a bundle and makes it the latest, as a reload does; returns its sha.
    pub fn load(&self, bytes: &[u8]) -> String {
        let bundle = load(bytes, &Pool::default()).expect("the bytes of a bundle");
        let sha = bundle.sha().to_string();
        let engine = Engine::new(Arc::new(bundle)).expect("a bundle with GraphQL types");
        let mut bundles = lock(&self.state.bundles);
        bundles.engines.insert(sha.clone(), Arc::new(engine));
        bundles.latest.clone_from(&sha);
        sha
    }

    /// Makes a loaded bundle the latest.
    pub fn make_latest(&self, sha: &str) {
        let mut bundles = lock(&self.state.bundles);
        assert!(bundles.engines.contains_key(sha), "`{sha}` is not loaded");
        sha.clone_into(&mut bundles.latest);
    }

    /// Drops a bundle, as the server does with those that nobody asked for a while.
    pub fn forget(&self, sha: &str) {
        lock(&self.state.bundles).engines.remove(sha);
    }

    /// The URL that a configuration names.
    pub fn url(&self) -> String {
        format!("http://{}/graphql", self.address)
    }

    /// How many requests there were for a path, those without a permitted token included.
    pub fn requests(&self, path: &str) -> usize {
        lock(&self.state.requests).get(path).copied().unwrap_or_default()
    }

    /// How many requests there were.
    pub fn all_requests(&self) -> usize {
        lock(&self.state.requests).values().sum()
    }
}

impl Drop for DataServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed; a second one while dropping would hide the test's own.
            let _ = thread.join();
        }
    }
}

/// The tables are whole at any time, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::DataServer;

    /// Asks for a path without any runtime; the answer is a status line and a body.
    fn get(server: &DataServer, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[test]
    fn a_test_without_a_runtime_can_ask() {
        let server = DataServer::start();
        assert_eq!(get(&server, "/sha256").0, "HTTP/1.1 503 Service Unavailable");
        let empty = r#"{"git_commit": "c", "git_commit_timestamp": "1", "schemas": {}, "resources": {}, "data": {},
            "graphql": [{"name": "Query", "fields": [{"name": "x", "type": "string"}]}]}"#;
        let sha = server.load(empty.as_bytes());
        assert_eq!(get(&server, "/sha256").1, sha);
        let commit = r#"{"commit":"c","timestamp":"1"}"#;
        assert_eq!(get(&server, "/git-commit-info").1, commit);
        assert_eq!(get(&server, &format!("/git-commit-info/{sha}")).1, commit);
        server.forget(&sha);
        assert_eq!(get(&server, &format!("/git-commit-info/{sha}")).1, format!("Bundle {sha} not found"));
        assert_eq!(get(&server, "/reload").0, "HTTP/1.1 404 Not Found");
        assert_eq!((server.requests("/sha256"), server.all_requests()), (2, 6));
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let server = DataServer::start();
        let address = server.address;
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
