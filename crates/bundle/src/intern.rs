//! Interning: one allocation per distinct value in the process.
//!
//! Values are looked up by hash in a table of shards, each with its own lock. Each thread also has a small
//! direct-mapped cache, so most lookups take no lock.
//!
//! **Invariant:** values that are no longer used are removed before a shard has doubled in size. The thread
//! caches and a minimum per shard can keep a few thousand values alive indefinitely, so only small values may
//! be interned.

use std::cell::RefCell;
use std::sync::LazyLock;
use std::thread::LocalKey;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;

/// Hashes interned values.
pub static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// A reference-counted handle to an interned value.
pub trait InternHandle: Clone {
    /// Number of live handles, including those of the table and of thread caches.
    fn handle_count(&self) -> usize;
}

/// Number of slots of a thread's cache.
const LOCAL_CACHE_SLOTS: usize = 1024;

/// A thread's cache: one slot per hash modulo the number of slots, with the full hash to skip most
/// comparisons.
pub type LocalCache<T> = RefCell<Vec<Option<(u64, T)>>>;

/// Interns a value: returns the value for which `is` holds, or inserts the result of `make`. `hash` is the
/// hash of the value. Holds the lock of one shard while `is` and `make` run.
pub fn intern<T: InternHandle + 'static>(
    recent: &'static LocalKey<LocalCache<T>>,
    table: &InternTable<T>,
    hash: u64,
    is: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
) -> T {
    recent.with_borrow_mut(|recent| {
        recent.resize(LOCAL_CACHE_SLOTS, None);
        let slot = &mut recent[usize::try_from(hash % LOCAL_CACHE_SLOTS as u64).unwrap_or(0)];
        if let Some((other, known)) = slot
            && *other == hash
            && is(known)
        {
            return known.clone();
        }
        let part = &table.0[usize::try_from(hash >> 32).unwrap_or(0) % SHARDS];
        let found = part.lock().get_or_insert(hash, is, make);
        slot.insert((hash, found)).1.clone()
    })
}

/// All interned values, in shards by hash.
pub struct InternTable<T>([Mutex<InternShard<T>>; SHARDS]);

/// Number of shards.
const SHARDS: usize = 16;

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

/// The interned values of one shard.
struct InternShard<T> {
    /// Values with their hashes.
    entries: HashTable<(u64, T)>,
    /// Number of values after the last sweep.
    swept_len: usize,
}

/// A shard with fewer values is never swept.
const MIN_SWEEP_LEN: usize = 4096 / SHARDS;

impl<T> Default for InternShard<T> {
    fn default() -> Self {
        Self { entries: HashTable::new(), swept_len: 0 }
    }
}

impl<T: InternHandle> InternShard<T> {
    fn get_or_insert(&mut self, hash: u64, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> T {
        if self.entries.len() >= MIN_SWEEP_LEN.max(2 * self.swept_len) {
            self.sweep();
        }
        let found = |(other, known): &(u64, T)| *other == hash && is(known);
        let entry = self.entries.entry(hash, found, |(hash, _)| *hash).or_insert_with(|| (hash, make()));
        entry.get().1.clone()
    }

    fn sweep(&mut self) {
        self.entries.retain(|(_, known)| known.handle_count() > 1);
        self.entries.shrink_to(2 * self.entries.len(), |(hash, _)| *hash);
        self.swept_len = self.entries.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    impl InternHandle for Arc<str> {
        fn handle_count(&self) -> usize {
            Arc::strong_count(self)
        }
    }

    #[test]
    fn unused_values_are_swept() {
        let mut part = InternShard::default();
        let mut one = |text: &str| {
            // A hash with many collisions.
            let hash = text.len() as u64;
            let found: Arc<str> =
                part.get_or_insert(hash, |known: &Arc<str>| **known == *text, || text.into());
            (found, part.entries.len())
        };
        let (kept, _) = one("kept");
        for number in 0..3 * MIN_SWEEP_LEN {
            let (_, count) = one(&number.to_string());
            assert!(count <= MIN_SWEEP_LEN, "{count}");
        }
        assert!(Arc::ptr_eq(&one("kept").0, &kept));
    }
}
