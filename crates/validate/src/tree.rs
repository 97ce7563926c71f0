//! Converts values of a bundle to plain JSON values and JSON text.

use qontract_bundle::Value;
use serde_json::Value as Plain;

/// A value of a bundle as a plain JSON value.
pub fn plain(value: &Value) -> Plain {
    match value {
        Value::Null => Plain::Null,
        Value::Bool(value) => Plain::Bool(*value),
        Value::Int(value) => Plain::Number((*value).into()),
        Value::BigInt(digits) => {
            digits.parse::<u64>().map_or_else(|_| float(digits.parse().unwrap_or_default()), Plain::from)
        }
        Value::Float(value) => float(*value),
        Value::Str(text) => Plain::String(text.to_string()),
        Value::List(items) => Plain::Array(items.iter().map(plain).collect()),
        Value::Map(map) => {
            Plain::Object(map.iter().map(|(key, value)| (key.as_str().to_owned(), plain(value))).collect())
        }
    }
}

/// The canonical JSON text of a value: equal values have equal JSON.
pub fn text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    qontract_bundle::json::write_python(value, &mut text);
    text
}

fn float(value: f64) -> Plain {
    serde_json::Number::from_f64(value).map_or(Plain::Null, Plain::Number)
}
