//! A dict: values by key, in insertion order. `1`, `1.0` and `true` are the same key.

use std::collections::HashMap;
use std::rc::Rc;

use super::Value;

/// The form of a key for comparison and hashing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    None,
    Int(i128),
    Float(u64),
    Text(Rc<str>),
    Tuple(Vec<Key>),
}

impl Key {
    /// The key of a value, if it is hashable.
    pub fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::None => Key::None,
            Value::Bool(value) => Key::Int(i128::from(*value)),
            Value::Int(number) => Key::Int(*number),
            Value::Float(number) => Key::of_float(*number),
            Value::Text(text) | Value::Markup(text) => Key::Text(Rc::clone(text)),
            Value::Tuple(tuple) => Key::Tuple(tuple.items.iter().map(Key::of).collect::<Option<_>>()?),
            _ => return None,
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::float_cmp,
        reason = "the result is compared"
    )]
    fn of_float(number: f64) -> Key {
        let whole = number as i128;
        if whole as f64 == number && number.abs() < 1e38 {
            Key::Int(whole)
        } else {
            Key::Float(number.to_bits())
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    indices: HashMap<Key, usize>,
}

impl Dict {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.indices.get(key).map(|place| &self.entries[*place].1)
    }

    pub fn get_text(&self, key: &str) -> Option<&Value> {
        self.get(&Key::Text(key.into()))
    }

    /// Inserts a value. If an equal key exists, replaces its value and keeps the existing key.
    pub fn insert(&mut self, key: Key, name: Value, value: Value) {
        if let Some(place) = self.indices.get(&key) {
            self.entries[*place].1 = value;
        } else {
            self.indices.insert(key, self.entries.len());
            self.entries.push((name, value));
        }
    }

    pub fn insert_text(&mut self, key: &str, value: Value) {
        let text: Rc<str> = key.into();
        self.insert(Key::Text(Rc::clone(&text)), Value::Text(text), value);
    }

    pub fn remove(&mut self, key: &Key) -> Option<Value> {
        let place = self.indices.remove(key)?;
        let (_, value) = self.entries.remove(place);
        #[expect(clippy::iter_over_hash_type, reason = "the order does not matter")]
        for other in self.indices.values_mut() {
            if *other > place {
                *other -= 1;
            }
        }
        Some(value)
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.indices.clear();
    }
}
