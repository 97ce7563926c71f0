//! The limits of a server, and the observers of what it does.

use std::sync::Arc;
use std::time::Duration;

use crate::admission::HostPolicy;
use crate::token::Token;

/// What a server allows.
#[derive(Clone)]
pub struct Settings {
    /// What `Authorization` must be; without one, anybody may ask.
    pub token: Option<Token>,
    /// Bytes of answers that are remembered.
    pub answers: usize,
    /// Bytes of answers that may be on their way.
    pub in_flight: usize,
    /// Connections.
    pub connections: usize,
    /// How many large answers are made at a time.
    pub at_a_time: usize,
    /// How many of them wait.
    pub waiting: usize,
    /// How long one of them may take.
    pub query_time: Duration,
    /// Bytes of a request's body.
    pub body: usize,
    /// How long a client may take to send the head of a request, or to send nothing at all.
    pub head_time: Duration,
    /// How long a client may take to send a body, however much of it has come.
    pub body_time: Duration,
    /// How long a client may take to send a body of which little has come; every byte adds its share of `body_rate`.
    pub body_grace: Duration,
    /// Bytes per second of a body that a client has to send after `body_grace`.
    pub body_rate: u32,
    /// How long a client may read nothing.
    pub patience: Duration,
    /// How long requests have to end when the server does.
    pub wind_down: Duration,
    /// The names that it answers to.
    pub hosts: HostPolicy,
    /// Who hears of every request that was answered.
    pub heard: Option<Hearer>,
    /// Called when a large answer is gone from memory: sent, or given up with its client.
    pub released: Option<ReleaseHook>,
}

/// Called when memory became free.
pub type ReleaseHook = Arc<dyn Fn() + Send + Sync>;

/// Hears of requests.
pub type Hearer = Arc<dyn Fn(&Heard<'_>) + Send + Sync>;

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard<'r> {
    /// Its method.
    pub method: &'r str,
    /// Its path as it was sent, without the query, which is not logged.
    pub path: &'r str,
    /// The status of the answer.
    pub status: u16,
    /// How long it took to make it.
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
