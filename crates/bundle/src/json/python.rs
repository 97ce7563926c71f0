//! Writes JSON like Python's `json.dumps(sort_keys=True, separators=(",", ":"))`.

use qontract_python_json::{write_float, write_str};

use crate::value::Value;

/// Appends `value`.
///
/// ```
/// use qontract_bundle::{Value, json};
/// let mut out = Vec::new();
/// json::write_python(&Value::List(Box::new([Value::Float(1e16), Value::str("é")])), &mut out);
/// assert_eq!(out, br#"[1e+16,"\u00e9"]"#);
/// ```
pub fn write_python(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::BigInt(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Float(number) => write_float(*number, out),
        Value::Str(text) => write_str(text, out),
        Value::List(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_python(item, out);
            }
            out.push(b']');
        }
        Value::Map(map) if map.is_empty() => out.extend_from_slice(b"{}"),
        Value::Map(map) => {
            if let Some(keys) = map.keys().prefixes() {
                for (key, value) in keys.zip(map.values()) {
                    out.extend_from_slice(key);
                    write_python(value, out);
                }
            } else {
                for (index, (key, value)) in map.iter().enumerate() {
                    out.push(if index > 0 { b',' } else { b'{' });
                    write_str(key.as_str(), out);
                    out.push(b':');
                    write_python(value, out);
                }
            }
            out.push(b'}');
        }
    }
}
