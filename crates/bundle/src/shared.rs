//! Interning: one allocation per distinct value in the process.
//!
//! A table of shards, each with its own lock, finds the value by hash. In front of it, each thread has a
//! small direct-mapped cache, so that most lookups take no lock.
//!
//! **Invariant:** values that are no longer used are removed before a shard has doubled in size. The thread
//! caches and a minimum per shard can keep some thousand values alive indefinitely, so only small values may
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
pub trait Handle: Clone {
    /// Number of live handles, including those of the table and of thread caches.
    fn holders(&self) -> usize;
}

/// Number of slots of a thread's cache.
const REMEMBERED: usize = 1024;

/// A thread's cache: one slot per hash modulo the number of slots, with the full hash to skip most
/// comparisons.
pub type Recent<T> = RefCell<Vec<Option<(u64, T)>>>;

/// Interns a value: returns the value for which `is` holds, or inserts the result of `make`. `hash` is its
/// hash. Holds the lock of one shard while `is` and `make` run.
pub fn one<T: Handle + 'static>(
    recent: &'static LocalKey<Recent<T>>,
    table: &Table<T>,
    hash: u64,
    is: impl Fn(&T) -> bool,
    make: impl FnOnce() -> T,
) -> T {
    recent.with_borrow_mut(|recent| {
        recent.resize(REMEMBERED, None);
        let slot = &mut recent[usize::try_from(hash % REMEMBERED as u64).unwrap_or(0)];
        if let Some((other, known)) = slot
            && *other == hash
            && is(known)
        {
            return known.clone();
        }
        let part = &table.0[usize::try_from(hash >> 32).unwrap_or(0) % PARTS];
        let found = part.lock().one(hash, is, make);
        slot.insert((hash, found)).1.clone()
    })
}

/// All interned values, in shards by hash.
pub struct Table<T>([Mutex<Part<T>>; PARTS]);

/// Number of shards.
const PARTS: usize = 16;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

/// The interned values of one shard.
struct Part<T> {
    /// Values with their hashes.
    known: HashTable<(u64, T)>,
    /// Number of values after the last sweep.
    swept: usize,
}

/// A shard with fewer values is never swept.
const FEW: usize = 4096 / PARTS;

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { known: HashTable::new(), swept: 0 }
    }
}

impl<T: Handle> Part<T> {
    fn one(&mut self, hash: u64, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> T {
        if self.known.len() >= FEW.max(2 * self.swept) {
            self.sweep();
        }
        let found = |(other, known): &(u64, T)| *other == hash && is(known);
        let entry = self.known.entry(hash, found, |(hash, _)| *hash).or_insert_with(|| (hash, make()));
        entry.get().1.clone()
    }

    fn sweep(&mut self) {
        self.known.retain(|(_, known)| known.holders() > 1);
        self.known.shrink_to(2 * self.known.len(), |(hash, _)| *hash);
        self.swept = self.known.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    impl Handle for Arc<str> {
        fn holders(&self) -> usize {
            Arc::strong_count(self)
        }
    }

    #[test]
    fn unused_values_are_swept() {
        let mut part = Part::default();
        let mut one = |text: &str| {
            // A hash with many collisions.
            let hash = text.len() as u64;
            let found: Arc<str> = part.one(hash, |known: &Arc<str>| **known == *text, || text.into());
            (found, part.known.len())
        };
        let (kept, _) = one("kept");
        for number in 0..3 * FEW {
            let (_, count) = one(&number.to_string());
            assert!(count <= FEW, "{count}");
        }
        assert!(Arc::ptr_eq(&one("kept").0, &kept));
    }
}
