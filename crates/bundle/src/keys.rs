//! Interned key sets: maps with the same keys share them.
//!
//! A data repo has a hundred thousand maps and a few hundred distinct key sets. Therefore a map holds its
//! values and a handle to its key set. This makes maps small, and code that looks up the same key in many
//! maps searches once per key set.

use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, OnceLock};

use crate::intern::{self, HASHER, InternHandle, InternTable, LocalCache};

/// A key of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// The key as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The keys of a map, sorted by their bytes, without duplicates. Key sets are interned: equal key sets are
/// usually the same allocation.
#[derive(Clone)]
pub struct KeySet(Arc<KeySetData>);

struct KeySetData {
    hash: u64,
    keys: Box<[Key]>,
    is_reference: bool,
    /// Whether the set is interned.
    is_interned: bool,
    /// The JSON before each value, computed on first use.
    prefixes: OnceLock<KeyPrefixes>,
}

/// The JSON text before each value of a map: `{"a":`, `,"b":` and so on.
struct KeyPrefixes {
    text: Box<[u8]>,
    /// The end of each prefix in `text`.
    ends: Box<[usize]>,
}

/// Key sets with more bytes than this are not interned: they are unlikely to occur twice, and an interned set
/// can outlive its map.
const MAX_INTERNED_BYTES: usize = 4096;

thread_local! {
    static LOCAL_CACHE: LocalCache<KeySet> = const { LocalCache::new(Vec::new()) };
}
static INTERNED: LazyLock<InternTable<KeySet>> = LazyLock::new(InternTable::default);

impl InternHandle for KeySet {
    fn handle_count(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl KeySet {
    /// Interns a key set. The keys must be sorted, without duplicates.
    pub(crate) fn of<'k>(keys: impl ExactSizeIterator<Item = &'k str> + Clone) -> Self {
        debug_assert!(keys.clone().is_sorted_by(|a, b| a < b), "keys are ascending");
        let mut hasher = HASHER.build_hasher();
        keys.clone().for_each(|key| key.hash(&mut hasher));
        let hash = hasher.finish();
        if keys.clone().map(|key| key.len() + 1).sum::<usize>() > MAX_INTERNED_BYTES {
            return Self::new(hash, false, keys);
        }
        let make = || Self::new(hash, true, keys.clone());
        intern::intern(&LOCAL_CACHE, &INTERNED, hash, |known| known.matches(hash, keys.clone()), make)
    }

    fn new<'k>(hash: u64, is_shared: bool, keys: impl Iterator<Item = &'k str>) -> Self {
        let keys: Box<[Key]> = keys.map(|key| Key(key.into())).collect();
        let is_reference = matches!(&*keys, [one] if one.as_str() == "$ref");
        Self(Arc::new(KeySetData {
            hash,
            keys,
            is_reference,
            is_interned: is_shared,
            prefixes: OnceLock::new(),
        }))
    }

    /// The JSON text before each value of a map with these keys, in Python's format. `None` if the set is not
    /// interned.
    pub(crate) fn prefixes(&self) -> Option<impl Iterator<Item = &[u8]>> {
        if !self.0.is_interned {
            return None;
        }
        let KeyPrefixes { text, ends } = self.0.prefixes.get_or_init(|| {
            let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(self.len()));
            for (index, key) in self.as_slice().iter().enumerate() {
                text.push(if index > 0 { b',' } else { b'{' });
                qontract_python_json::write_str(key.as_str(), &mut text);
                text.push(b':');
                ends.push(text.len());
            }
            KeyPrefixes { text: text.into(), ends: ends.into() }
        });
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Some(starts.zip(ends).map(|(start, end)| &text[start..*end]))
    }

    fn matches<'k>(&self, hash: u64, keys: impl ExactSizeIterator<Item = &'k str>) -> bool {
        self.0.hash == hash && self.len() == keys.len() && self.as_slice().iter().map(Key::as_str).eq(keys)
    }

    /// The index of the value of `key` in a map with these keys.
    pub fn index_of(&self, key: &str) -> Option<usize> {
        self.0.keys.binary_search_by(|probe| probe.as_str().cmp(key)).ok()
    }

    /// Whether a map with these keys is a reference to a datafile: `$ref` is its only key.
    pub fn is_reference(&self) -> bool {
        self.0.is_reference
    }

    /// Whether two key sets are the same allocation. Equal interned sets usually are.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that identifies this allocation while it is alive.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The keys, sorted.
    pub(crate) fn as_slice(&self) -> &[Key] {
        &self.0.keys
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }
}

impl Default for KeySet {
    fn default() -> Self {
        Self::of([].into_iter())
    }
}

impl PartialEq for KeySet {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.hash == other.0.hash && self.0.keys == other.0.keys
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_the_same_in_every_thread() {
        let make = || KeySet::of(["a", "b"].into_iter());
        let other = std::thread::spawn(make).join().expect("a thread that ends");
        assert!(make().is_same(&other));
        assert!(!make().is_same(&KeySet::of(["a"].into_iter())));
        assert_eq!((make().index_of("b"), make().index_of("c")), (Some(1), None));
    }
}
