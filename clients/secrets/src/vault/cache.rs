//! Cache of secrets, by path and version.
//!
//! **Invariant:** the cache is bounded in number and in time; concurrent reads of the same key are one
//! request. An entry is invalid when it expires or when its path is written. Failures are not cached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qontract_concurrency::OnceMap;
use tokio::time::Instant;

use super::Found;
use crate::error::SecretsError;

/// Lifetimes and size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Lifetime of a latest version.
    pub latest: Duration,
    /// Lifetime of a version that was requested by number, and of the KV version of a mount.
    pub pinned: Duration,
    /// Maximum number of cached secrets.
    pub entries: usize,
}

impl Default for Caching {
    fn default() -> Self {
        Self { latest: Duration::from_mins(1), pinned: Duration::from_mins(10), entries: 2048 }
    }
}

/// The key of a cache entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub path: String,
    pub version: Option<u64>,
}

type Outcome = Result<Arc<Found>, SecretsError>;

/// The cache, with entries that are complete or being read.
pub(super) struct Cache {
    caching: Caching,
    entries: OnceMap<Key, Result<CachedSecret, SecretsError>>,
}

/// A cached secret and its expiry.
#[derive(Clone)]
struct CachedSecret {
    found: Arc<Found>,
    expires: Instant,
}

impl Cache {
    pub fn new(caching: Caching) -> Self {
        Self { caching, entries: OnceMap::default() }
    }

    /// The cached secret, or the result of `load`. Callers that wait for one read share its failure, which is
    /// not cached.
    pub async fn get(
        &self,
        key: Key,
        load: impl FnOnce(Key) -> BoxFuture<'static, Result<Found, SecretsError>>,
    ) -> Outcome {
        let lifetime = if key.version.is_some() { self.caching.pinned } else { self.caching.latest };
        let entry = self.entries.valid_entry(key.clone(), is_fresh);
        let secret = entry.get_or_init_if(Result::is_ok, || async {
            let found = load(key).await?;
            Ok(CachedSecret { found: Arc::new(found), expires: Instant::now() + lifetime })
        });
        let secret = secret.await?;
        self.evict();
        Ok(secret.found)
    }

    /// Removes expired entries and, if that is not enough, those that expire first. Entries being read stay.
    fn evict(&self) {
        if self.entries.len() <= self.caching.entries {
            return;
        }
        self.entries.retain(|_, secret| secret.is_none_or(is_fresh));
        while self.entries.len() > self.caching.entries {
            let mut first: Option<(Instant, Key)> = None;
            self.entries.retain(|key, secret| {
                if let Some(Ok(secret)) = secret
                    && first.as_ref().is_none_or(|(expires, first)| (secret.expires, key) < (*expires, first))
                {
                    first = Some((secret.expires, key.clone()));
                }
                true
            });
            let Some((_, first)) = first else { return };
            self.entries.retain(|key, _| *key != first);
        }
    }

    /// Removes all versions of a secret. A read in progress is not cached.
    pub fn forget(&self, path: &str) {
        self.entries.retain(|key, _| key.path != path);
    }
}

fn is_fresh(secret: &Result<CachedSecret, SecretsError>) -> bool {
    secret.as_ref().is_ok_and(|secret| Instant::now() < secret.expires)
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} secrets)", self.entries.len())
    }
}

#[cfg(test)]
mod tests;
