//! The settings of a stack.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::guard::SafePost;
use crate::rate_limit::OriginLimiters;
use crate::secret::Secret;

/// Settings of a stack; a clone shares the rate limiters of the original.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Timeout of a call, with all its attempts and back-off.
    pub deadline: Duration,
    /// Timeout of one attempt, up to the last byte of its body.
    pub attempt_timeout: Duration,
    /// Number of attempts after the first attempt. Only requests that may be repeated are retried.
    pub retries: u32,
    /// Back-off before the second attempt. The back-off doubles for each attempt, and half of it is jitter.
    pub initial_backoff: Duration,
    /// Maximum back-off, unless the target requests more.
    pub max_backoff: Duration,
    /// Maximum number of concurrent requests to one target; at least one.
    pub concurrency: usize,
    /// Maximum number of requests to one target per second.
    pub per_second: Option<NonZeroU32>,
    /// Maximum size of a response body, in bytes.
    pub max_body_bytes: usize,
    /// The allow-list of endpoints where `POST` only reads.
    pub safe_posts: Vec<SafePost>,
    /// Additional trusted certificates; each entry is PEM with one or more certificates.
    pub roots: Vec<Vec<u8>>,
    /// A client certificate and its private key, in one PEM string.
    pub identity: Option<Secret>,
    /// Whether calls go through proxies.
    pub proxies: Proxies,
    /// The rate limiters by origin. All runs of a process that share these limiters have one limit for each
    /// target.
    pub limiters: OriginLimiters,
}

/// Whether calls go through proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// Use proxies as set by `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
    Environment,
    /// Use no proxies.
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_mins(1),
            attempt_timeout: Duration::from_secs(30),
            retries: 4,
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(10),
            concurrency: 8,
            per_second: None,
            max_body_bytes: 64 << 20,
            safe_posts: Vec::new(),
            roots: Vec::new(),
            identity: None,
            proxies: Proxies::Environment,
            limiters: OriginLimiters::default(),
        }
    }
}
