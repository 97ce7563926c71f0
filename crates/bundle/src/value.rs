//! The values of a bundle: immutable JSON with sorted keys.

use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

use compact_str::CompactString;
use triomphe::ThinArc;

use crate::intern::{self, HASHER, InternHandle, InternTable, LocalCache};
use crate::keys::{Key, KeySet};

/// A JSON value of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A larger integer, as decimal digits.
    BigInt(Box<str>),
    /// A number with a point or an exponent; always finite.
    Float(f64),
    /// A string. Up to 24 bytes are stored inline.
    Str(CompactString),
    /// A list.
    List(Box<[Value]>),
    /// A map.
    Map(Map),
}

/// A map, sorted by key. Clones share the values. References to the same path also share their values, which
/// are interned.
#[derive(Clone)]
pub struct Map {
    keys: KeySet,
    /// **Invariant:** one value per key, in the order of the keys.
    values: Values,
}

type Values = ThinArc<(), Value>;

/// References to longer paths are not interned: an interned value can outlive its map.
const MAX_INTERNED_PATH: usize = 1024;

thread_local! {
    static LOCAL_CACHE: LocalCache<Values> = const { LocalCache::new(Vec::new()) };
}
/// The interned values of all maps that are references.
static REFERENCES: LazyLock<InternTable<Values>> = LazyLock::new(InternTable::default);

impl InternHandle for Values {
    fn handle_count(&self) -> usize {
        ThinArc::strong_count(self)
    }
}

impl Value {
    /// Creates a string value.
    pub fn str(text: &str) -> Self {
        Value::Str(text.into())
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The map, if this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// Whether this is `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The value at a JSON pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let mut at = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            at = match at {
                Value::Map(map) => map.get(&token)?,
                Value::List(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(at)
    }
}

impl Map {
    /// Creates a map of `entries` in any order. If a key occurs more than once, the last one is used.
    pub fn new<K: AsRef<str>>(mut entries: Vec<(K, Value)>) -> Self {
        Self::drain(&mut entries, 0)
    }

    /// Creates a map of the entries starting at index `start`, and removes these entries from the vector.
    pub(crate) fn drain<K: AsRef<str>>(entries: &mut Vec<(K, Value)>, start: usize) -> Self {
        if !entries[start..].is_sorted_by(|a, b| a.0.as_ref() < b.0.as_ref()) {
            entries[start..].sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
            // Equal keys are adjacent and in the given order; the last one is kept.
            let mut last = start;
            for next in start + 1..entries.len() {
                last += usize::from(entries[next].0.as_ref() != entries[last].0.as_ref());
                entries.swap(last, next);
            }
            entries.truncate(last + 1);
        }
        let keys = KeySet::of(entries[start..].iter().map(|entry| entry.0.as_ref()));
        Self::with_values(keys, entries.drain(start..).map(|(_, value)| value))
    }

    /// Creates a map of these keys and, in the same order, the values starting at index `start`, which are
    /// removed from the vector.
    pub(crate) fn from_values(keys: &KeySet, values: &mut Vec<Value>, start: usize) -> Self {
        Self::with_values(keys.clone(), values.drain(start..))
    }

    fn with_values(keys: KeySet, mut values: impl ExactSizeIterator<Item = Value>) -> Self {
        debug_assert_eq!(keys.len(), values.len(), "each key has a value");
        if keys.is_reference() {
            let value = values.next();
            let values = match &value {
                Some(Value::Str(path)) if path.len() <= MAX_INTERNED_PATH => Self::reference(path),
                _ => Values::from_header_and_iter((), value.into_iter()),
            };
            return Self { keys, values };
        }
        Self { keys, values: Values::from_header_and_iter((), values) }
    }

    /// The interned values of a reference.
    fn reference(path: &CompactString) -> Values {
        let is = |known: &Values| matches!(&known.slice, [Value::Str(text)] if text == path);
        let make = || ThinArc::from_header_and_iter((), [Value::Str(path.clone())].into_iter());
        intern::intern(&LOCAL_CACHE, &REFERENCES, HASHER.hash_one(path.as_str()), is, make)
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.at(self.keys.index_of(key)?)
    }

    /// The value at an [index](KeySet::index_of) of the key set.
    pub fn at(&self, place: usize) -> Option<&Value> {
        self.values.slice.get(place)
    }

    /// A number that identifies the allocation of the values while it is alive. Equal numbers mean equal
    /// values.
    pub fn id(&self) -> usize {
        self.values.slice.as_ptr().addr()
    }

    /// The key set, for lookups of the same key in many maps.
    pub fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> + DoubleEndedIterator {
        self.keys.as_slice().iter().zip(&self.values.slice)
    }

    /// The values, in the order of their keys.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values.slice
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.values.slice.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.values.slice.is_empty()
    }

    /// The map with `key` set to `value`.
    #[must_use]
    pub fn with(&self, key: &str, value: Value) -> Self {
        let mut entries: Vec<(&str, Value)> = Vec::with_capacity(self.len() + 1);
        entries.extend(self.iter().map(|(key, value)| (key.as_str(), value.clone())));
        entries.push((key, value));
        Self::new(entries)
    }
}

impl Map {
    /// The map without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let others = self.iter().filter(|(known, _)| known.as_str() != key);
        Self::new(others.map(|(key, value)| (key.as_str(), value.clone())).collect())
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new::<&str>(Vec::new())
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && (self.id() == other.id() || self.values.slice == other.values.slice)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_sorted_and_the_last_of_equal_keys_is_used() {
        let entry = |key: &str, number| (key.to_owned(), Value::Int(number));
        let map = Map::new(vec![entry("b", 1), entry("a", 2), entry("b", 3), entry("b", 4)]);
        let flat: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        assert_eq!(flat, [("a", Value::Int(2)), ("b", Value::Int(4))]);
        let map = map.with("aa", Value::Null).with("b", Value::Int(5));
        assert_eq!(map.get("b"), Some(&Value::Int(5)));
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn a_value_is_three_words() {
        assert_eq!(size_of::<Value>(), 3 * size_of::<usize>());
    }
}
