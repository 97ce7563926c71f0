//! JSON as Python's `json.dumps(sort_keys=True)` writes it, with a space behind each comma and colon.

use qontract_bundle::json::{write_python, write_python_str};
use serde_json::Value;

/// The text of a value.
pub fn text(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8(out).expect("what Python writes is ASCII")
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if number.is_f64() => {
                write_python(&qontract_bundle::Value::Float(float), out);
            }
            _ => out.extend_from_slice(number.to_string().as_bytes()),
        },
        Value::String(text) => write_python_str(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                write_python_str(key, out);
                out.extend_from_slice(b": ");
                write(value, out);
            }
            out.push(b'}');
        }
    }
}
