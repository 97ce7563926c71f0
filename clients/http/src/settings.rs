//! The limits of a stack.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::budget::Budgets;
use crate::guard::SafePost;
use crate::secret::Secret;

/// Limits on calls; a clone shares the budgets of the original.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a call may take, with all its attempts and pauses.
    pub deadline: Duration,
    /// How long one attempt may take, up to the last byte of its body.
    pub attempt: Duration,
    /// How many more attempts a call has after the first; only calls that may be repeated have them.
    pub retries: u32,
    /// How long the pause before the second attempt is; it doubles from one to the next, and half of it is chance.
    pub pause: Duration,
    /// What no pause exceeds, unless the target asks for more.
    pub longest_pause: Duration,
    /// How many requests one target gets at the same time; at least one.
    pub concurrency: usize,
    /// How many requests one target gets per second.
    pub per_second: Option<NonZeroU32>,
    /// How many bytes a body may have.
    pub largest_body: usize,
    /// Where `POST` only reads.
    pub safe_posts: Vec<SafePost>,
    /// Certificates to trust besides those that the machine trusts; each text is PEM, of one or several.
    pub roots: Vec<Vec<u8>>,
    /// A client certificate and its private key, as PEM in one text.
    pub identity: Option<Secret>,
    /// Whether calls go through proxies.
    pub proxies: Proxies,
    /// What targets have been given so far. Share it, and all runs of a process share one budget per target.
    pub budgets: Budgets,
}

/// Whether calls go through proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// As `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    Environment,
    /// They never do.
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_mins(1),
            attempt: Duration::from_secs(30),
            retries: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(10),
            concurrency: 8,
            per_second: None,
            largest_body: 64 << 20,
            safe_posts: Vec::new(),
            roots: Vec::new(),
            identity: None,
            proxies: Proxies::Environment,
            budgets: Budgets::default(),
        }
    }
}
