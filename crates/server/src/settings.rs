//! The limits of a server, and its hooks.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::HostPolicy;
use crate::token::Token;

/// The settings of a server.
#[derive(Clone)]
pub struct Settings {
    /// The required `Authorization` value; without one, requests are not authenticated.
    pub token: Option<Token>,
    /// Budget of the response cache, in bytes.
    pub answers: usize,
    /// Maximum size of the answers in flight, in bytes.
    pub in_flight: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of large answers that are computed concurrently.
    pub at_a_time: usize,
    /// Maximum number of large answers that are queued.
    pub waiting: usize,
    /// Maximum time to compute a large answer.
    pub query_time: Duration,
    /// Maximum size of a request's body, in bytes.
    pub body: usize,
    /// Maximum time for the head of a request, and for a client that sends nothing.
    pub head_time: Duration,
    /// Maximum time for a body, however much of it has arrived.
    pub body_time: Duration,
    /// Time for a body before `body_rate` applies.
    pub body_grace: Duration,
    /// Minimum rate of a body after `body_grace`, in bytes per second.
    pub body_rate: u32,
    /// Maximum time for which a client may read nothing.
    pub patience: Duration,
    /// Maximum time for requests in progress to finish at shutdown.
    pub wind_down: Duration,
    /// The host names that it answers to.
    pub hosts: HostPolicy,
    /// Receives an entry for every request that was answered.
    pub heard: Option<Hearer>,
    /// Called when a large answer is freed: sent, or aborted with its client.
    pub released: Option<ReleaseHook>,
}

/// Called when memory was freed.
pub type ReleaseHook = Arc<dyn Fn() + Send + Sync>;

/// Receives access-log entries.
pub type Hearer = Arc<dyn Fn(&Heard<'_>) + Send + Sync>;

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard<'r> {
    /// Its method.
    pub method: &'r str,
    /// Its path as it was sent, without the query string, which is not logged.
    pub path: &'r str,
    /// The status of the answer.
    pub status: u16,
    /// Time from the head of the request to its response.
    pub took: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            answers: 64 << 20,
            in_flight: 1 << 30,
            connections: 1024,
            at_a_time: std::thread::available_parallelism().map_or(2, usize::from),
            waiting: 64,
            query_time: Duration::from_mins(1),
            body: 1 << 20,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            body_grace: Duration::from_secs(5),
            body_rate: 32 << 10,
            patience: Duration::from_secs(30),
            wind_down: Duration::from_secs(10),
            hosts: HostPolicy::Any,
            heard: None,
            released: None,
        }
    }
}
