//! Server settings: limits, authentication and hooks.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::HostPolicy;
use crate::analysis::BundleAnalysis;
use crate::token::Token;

/// The settings of a server.
#[derive(Clone)]
pub struct Settings {
    /// The required `Authorization` value; `None` if requests are not authenticated.
    pub token: Option<Token>,
    /// Maximum size of the response cache, in bytes.
    pub cache_bytes: usize,
    /// Maximum total size of the responses in flight, in bytes.
    pub max_in_flight_bytes: usize,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Maximum number of large responses that are computed concurrently.
    pub max_concurrent_queries: usize,
    /// Maximum number of large responses that are queued.
    pub max_queued_queries: usize,
    /// Maximum time to compute a large response.
    pub query_timeout: Duration,
    /// Maximum size of a request's body, in bytes.
    pub max_body_bytes: usize,
    /// Timeout for receiving a request head, and for idle connections.
    pub head_timeout: Duration,
    /// Maximum time to receive a body, regardless of its size.
    pub body_timeout: Duration,
    /// Time after the start of a body before `body_rate` applies.
    pub body_grace: Duration,
    /// Minimum receive rate of a body after `body_grace`, in bytes per second.
    pub body_rate: u32,
    /// Maximum time that a client may take without reading any of the response.
    pub write_timeout: Duration,
    /// Maximum time for requests in progress to finish at shutdown.
    pub shutdown_timeout: Duration,
    /// The allowed host names.
    pub hosts: HostPolicy,
    /// Receives an entry for every request after its response is computed.
    pub access_log: Option<AccessLog>,
    /// Returns the reason why the server is degraded, which `/healthz` shows. It is called for each health check.
    pub degradation: Option<DegradationProbe>,
    /// Compares bundles and finds lines; if it is `None`, `/compare` and `/locate` do not exist.
    pub analysis: Option<Arc<dyn BundleAnalysis>>,
    /// The hook that is called when a large response is freed because it was sent or its client disconnected.
    pub on_release: Option<ReleaseHook>,
}

/// A hook that runs after memory was freed.
pub type ReleaseHook = Arc<dyn Fn() + Send + Sync>;

/// Returns the reason why a server is degraded; `None` if it is not degraded. Any client can read the reason.
pub type DegradationProbe = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Receives access-log entries.
pub type AccessLog = Arc<dyn Fn(&AccessLogEntry<'_>) + Send + Sync>;

/// An access-log entry: a request and its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessLogEntry<'r> {
    /// The HTTP method.
    pub method: &'r str,
    /// The path as sent by the client, without the query string. The query string is not logged.
    pub path: &'r str,
    /// The status of the response.
    pub status: u16,
    /// The time from the arrival of the request's head until its response is computed.
    pub took: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            token: None,
            cache_bytes: 64 << 20,
            max_in_flight_bytes: 1 << 30,
            max_connections: 1024,
            max_concurrent_queries: std::thread::available_parallelism().map_or(2, usize::from),
            max_queued_queries: 64,
            query_timeout: Duration::from_mins(1),
            max_body_bytes: 1 << 20,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_grace: Duration::from_secs(5),
            body_rate: 32 << 10,
            write_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(10),
            hosts: HostPolicy::Any,
            access_log: None,
            degradation: None,
            analysis: None,
            on_release: None,
        }
    }
}
