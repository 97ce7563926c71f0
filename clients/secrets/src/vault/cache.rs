//! What was read lately, and what is being read right now.
//!
//! **Invariant:** bounded in number and in time; several who ask for the same at once are one request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qontract_concurrency::OnceMap;
use tokio::time::Instant;

use super::Found;
use crate::error::SecretsError;

/// What is remembered, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// How long a latest version is taken for the latest.
    pub latest: Duration,
    /// How long a version that was asked for by number is kept, and how long a mount is believed to have its engine.
    pub pinned: Duration,
    /// How many secrets are kept.
    pub entries: usize,
}

impl Default for Caching {
    fn default() -> Self {
        Self { latest: Duration::from_mins(1), pinned: Duration::from_mins(10), entries: 2048 }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub path: String,
    pub version: Option<u64>,
}

type Outcome = Result<Arc<Found>, SecretsError>;

/// What was read lately, and what is being read.
pub(super) struct Cache {
    caching: Caching,
    entries: OnceMap<Key, Result<CachedSecret, SecretsError>>,
}

/// A secret that was read, and when it is read again.
#[derive(Clone)]
struct CachedSecret {
    found: Arc<Found>,
    expires: Instant,
}

impl Cache {
    pub fn new(caching: Caching) -> Self {
        Self { caching, entries: OnceMap::default() }
    }

    /// The cached secret, or what `load` reads. Callers that wait for one read share its failure, which is not cached.
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

    /// Removes what has expired and, if that is not enough, what expires first. What is being read stays.
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

    /// Removes all versions of a secret. A read that is under way is not cached.
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
