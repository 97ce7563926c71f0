//! The values of a bundle: JSON, immutable, keys sorted.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A key of a map. Equal keys of one build or load share their text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A JSON value as a bundle holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A larger whole number, as decimal text.
    BigInt(Box<str>),
    /// A number with a point or an exponent; always finite.
    Float(f64),
    /// Text.
    Str(Box<str>),
    /// Values in order.
    List(Box<[Value]>),
    /// Values by key.
    Map(Map),
}

/// Values by key, sorted by key.
///
/// **Invariant:** keys are in ascending order of their bytes, each once.
#[derive(Clone, Default, PartialEq)]
pub struct Map(Box<[(Key, Value)]>);

impl Value {
    /// Text.
    pub fn str(text: &str) -> Self {
        Value::Str(text.into())
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The map, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The values of the list, if it is one.
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
    /// A map of `entries` in any order; of equal keys the last one stays.
    pub fn new(mut entries: Vec<(Key, Value)>) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            // Equal keys stand together, the last given last: keep that one.
            entries.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Self(entries.into_boxed_slice())
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let place = self.0.binary_search_by(|entry| entry.0.as_str().cmp(key)).ok()?;
        Some(&self.0[place].1)
    }

    /// The value of `key`, looked for first where it was found in the map before: maps of one kind look alike.
    pub fn get_near(&self, key: &str, place: &mut usize) -> Option<&Value> {
        if let Some((known, value)) = self.0.get(*place)
            && known.as_str() == key
        {
            return Some(value);
        }
        *place = self.0.binary_search_by(|entry| entry.0.as_str().cmp(key)).ok()?;
        Some(&self.0[*place].1)
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Value)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The map with `key` set to `value`.
    #[must_use]
    pub fn with(self, key: Key, value: Value) -> Self {
        let mut entries = self.0.into_vec();
        match entries.binary_search_by(|entry| entry.0.cmp(&key)) {
            Ok(place) => entries[place].1 = value,
            Err(place) => entries.insert(place, (key, value)),
        }
        Self(entries.into_boxed_slice())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Keys met so far, so that equal ones share their text.
#[derive(Default)]
pub struct Keys(std::collections::HashSet<Key>);

/// Past this many different keys, sharing has no use and the table only costs.
const MOST_SHARED: usize = 100_000;

impl Keys {
    /// The shared key of `text`.
    pub fn key(&mut self, text: &str) -> Key {
        if let Some(key) = self.0.get(text) {
            return key.clone();
        }
        let key = Key::from(text);
        if self.0.len() < MOST_SHARED {
            self.0.insert(key.clone());
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_sorted_and_the_last_of_equal_keys_stays() {
        let entry = |key: &str, number| (Key::from(key), Value::Int(number));
        let map = Map::new(vec![entry("b", 1), entry("a", 2), entry("b", 3), entry("b", 4)]);
        let flat: Vec<_> = map.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        assert_eq!(flat, [("a", Value::Int(2)), ("b", Value::Int(4))]);
        let map = map.with(Key::from("aa"), Value::Null).with(Key::from("b"), Value::Int(5));
        assert_eq!(map.get("b"), Some(&Value::Int(5)));
        assert_eq!(map.len(), 3);
    }
}
