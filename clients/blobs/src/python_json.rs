//! JSON to the byte as Python's `json.dumps(value, sort_keys=True)` writes it: the established state store is read by both.

use std::fmt::Write as _;

use qontract_yaml::float::python_repr;
use serde_json::{Number, Value};

/// Writes a value.
pub(crate) fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => write_number(number, text),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            // Whatever the order of the map: Python sorts by characters, which is the order of their bytes.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_string(key, text);
                text.push_str(": ");
                write(value, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            ' '..='~' => text.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

fn write_number(number: &Number, text: &mut String) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => text.push_str(&python_repr(float)),
        None => {
            let _ = write!(text, "{number}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::dumps;

    fn check(value: &Value, expect: &str) {
        assert_eq!(dumps(value), expect);
    }

    #[test]
    fn keys_are_sorted_and_separators_are_wide() {
        check(
            &json!({"b": [1, true, null], "a": {"d": {}, "c": []}}),
            r#"{"a": {"c": [], "d": {}}, "b": [1, true, null]}"#,
        );
    }

    #[test]
    fn everything_but_ascii_is_escaped() {
        check(&json!("é\u{1F600}\u{7f}\u{1}\"\\\n"), r#""\u00e9\ud83d\ude00\u007f\u0001\"\\\n""#);
    }

    #[test]
    fn floats_are_as_python_prints_them() {
        for (float, expect) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_012, "1.2e-05"),
            (f64::from_bits(0x431c_c0e5_0492_1fcd), "2023347301156851.2"),
        ] {
            check(&json!(float), expect);
        }
    }
}
