//! Equality of values as in Python: `1` equals `1.0`, and inside lists and maps also `true`.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash, Hasher};

use qontract_bundle::Value;

use super::numbers::{self, ExactNumber};

/// Whether a value equals the value of an `enum` or a `const`.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
        _ => equal_within(one, other),
    }
}

/// The index of the first item that equals an earlier one.
pub fn first_repeated(items: &[Value]) -> Option<usize> {
    let build = BuildHasherDefault::<DefaultHasher>::default();
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let mut hasher = build.build_hasher();
        matches!(item, Value::Bool(_)).hash(&mut hasher);
        hash_value(item, &mut hasher);
        let alike = seen.entry(hasher.finish()).or_default();
        if alike.iter().any(|before| equal(&items[*before], item)) {
            return Some(index);
        }
        alike.push(index);
    }
    None
}

fn equal_within(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::Str(one), Value::Str(other)) => one == other,
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal_within(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let mut pairs = one.iter().zip(other.iter());
            one.len() == other.len()
                && pairs.all(|((key, one), (other_key, other))| key == other_key && equal_within(one, other))
        }
        (Value::Bool(flag), number) | (number, Value::Bool(flag)) => match number {
            Value::Bool(other) => flag == other,
            _ => {
                numbers::compare(&Value::Int(i64::from(*flag)), number).is_some_and(std::cmp::Ordering::is_eq)
            }
        },
        _ => numbers::compare(one, other).is_some_and(std::cmp::Ordering::is_eq),
    }
}

/// Hashes a value; equal values have equal hashes.
fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Str(text) => (1_u8, text).hash(hasher),
        Value::List(items) => {
            (2_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Map(map) => {
            (3_u8, map.len()).hash(hasher);
            for (key, value) in map.iter() {
                key.hash(hasher);
                hash_value(value, hasher);
            }
        }
        Value::Bool(flag) => hash_integer(i64::from(*flag), hasher),
        Value::Int(value) => hash_integer(*value, hasher),
        Value::BigInt(_) | Value::Float(_) => match ExactNumber::of(value).and_then(|exact| exact.whole()) {
            None => (6_u8, numbers::float(value).unwrap_or_default().to_bits()).hash(hasher),
            Some(digits) if digits.is_empty() => hash_integer(0, hasher),
            Some(digits) => match digits.parse() {
                Ok(whole) => hash_integer(whole, hasher),
                Err(_) => (5_u8, digits).hash(hasher),
            },
        },
    }
}

fn hash_integer(value: i64, hasher: &mut impl Hasher) {
    (4_u8, value).hash(hasher);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: Vec<Value>) -> Value {
        Value::List(items.into_boxed_slice())
    }

    #[test]
    fn true_is_one_only_within_lists_and_maps() {
        assert!(!equal(&Value::Bool(true), &Value::Int(1)));
        assert!(equal(&list(vec![Value::Bool(true)]), &list(vec![Value::Int(1)])));
        assert!(equal(&Value::Float(1.0), &Value::Int(1)));
        assert!(!equal(&Value::Null, &Value::Int(0)));
    }

    #[test]
    fn items_are_repeated_if_they_are_equal() {
        let check = |items: Vec<Value>, expect| assert_eq!(first_repeated(&items), expect, "{items:?}");
        check(vec![Value::Int(1), Value::Bool(true), Value::Float(1.0)], Some(2));
        check(vec![list(vec![Value::Int(1)]), list(vec![Value::Bool(true)])], Some(1));
        check(vec![Value::Float(1e20), Value::BigInt("100000000000000000000".into())], Some(1));
        check(vec![Value::Float(-0.0), Value::Int(0)], Some(1));
        check(vec![Value::Float(0.5), Value::str("0.5"), Value::Null], None);
    }
}
