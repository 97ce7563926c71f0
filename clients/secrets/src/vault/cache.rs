//! Cache of secrets, by path and version.
//!
//! **Invariant:** the number and the lifetime of entries are limited. Concurrent reads of a key share one
//! request. An entry is invalid when it expires or when its path is written. Failures are not cached.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qontract_concurrency::OnceMap;
use tokio::time::Instant;

use super::FetchedSecret;
use crate::error::SecretsError;

/// Lifetimes and size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Lifetime of a latest version.
    pub latest_ttl: Duration,
    /// Lifetime of a version that was requested by number, and of the KV version of a mount.
    pub pinned_ttl: Duration,
    /// Maximum number of cached secrets.
    pub max_entries: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { latest_ttl: Duration::from_mins(1), pinned_ttl: Duration::from_mins(10), max_entries: 2048 }
    }
}

/// The key of a cache entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheKey {
    pub path: String,
    pub version: Option<u64>,
}

type CacheResult = Result<Arc<FetchedSecret>, SecretsError>;

/// The cached secrets, by key. An entry without a value is being read.
pub(super) struct SecretCache {
    caching: CacheSettings,
    entries: OnceMap<CacheKey, Result<CachedSecret, SecretsError>>,
}

/// A cached secret and its expiry.
#[derive(Clone)]
struct CachedSecret {
    secret: Arc<FetchedSecret>,
    expires: Instant,
}

impl SecretCache {
    pub fn new(caching: CacheSettings) -> Self {
        Self { caching, entries: OnceMap::default() }
    }

    /// The cached secret, or the result of `load`. Callers that wait for the same read share its failure,
    /// which is not cached.
    pub async fn get(
        &self,
        key: CacheKey,
        load: impl FnOnce(CacheKey) -> BoxFuture<'static, Result<FetchedSecret, SecretsError>>,
    ) -> CacheResult {
        let lifetime = if key.version.is_some() { self.caching.pinned_ttl } else { self.caching.latest_ttl };
        let entry = self.entries.valid_entry(key.clone(), is_fresh);
        let secret = entry.get_or_init_if(Result::is_ok, || async {
            let found = load(key).await?;
            Ok(CachedSecret { secret: Arc::new(found), expires: Instant::now() + lifetime })
        });
        let secret = secret.await?;
        self.evict();
        Ok(secret.secret)
    }

    /// Removes expired entries. If that is not enough, also removes the entries that expire first. Entries
    /// that are being read are kept.
    fn evict(&self) {
        if self.entries.len() <= self.caching.max_entries {
            return;
        }
        self.entries.retain(|_, secret| secret.is_none_or(is_fresh));
        while self.entries.len() > self.caching.max_entries {
            let mut first: Option<(Instant, CacheKey)> = None;
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

    /// Removes all versions of a secret. The result of a read in progress is not cached.
    pub fn invalidate(&self, path: &str) {
        self.entries.retain(|key, _| key.path != path);
    }
}

fn is_fresh(secret: &Result<CachedSecret, SecretsError>) -> bool {
    secret.as_ref().is_ok_and(|secret| Instant::now() < secret.expires)
}

impl fmt::Debug for SecretCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} secrets)", self.entries.len())
    }
}

#[cfg(test)]
mod tests;
