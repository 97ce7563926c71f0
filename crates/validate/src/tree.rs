//! The values of a bundle, as the JSON Schema library reads them: borrowed, never copied unless an error is told.

use std::borrow::Cow;

use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use jsonschema::types::JsonType;
use qontract_bundle::{Map, Value};
use serde_json::Value as Plain;

/// The representation of JSON that a bundle has.
pub struct BundleTree;

impl Json for BundleTree {
    type Node<'a> = &'a Value;
    type PreparedKey = Box<str>;
    type StringBuffer = Option<Value>;

    /// A look-up is a binary search: going through the keys pays only for small maps.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>(buffer: &mut Option<Value>, text: &str, f: impl FnOnce(&Value) -> T) -> T {
        f(buffer.insert(Value::str(text)))
    }
}

impl<'a> Node<'a, BundleTree> for &'a Value {
    type Object = &'a Map;
    type Array = &'a [Value];
    type Number = Number<'a>;

    fn as_object(&self) -> Option<&'a Map> {
        self.as_map()
    }

    fn as_array(&self) -> Option<&'a [Value]> {
        self.as_list()
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Number<'a>> {
        match self {
            Value::Int(value) => Some(Number::Int(*value)),
            Value::BigInt(digits) => Some(Number::Big(digits)),
            Value::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) => JsonType::Number,
            Value::Str(_) => JsonType::String,
            Value::List(_) => JsonType::Array,
            Value::Map(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Plain) -> bool {
        match (*self, expected) {
            (Value::Str(text), Plain::String(expected)) => **text == **expected,
            (Value::Str(_), _) | (_, Plain::String(_)) => false,
            (value, expected) => jsonschema::json::cmp::equal(&plain(value), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Plain> {
        Cow::Owned(plain(self))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self).addr()))
    }
}

impl<'a> Object<'a, BundleTree> for &'a Map {
    type Node = &'a Value;
    type MemberName = &'a str;
    type MembersIter = Box<dyn Iterator<Item = (&'a str, &'a Value)> + 'a>;

    fn len(&self) -> usize {
        Map::len(self)
    }

    fn get(&self, key: &Box<str>) -> Option<&'a Value> {
        Map::get(self, key)
    }

    fn members(&self) -> Self::MembersIter {
        Box::new(self.iter().map(|(key, value)| (key.as_str(), value)))
    }
}

impl<'a> Array<'a, BundleTree> for &'a [Value] {
    type Node = &'a Value;
    type ElementsIter = std::slice::Iter<'a, Value>;

    fn len(&self) -> usize {
        <[Value]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}

/// A number of a bundle.
#[derive(Clone, Copy, Debug)]
pub enum Number<'a> {
    /// Whole, 64 bits.
    Int(i64),
    /// Whole, larger.
    Big(&'a str),
    /// With a point.
    Float(f64),
}

impl JsonNumber for Number<'_> {
    fn as_u64(&self) -> Option<u64> {
        match self {
            Number::Int(value) => u64::try_from(*value).ok(),
            Number::Big(digits) => digits.parse().ok(),
            Number::Float(_) => None,
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(*value),
            Number::Big(_) | Number::Float(_) => None,
        }
    }

    fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "what does not fit is asked for as a whole number first"
            )]
            Number::Int(value) => Some(*value as f64),
            Number::Big(digits) => digits.parse().ok(),
            Number::Float(value) => Some(*value),
        }
    }

    fn as_str(&self) -> Cow<'_, str> {
        match self {
            Number::Int(value) => Cow::Owned(value.to_string()),
            Number::Big(digits) => Cow::Borrowed(digits),
            Number::Float(value) => Cow::Owned(value.to_string()),
        }
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(number(*self))
    }

    fn is_integer(&self) -> bool {
        match self {
            Number::Int(_) | Number::Big(_) => true,
            Number::Float(value) => value.fract() == 0.0,
        }
    }

    fn is_written_as_integer(&self) -> bool {
        !matches!(self, Number::Float(_))
    }
}

fn number(number: Number<'_>) -> serde_json::Number {
    if let Number::Int(value) = number {
        return value.into();
    }
    if let Some(value) = number.as_u64() {
        return value.into();
    }
    number.as_f64().and_then(serde_json::Number::from_f64).unwrap_or_else(|| 0.into())
}

/// A value of a bundle as a plain JSON value.
pub fn plain(value: &Value) -> Plain {
    match value {
        Value::Null => Plain::Null,
        Value::Bool(value) => Plain::Bool(*value),
        Value::Int(value) => Plain::Number(number(Number::Int(*value))),
        Value::BigInt(digits) => Plain::Number(number(Number::Big(digits))),
        Value::Float(value) => Plain::Number(number(Number::Float(*value))),
        Value::Str(text) => Plain::String(text.to_string()),
        Value::List(items) => Plain::Array(items.iter().map(plain).collect()),
        Value::Map(map) => {
            Plain::Object(map.iter().map(|(key, value)| (key.as_str().to_owned(), plain(value))).collect())
        }
    }
}

/// The value as one text: equal texts are equal values.
pub fn text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    qontract_bundle::json::write_python(value, &mut text);
    text
}
