//! Things of which the process has one each, however often they are made.
//!
//! A table finds the one; each thread remembers what it found last, so that it need not ask the others. Many threads may ask at
//! once, so the table is in parts, by hash.
//!
//! **Invariant:** what nobody has any more is forgotten before the table has doubled. Some thousand small things may stay for
//! good, so nothing large may be shared.

use std::cell::RefCell;
use std::sync::LazyLock;
use std::thread::LocalKey;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;

/// Hashes what is shared.
pub static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// A handle to something that many can hold.
pub trait Handle: Clone {
    /// How many handles there are.
    fn holders(&self) -> usize;
}

/// How many things a thread remembers.
const REMEMBERED: usize = 1024;

/// What a thread found last, and the hash of each: who looks for another need not look at it.
pub type Recent<T> = RefCell<Vec<Option<(u64, T)>>>;

/// The one thing for which `is` holds; `hash` is its hash, and `make` makes it if there is none.
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

/// All that there is.
pub struct Table<T>([Mutex<Part<T>>; PARTS]);

/// In so many parts.
const PARTS: usize = 16;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

/// What there is of some hashes.
struct Part<T> {
    /// With their hashes.
    known: HashTable<(u64, T)>,
    /// How many there were after the last look for those that nobody has any more.
    swept: usize,
}

/// So few are never swept.
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
    fn what_nobody_has_is_forgotten() {
        let mut part = Part::default();
        let mut one = |text: &str| {
            // A hash that does not tell them apart well.
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
