//! A cache of the reads of one round: shards that need the same list share one request.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_concurrency::OnceMap;

/// The values that a round has read, by key. All clones share one cache. Entries are never invalidated, because each
/// round starts with an empty cache.
///
/// Each reader uses its own key type, so that keys of different readers never collide.
///
/// ```
/// # use std::sync::atomic::{AtomicUsize, Ordering};
/// use qontract_runtime::RoundCache;
///
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
/// struct GroupsOf(&'static str);
///
/// let (cache, requests) = (RoundCache::default(), AtomicUsize::new(0));
/// let list = || async { requests.fetch_add(1, Ordering::Relaxed); vec!["dev", "ops"] };
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let one = cache.get_or_read(GroupsOf("s1"), list()).await;
/// let two = cache.get_or_read(GroupsOf("s1"), list()).await;
/// assert_eq!((one, requests.load(Ordering::Relaxed)), (two, 1));
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct RoundCache(Arc<Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl RoundCache {
    /// Returns the value of this key. The first caller reads the value, and concurrent callers wait for it. If the
    /// first caller is cancelled, the next caller reads the value.
    pub async fn get_or_read<K, T, F>(&self, key: K, read: F) -> Arc<T>
    where
        K: Ord + Clone + Send + 'static,
        T: Send + Sync + 'static,
        F: Future<Output = T> + Send,
    {
        let entry = self.values::<K, T>().entry(key);
        entry.get_or_init(|| async move { Arc::new(read.await) }).await
    }

    /// The map that contains the values of type `T` with keys of type `K`.
    fn values<K: Ord + Clone + Send + 'static, T: Send + Sync + 'static>(&self) -> OnceMap<K, Arc<T>> {
        let mut maps = self.0.lock();
        let id = TypeId::of::<OnceMap<K, Arc<T>>>();
        let map = maps.entry(id).or_insert_with(|| Arc::new(OnceMap::<K, Arc<T>>::default()));
        map.downcast_ref::<OnceMap<K, Arc<T>>>().expect("maps are stored by their type").clone()
    }
}

impl fmt::Debug for RoundCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoundCache({} types)", self.0.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::RoundCache;

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_read() {
        let (memo, reads) = (RoundCache::default(), AtomicUsize::new(0));
        let read = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            reads.fetch_add(1, Ordering::Relaxed)
        };
        let all = futures_util::future::join_all((0..5).map(|_| memo.get_or_read("list", read()))).await;
        assert!(all.iter().all(|value| **value == 0), "{all:?}");
        assert_eq!(*memo.get_or_read("another", read()).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_first_caller_is_cancelled_the_next_one_reads() {
        let memo = RoundCache::default();
        let never = memo.get_or_read("list", std::future::pending::<u8>());
        assert!(tokio::time::timeout(Duration::from_secs(1), never).await.is_err());
        assert_eq!(*memo.get_or_read("list", std::future::ready(7u8)).await, 7);
    }

    #[tokio::test]
    async fn keys_and_values_of_other_types_are_other_entries() {
        let memo = RoundCache::default();
        assert_eq!(*memo.get_or_read(1u8, std::future::ready("a")).await, "a");
        assert_eq!(*memo.get_or_read(1u16, std::future::ready("b")).await, "b");
        assert_eq!(*memo.get_or_read(1u8, std::future::ready('c')).await, 'c');
        assert_eq!(*memo.get_or_read(1u8, std::future::ready("d")).await, "a");
    }
}
