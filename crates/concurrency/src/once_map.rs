//! A map whose values are computed once per key, while other callers of the same key wait (single-flight).

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

type Cells<K, V> = BTreeMap<K, Arc<OnceCell<V>>>;

/// Values by key, each computed by its first caller. Clones share the map.
///
/// A computation runs in its first caller: if that caller is cancelled, the next waiting caller computes the
/// value. An entry without a value is removed when its last caller stops waiting. The lock on the map is held
/// only for lookups, never during a computation.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let map = qontract_concurrency::OnceMap::default();
/// assert_eq!(map.entry("a").get_or_init(|| async { 1 }).await, 1);
/// assert_eq!(map.entry("a").get_or_init(|| async { 2 }).await, 1);
/// # }
/// ```
pub struct OnceMap<K, V>(Arc<Mutex<Cells<K, V>>>);

impl<K: Ord + Clone, V: Clone> OnceMap<K, V> {
    /// The entry of a key, with its value if it has one.
    pub fn entry(&self, key: K) -> OnceEntry<K, V> {
        self.valid_entry(key, |_| true)
    }

    /// The entry of a key. A value that is no longer valid is dropped first.
    pub fn valid_entry(&self, key: K, is_valid: impl FnOnce(&V) -> bool) -> OnceEntry<K, V> {
        let mut cells = self.0.lock();
        let cell = cells.entry(key.clone()).or_default();
        if cell.get().is_some_and(|value| !is_valid(value)) {
            *cell = Arc::default();
        }
        OnceEntry { map: self.clone(), key, cell: Arc::clone(cell) }
    }

    /// The entry of a key, if it exists or the map has fewer than `max_entries`.
    pub fn entry_within(&self, key: K, max_entries: usize) -> Option<OnceEntry<K, V>> {
        let mut cells = self.0.lock();
        if cells.len() >= max_entries && !cells.contains_key(&key) {
            return None;
        }
        let cell = Arc::clone(cells.entry(key.clone()).or_default());
        Some(OnceEntry { map: self.clone(), key, cell })
    }

    /// Keeps the entries for which `keep` returns true. For an entry without a value, `keep` is called with
    /// `None`. Callers that compute or await the value of a removed entry still get the value.
    pub fn retain(&self, mut keep: impl FnMut(&K, Option<&V>) -> bool) {
        self.0.lock().retain(|key, cell| keep(key, cell.get()));
    }
}

impl<K, V> OnceMap<K, V> {
    /// The number of entries, including those that are being computed.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, V> Clone for OnceMap<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Default for OnceMap<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, V> fmt::Debug for OnceMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnceMap({} entries)", self.len())
    }
}

/// The entry of one key, held by a caller that needs its value.
pub struct OnceEntry<K: Ord, V> {
    map: OnceMap<K, V>,
    key: K,
    cell: Arc<OnceCell<V>>,
}

impl<K: Ord, V: Clone> OnceEntry<K, V> {
    /// Returns the value. Computes it if it is missing and no other caller is computing it. The value stays
    /// in the map.
    pub async fn get_or_init<F: Future<Output = V>>(self, init: impl FnOnce() -> F) -> V {
        self.cell.get_or_init(init).await.clone()
    }

    /// Returns the value. Computes it if it is missing and no other caller is computing it. The value stays
    /// in the map if `keep` returns true; otherwise only the callers that are already waiting share it.
    pub async fn get_or_init_if<F: Future<Output = V>>(
        self,
        keep: impl FnOnce(&V) -> bool,
        init: impl FnOnce() -> F,
    ) -> V {
        let value = self.cell.get_or_init(init).await.clone();
        if !keep(&value) {
            self.remove_if(|_| true);
        }
        value
    }
}

impl<K: Ord, V> OnceEntry<K, V> {
    /// Removes this entry if it is still in the map and `is_over` returns true.
    fn remove_if(&self, is_over: impl FnOnce(&Arc<OnceCell<V>>) -> bool) {
        let mut cells = self.map.0.lock();
        if cells.get(&self.key).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell) && is_over(cell)) {
            cells.remove(&self.key);
        }
    }
}

impl<K: Ord, V> Drop for OnceEntry<K, V> {
    fn drop(&mut self) {
        if !self.cell.initialized() {
            // The map and this entry hold one reference each. Other references are created only under the
            // map's lock.
            self.remove_if(|cell| Arc::strong_count(cell) == 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use futures_util::{FutureExt as _, poll};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_computation() {
        let (map, computed) = (OnceMap::default(), AtomicUsize::new(0));
        let compute = || async {
            tokio::time::sleep(SECOND).await;
            computed.fetch_add(1, Ordering::Relaxed)
        };
        let all = join_all((0..5).map(|_| map.entry("a").get_or_init(compute))).await;
        assert_eq!(all, [0; 5]);
        assert_eq!(map.entry("b").get_or_init(compute).await, 1);
        assert_eq!(map.entry("a").get_or_init(compute).await, 0);
        assert_eq!(map.len(), 2);
    }

    #[tokio::test]
    async fn if_the_first_caller_is_cancelled_the_next_one_computes() {
        let map = OnceMap::default();
        let mut first = Box::pin(map.entry("a").get_or_init(pending::<u8>));
        let mut second = Box::pin(map.entry("a").get_or_init(|| ready(7)));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        drop(first);
        assert_eq!(map.len(), 1, "the second one still waits");
        assert_eq!(second.await, 7);
    }

    #[tokio::test]
    async fn an_entry_without_waiters_is_removed() {
        let map = OnceMap::<_, u8>::default();
        assert!(map.entry("a").get_or_init(pending).now_or_never().is_none());
        drop(map.entry("b"));
        assert!(map.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_is_not_kept_is_shared_by_current_waiters() {
        let (map, computed) = (OnceMap::default(), AtomicUsize::new(0));
        let get = || {
            map.entry("a").get_or_init_if(
                |_| false,
                || async {
                    tokio::time::sleep(SECOND).await;
                    computed.fetch_add(1, Ordering::Relaxed)
                },
            )
        };
        assert_eq!(join_all([get(), get(), get()]).await, [0; 3]);
        assert!(map.is_empty());
        assert_eq!(get().await, 1);
    }

    #[tokio::test]
    async fn a_value_that_is_not_valid_any_more_is_computed_again() {
        let map = OnceMap::default();
        for (limit, value, expect) in [(0, 1, 1), (1, 2, 1), (2, 3, 3)] {
            let entry = map.valid_entry("a", |value| *value >= limit);
            assert_eq!(entry.get_or_init(|| ready(value)).await, expect);
        }
    }

    #[tokio::test]
    async fn a_removed_entry_gives_its_value_only_to_its_waiters() {
        let map = OnceMap::default();
        let entry = map.entry("a");
        map.retain(|_, value| value.is_some());
        assert_eq!(entry.get_or_init(|| ready(1)).await, 1);
        assert_eq!(map.entry("a").get_or_init(|| ready(2)).await, 2);
    }

    #[test]
    fn a_full_map_has_no_new_entries() {
        let map = OnceMap::<_, u8>::default();
        let first = map.entry_within("a", 1);
        assert!(first.is_some() && map.entry_within("b", 1).is_none() && map.entry_within("a", 1).is_some());
        drop(first);
        assert!(map.entry_within("b", 1).is_some());
    }
}
