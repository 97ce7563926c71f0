//! JSON as Python's `json.dumps(sort_keys=True, separators=(",", ":"))` writes it.

use qontract_yaml::float;

use super::{escape_unicode, plain_ascii, short_escape};
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
        Value::Float(number) => float::write_python(*number, out),
        Value::Str(text) => write_python_str(text, out),
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
            if let Some(keys) = map.keys().written() {
                for (key, value) in keys.zip(map.values()) {
                    out.extend_from_slice(key);
                    write_python(value, out);
                }
            } else {
                for (index, (key, value)) in map.iter().enumerate() {
                    out.push(if index > 0 { b',' } else { b'{' });
                    write_python_str(key.as_str(), out);
                    out.push(b':');
                    write_python(value, out);
                }
            }
            out.push(b'}');
        }
    }
}

/// Appends `text` in quotes, everything but printable ASCII escaped.
pub fn write_python_str(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let run = plain_ascii(&bytes[at..]);
        out.extend_from_slice(&bytes[at..at + run]);
        at += run;
        let Some(character) = text[at..].chars().next() else { break };
        match short_escape(bytes[at]) {
            Some(escape) => out.extend_from_slice(escape),
            None => escape_unicode(character, out),
        }
        at += character.len_utf8();
    }
    out.push(b'"');
}
