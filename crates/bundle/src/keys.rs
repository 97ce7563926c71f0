//! The keys of maps. Maps with the same keys share them.
//!
//! A data repo has a hundred thousand maps and some hundred sets of keys. So a map holds its values and a handle to its
//! keys: it is small, it is read without looking at its keys again, and who asks many maps for the same key looks for
//! it once per set of keys.

use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, OnceLock};

use crate::json::write_python_str;
use crate::shared::{self, HASHER, Handle, Recent, Table};

/// A key of a map.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// The text.
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

/// The keys of a map, ascending by their bytes, each once.
#[derive(Clone)]
pub struct Keys(Arc<Set>);

struct Set {
    hash: u64,
    keys: Box<[Key]>,
    is_reference: bool,
    /// Whether other maps may have them.
    is_shared: bool,
    /// How they are written, if somebody has asked.
    written: OnceLock<Written>,
}

/// What stands before each value when a map is written.
struct Written {
    text: Box<[u8]>,
    /// Where each part ends.
    ends: Box<[usize]>,
}

/// A map whose keys have more bytes than this is one of a kind: they are not shared, and nobody holds them after it.
const MOST_SHARED: usize = 4096;

thread_local! {
    static RECENT: Recent<Keys> = const { Recent::new(Vec::new()) };
}
static ALL: LazyLock<Table<Keys>> = LazyLock::new(Table::default);

impl Handle for Keys {
    fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl Keys {
    /// These keys. They must be ascending, each once.
    pub(crate) fn of<'k>(keys: impl ExactSizeIterator<Item = &'k str> + Clone) -> Self {
        debug_assert!(keys.clone().is_sorted_by(|a, b| a < b), "keys are ascending");
        let mut hasher = HASHER.build_hasher();
        keys.clone().for_each(|key| key.hash(&mut hasher));
        let hash = hasher.finish();
        if keys.clone().map(|key| key.len() + 1).sum::<usize>() > MOST_SHARED {
            return Self::new(hash, false, keys);
        }
        let make = || Self::new(hash, true, keys.clone());
        shared::one(&RECENT, &ALL, hash, |known| known.is(hash, keys.clone()), make)
    }

    fn new<'k>(hash: u64, is_shared: bool, keys: impl Iterator<Item = &'k str>) -> Self {
        let keys: Box<[Key]> = keys.map(|key| Key(key.into())).collect();
        let is_reference = matches!(&*keys, [one] if one.as_str() == "$ref");
        Self(Arc::new(Set { hash, keys, is_reference, is_shared, written: OnceLock::new() }))
    }

    /// What stands before each value when a map of these keys is written as Python does. Nothing is kept of maps that are one of a kind.
    pub(crate) fn written(&self) -> Option<impl Iterator<Item = &[u8]>> {
        if !self.0.is_shared {
            return None;
        }
        let Written { text, ends } = self.0.written.get_or_init(|| {
            let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(self.len()));
            for (index, key) in self.all().iter().enumerate() {
                text.push(if index > 0 { b',' } else { b'{' });
                write_python_str(key.as_str(), &mut text);
                text.push(b':');
                ends.push(text.len());
            }
            Written { text: text.into(), ends: ends.into() }
        });
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Some(starts.zip(ends).map(|(start, end)| &text[start..*end]))
    }

    fn is<'k>(&self, hash: u64, keys: impl ExactSizeIterator<Item = &'k str>) -> bool {
        self.0.hash == hash && self.len() == keys.len() && self.all().iter().map(Key::as_str).eq(keys)
    }

    /// Where the value of `key` is in a map of these keys.
    pub fn place(&self, key: &str) -> Option<usize> {
        self.0.keys.binary_search_by(|known| known.as_str().cmp(key)).ok()
    }

    /// Whether a map of these keys refers to a datafile: `$ref` is its one key.
    pub fn is_reference(&self) -> bool {
        self.0.is_reference
    }

    /// Whether the two are not only equal but the same. Equal ones mostly are.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that only these keys have, as long as somebody holds them.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The keys, ascending.
    pub(crate) fn all(&self) -> &[Key] {
        &self.0.keys
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.keys.is_empty()
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self::of([].into_iter())
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0.hash == other.0.hash && self.0.keys == other.0.keys
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_the_same_in_every_thread() {
        let make = || Keys::of(["a", "b"].into_iter());
        let other = std::thread::spawn(make).join().expect("a thread that ends");
        assert!(make().is_same(&other));
        assert!(!make().is_same(&Keys::of(["a"].into_iter())));
        assert_eq!((make().place("b"), make().place("c")), (Some(1), None));
    }
}
