//! Streaming JSON writer with Python's separators, on one line or indented.

use std::fmt::Display;

use serde_json::{Number, Value};

use crate::float::write_float;
use crate::write_str;

/// `json.dumps(value, sort_keys=True)`
///
/// ```
/// let value = serde_json::json!({"b": [1.0, "é"], "a": null});
/// assert_eq!(qontract_python_json::to_string(&value), r#"{"a": null, "b": [1.0, "\u00e9"]}"#);
/// ```
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer::new(None);
    writer.value(value);
    writer.finish()
}

/// Writer of one JSON value. Writes brackets, keys and items in the order of the calls, with separators.
#[derive(Debug)]
pub struct Writer<'i> {
    out: Vec<u8>,
    indent: Option<&'i str>,
    /// For each open bracket, whether it has an item.
    open: Vec<bool>,
}

impl<'i> Writer<'i> {
    /// Creates a writer: on one line, or with each item on its own line, indented by this string.
    pub fn new(indent: Option<&'i str>) -> Self {
        Self { out: Vec::new(), indent, open: Vec::new() }
    }

    /// Returns the JSON text.
    pub fn finish(self) -> String {
        String::from_utf8(self.out).expect("the output is ASCII, and the indent is a string")
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.raw("null");
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn int(&mut self, number: impl Display) {
        self.raw(&number.to_string());
    }

    /// Writes a float, or one of the three values that Python writes although JSON has no syntax for them:
    /// `NaN`, `Infinity` and `-Infinity`.
    pub fn float(&mut self, number: f64) {
        if number.is_nan() {
            self.raw("NaN");
        } else if number.is_infinite() {
            self.raw(if number > 0.0 { "Infinity" } else { "-Infinity" });
        } else {
            write_float(number, &mut self.out);
        }
    }

    /// Writes a string in quotes.
    pub fn str(&mut self, text: &str) {
        write_str(text, &mut self.out);
    }

    /// Opens a list or an object: `[` or `{`.
    pub fn open(&mut self, bracket: char) {
        self.raw(bracket.encode_utf8(&mut [0; 4]));
        self.open.push(false);
    }

    /// Starts the next item of a list, or the next key of an object.
    pub fn item(&mut self) {
        let is_first = self.open.last_mut().is_none_or(|filled| !std::mem::replace(filled, true));
        if !is_first {
            self.raw(if self.indent.is_some() { "," } else { ", " });
        }
        self.break_line();
    }

    /// Starts the next field of an object and writes its key.
    pub fn key(&mut self, key: &str) {
        self.item();
        self.str(key);
        self.raw(": ");
    }

    /// Closes a list or an object: `]` or `}`.
    pub fn close(&mut self, bracket: char) {
        if self.open.pop() == Some(true) {
            self.break_line();
        }
        self.raw(bracket.encode_utf8(&mut [0; 4]));
    }

    /// Writes a `serde_json` value, with sorted object keys.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.str(text),
            Value::Array(items) => {
                self.open('[');
                for item in items {
                    self.item();
                    self.value(item);
                }
                self.close(']');
            }
            Value::Object(map) => {
                // The keys are sorted, whatever the order of the map. Python sorts by code points, which is
                // the order of UTF-8 bytes.
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| key.as_str());
                self.open('{');
                for (key, value) in entries {
                    self.key(key);
                    self.value(value);
                }
                self.close('}');
            }
        }
    }

    fn number(&mut self, number: &Number) {
        match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => self.float(float),
            None => self.int(number),
        }
    }

    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn break_line(&mut self) {
        let Some(indent) = self.indent else { return };
        self.raw("\n");
        (0..self.open.len()).for_each(|_| self.raw(indent));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Writer, to_string};

    fn check(value: &Value, expect: &str) {
        assert_eq!(to_string(value), expect);
    }

    #[test]
    fn keys_are_sorted_and_separators_are_wide() {
        check(
            &json!({"b": [1, true, null, false], "a": {"d": {}, "c": []}}),
            r#"{"a": {"c": [], "d": {}}, "b": [1, true, null, false]}"#,
        );
    }

    #[test]
    fn everything_but_ascii_is_escaped() {
        check(&json!("é\u{1F600}\u{7f}\u{1}\"\\\n"), r#""\u00e9\ud83d\ude00\u007f\u0001\"\\\n""#);
    }

    #[test]
    fn integers_and_floats_are_distinguished() {
        check(&json!([1, -1, u64::MAX, 1.0, -0.0]), "[1, -1, 18446744073709551615, 1.0, -0.0]");
        let mut writer = Writer::new(None);
        writer.open('[');
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            writer.item();
            writer.float(number);
        }
        writer.close(']');
        assert_eq!(writer.finish(), "[NaN, Infinity, -Infinity]");
    }

    #[test]
    fn with_an_indent_each_item_has_a_line() {
        let mut writer = Writer::new(Some("  "));
        writer.value(&json!({"a": [1, 2], "b": {}, "c": [[]]}));
        let expect = "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": [\n    []\n  ]\n}";
        assert_eq!(writer.finish(), expect);
    }
}
