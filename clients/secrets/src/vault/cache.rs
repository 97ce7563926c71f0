//! What was read lately, and what is being read right now.
//!
//! **Invariant:** bounded in number and in time; several who ask for the same at once are one request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
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
type Load = BoxFuture<'static, Outcome>;

/// What was read lately.
pub(super) struct Cache {
    caching: Caching,
    slots: Mutex<BTreeMap<Key, Slot>>,
    numbers: AtomicU64,
}

/// What is known about a key. The numbers tell one reading from the next.
enum Slot {
    /// Being read, for as long as somebody waits for it.
    Loading(u64, WeakShared<Load>),
    /// Read.
    Ready(Arc<Found>, Instant),
}

impl Cache {
    pub fn new(caching: Caching) -> Self {
        Self { caching, slots: Mutex::default(), numbers: AtomicU64::default() }
    }

    /// What is known, or what `load` reads.
    pub async fn get(
        self: &Arc<Self>,
        key: Key,
        load: impl FnOnce(Key) -> BoxFuture<'static, Result<Found, SecretsError>>,
    ) -> Outcome {
        let reading = {
            let mut slots = self.slots();
            match slots.get(&key) {
                Some(Slot::Ready(found, until)) if Instant::now() < *until => return Ok(Arc::clone(found)),
                Some(Slot::Loading(_, reading)) => reading.upgrade(),
                Some(Slot::Ready(..)) | None => None,
            }
            .unwrap_or_else(|| self.begin(&mut slots, key, load))
        };
        reading.await
    }

    fn begin(
        self: &Arc<Self>,
        slots: &mut BTreeMap<Key, Slot>,
        key: Key,
        load: impl FnOnce(Key) -> BoxFuture<'static, Result<Found, SecretsError>>,
    ) -> Shared<Load> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (cache, mine, load) = (Arc::clone(self), key.clone(), load(key.clone()));
        let reading = async move {
            let found = load.await.map(Arc::new);
            cache.end(&mine, number, found.as_ref().ok());
            found
        };
        let reading = reading.boxed().shared();
        if let Some(weak) = reading.downgrade() {
            slots.insert(key, Slot::Loading(number, weak));
        }
        reading
    }

    /// Keeps what was read, unless the reading was forgotten meanwhile.
    fn end(&self, key: &Key, number: u64, found: Option<&Arc<Found>>) {
        let mut slots = self.slots();
        if !matches!(slots.get(key), Some(Slot::Loading(current, _)) if *current == number) {
            return;
        }
        slots.remove(key);
        let Some(found) = found else { return };
        let now = Instant::now();
        let kept = if key.version.is_some() { self.caching.pinned } else { self.caching.latest };
        make_room(&mut slots, self.caching.entries, now);
        if slots.len() < self.caching.entries {
            slots.insert(key.clone(), Slot::Ready(Arc::clone(found), now + kept));
        }
    }

    /// Forgets all versions of a secret.
    pub fn forget(&self, path: &str) {
        self.slots().retain(|key, _| key.path != path);
    }

    /// The table is whole at any time, so a panic elsewhere does not spoil it.
    fn slots(&self) -> MutexGuard<'_, BTreeMap<Key, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of what is over and, if that is not enough, of what will be over first.
fn make_room(slots: &mut BTreeMap<Key, Slot>, entries: usize, now: Instant) {
    if slots.len() < entries {
        return;
    }
    slots.retain(|_, slot| match slot {
        Slot::Loading(_, reading) => reading.upgrade().is_some(),
        Slot::Ready(_, until) => now < *until,
    });
    if slots.len() < entries {
        return;
    }
    let ready = slots.iter().filter_map(|(key, slot)| match slot {
        Slot::Ready(_, until) => Some((*until, key)),
        Slot::Loading(..) => None,
    });
    if let Some(key) = ready.min().map(|(_, key)| key.clone()) {
        slots.remove(&key);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} secrets)", self.slots().len())
    }
}

#[cfg(test)]
mod tests;
