//! Converts JSON values to YAML, and YAML to JSON values.

use qontract_diagnostics::{is_safe, sanitize_yaml};
use serde_json::Value;

use crate::{Limits, Node, parse};

/// Parses a YAML 1.1 document into a JSON value. The error is the message of the first finding.
///
/// ```
/// let value = qontract_yaml::json::read(b"ref: 12345e7\nenabled: yes\n").unwrap();
/// assert_eq!(value, serde_json::json!({"ref": "12345e7", "enabled": true}));
/// assert_eq!(qontract_yaml::json::print(&value), "---\nenabled: true\nref: 12345e7\n");
/// ```
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    let parsed = parse(bytes, &Limits::default());
    match parsed.document {
        Some(document) => Ok(value(document.root())),
        None => match parsed.findings.first() {
            Some(finding) => Err(finding.message.clone()),
            None => Ok(Value::Null),
        },
    }
}

/// The value of a node. A number that JSON cannot represent becomes a string.
pub fn value(node: Node<'_>) -> Value {
    match node.value() {
        crate::Value::Null => Value::Null,
        crate::Value::Bool(flag) => flag.into(),
        crate::Value::Int(number) => number.into(),
        crate::Value::BigInt(digits) => digits.into(),
        crate::Value::Float(number) => number.into(),
        crate::Value::Str(text) => text.into(),
        crate::Value::List(list) => list.iter().map(value).collect(),
        crate::Value::Map(map) => {
            Value::Object(map.iter().map(|entry| (entry.key.to_owned(), value(entry.value))).collect())
        }
    }
}

/// Prints a value as a YAML document.
pub fn print(value: &Value) -> String {
    let mut text = String::from("---\n");
    match value {
        Value::Array(items) if items.is_empty() => text.push_str("[]\n"),
        Value::Object(map) if map.is_empty() => text.push_str("{}\n"),
        Value::Array(_) | Value::Object(_) => block(value, 0, &mut text),
        scalar => text.push_str(&format!("{}\n", inline(scalar))),
    }
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Array(items) => {
            for item in items {
                let start = text.len();
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        block(item, indent + 2, text);
                        // The first key is on the line of the dash.
                        text.replace_range(start..start + indent + 2, &format!("{spaces}- "));
                    }
                    Value::Array(inner) if !inner.is_empty() => {
                        text.push_str(&format!("{spaces}-\n"));
                        block(item, indent + 2, text);
                    }
                    other => text.push_str(&format!("{spaces}- {}\n", inline(other))),
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let key = scalar(key);
                match value {
                    Value::Array(items) if !items.is_empty() => {
                        text.push_str(&format!("{spaces}{key}:\n"));
                        block(value, indent, text);
                    }
                    Value::Object(inner) if !inner.is_empty() => {
                        text.push_str(&format!("{spaces}{key}:\n"));
                        block(value, indent + 2, text);
                    }
                    other => text.push_str(&format!("{spaces}{key}: {}\n", inline(other))),
                }
            }
        }
        _ => {}
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// A string, without quotes if YAML reads the unquoted string back unchanged, otherwise in quotes.
fn scalar(text: &str) -> String {
    let document = format!("a: {text}\n");
    let parsed = parse(document.as_bytes(), &Limits::default());
    let same = parsed.findings.is_empty()
        && parsed.document.is_some_and(|document| match document.root().value() {
            crate::Value::Map(map) => {
                map.get("a").is_some_and(|node| node.value() == crate::Value::Str(text))
            }
            _ => false,
        });
    // Unsafe characters are escaped, and only quoted text can have escapes.
    if same && is_safe(text) {
        return text.to_owned();
    }
    sanitize_yaml(&Value::from(text).to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn printed_values_are_read_back_unchanged() {
        let value = json!({"a": "text", "b": ["yes", 1, null, [], [[1]], {"x": "1e3", "y": {}}], "c d": {"e": "a: b\n"},
            "f": "12:30", "g": true, "h": "0755", "i": ["/a/b.yml", "-"], "j": ""});
        let text = super::print(&value);
        assert_eq!(super::read(text.as_bytes()), Ok(value), "{text}");
    }

    #[test]
    fn unsafe_characters_are_escaped_and_read_back_unchanged() {
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}\u{202e}\u{2028}\u{feff}\u{e0041}\tb\"c\\";
        let value = json!({hostile: [hostile, {"x": hostile}]});
        let text = super::print(&value);
        assert!(text.lines().all(qontract_diagnostics::is_safe), "{text}");
        assert_eq!(super::read(text.as_bytes()), Ok(value), "{text}");
    }
}
