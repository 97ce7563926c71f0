//! Vault for tests: [`TestVault`], an emulator with faults, and [`RealVault`], a `RustyVault` server.
//!
//! The emulator has one KV 2 mount, `secret/`, and logins by token, role and Kubernetes. Its responses match
//! those of Vault in everything that clients depend on; `tests/hvac.rs` checks this with a real client. The
//! emulator runs in a thread with its own runtime, and its clock advances only when a test advances it.

mod emulator_state;
mod faults;
mod http;
mod kv;
mod routes;
mod rusty_vault;
mod tokens;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};

use emulator_state::EmulatorState;
pub use faults::{AnswerHold, VaultFault};
use kv::VersionChange;
pub use rusty_vault::RealVault;
pub use tokens::LoginRole;

/// The root token, which has all permissions and never expires.
pub const ROOT: &str = "root";

/// A running emulator; stopped on drop.
pub struct TestVault {
    address: SocketAddr,
    state: Arc<VaultEmulator>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state shared by the request handlers and the test.
struct VaultEmulator {
    inner: Mutex<EmulatorState>,
    /// Whether responses are delayed.
    held: watch::Sender<bool>,
}

impl TestVault {
    /// Starts an empty emulator.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener for the runtime");
        let address = listener.local_addr().expect("the listener's address");
        let state = Arc::new(VaultEmulator { inner: Mutex::default(), held: watch::channel(false).0 });
        let router = Router::new().fallback(routes::answer).with_state(Arc::clone(&state));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::spawn(async { axum::serve(listener, router).await });
                // Open connections end with the runtime.
                let _ = stopped.await;
            });
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// The URL of the emulator.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a role that can log in.
    pub fn add(&self, role: LoginRole) {
        self.state().tokens.add(role);
    }

    /// Writes the next version of a secret below `secret/`; returns its number.
    pub fn put(&self, path: &str, fields: &Value) -> u64 {
        let fields: Map<String, Value> = fields.as_object().expect("an object").clone();
        let mut state = self.state();
        let now = state.now();
        state.secrets.put(path, fields, None, &now).expect("there is no precondition")
    }

    /// Deletes the latest version of a secret below `secret/`.
    pub fn delete(&self, path: &str) {
        let mut state = self.state();
        let now = state.now();
        state.secrets.change(path, None, VersionChange::Delete, &now);
    }

    /// Logs in at `mount` with `shown` as the request body; returns the token.
    pub fn token(&self, mount: &str, shown: &Value) -> String {
        let mut state = self.state();
        let now = state.clock;
        let token = state.tokens.log_in(mount, shown, now).expect("a role that can log in");
        token.auth_json(now)["client_token"].as_str().expect("a string").to_owned()
    }

    /// Advances the clock of the emulator.
    pub fn advance(&self, time: Duration) {
        self.state().clock += time;
    }

    /// Revokes all tokens except the root token.
    pub fn revoke_all(&self) {
        self.state().tokens.revoke_all();
    }

    /// Denies all paths with this prefix, such as `secret/data/hidden`, to all tokens except the root token.
    pub fn deny(&self, prefix: &str) {
        self.state().denied.push(prefix.to_owned());
    }

    /// Sets or clears the fault of all further responses.
    pub fn fail(&self, fault: Option<VaultFault>) {
        self.state().fault = fault;
    }

    /// Delays all responses until the returned value is dropped.
    pub fn hold(&self) -> AnswerHold {
        AnswerHold::new(self.state.held.clone())
    }

    /// Number of requests with this prefix, such as `GET /v1/secret/`.
    pub fn requests(&self, prefix: &str) -> usize {
        self.state().requests.iter().filter(|request| request.starts_with(prefix)).count()
    }

    fn state(&self) -> MutexGuard<'_, EmulatorState> {
        self.state.inner.lock()
    }
}

impl Drop for TestVault {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server is already printed; a second panic during drop would hide the panic of
            // the test.
            let _ = thread.join();
        }
    }
}
