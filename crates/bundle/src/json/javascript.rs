//! Writes JSON like JavaScript's `JSON.stringify`.

use qontract_python_json::ShortestDigits;
use qontract_python_json::escape::{plain_prefix, short_escape, write_unicode_escape};

use crate::keys::Key;
use crate::value::{Map, Value};

/// Appends `value`.
///
/// ```
/// use qontract_bundle::{Value, json};
/// let mut out = Vec::new();
/// json::write_javascript(&Value::List(Box::new([Value::Float(1.0), Value::str("é")])), &mut out);
/// assert_eq!(out, "[1,\"é\"]".as_bytes());
/// ```
pub fn write_javascript(value: &Value, out: &mut Vec<u8>) {
    JavaScriptWriter(out).value(value);
}

/// A writer for building an object field by field.
pub struct JavaScriptWriter<'o>(pub &'o mut Vec<u8>);

impl JavaScriptWriter<'_> {
    /// Appends a value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.raw("null"),
            Value::Bool(true) => self.raw("true"),
            Value::Bool(false) => self.raw("false"),
            Value::Int(number) => self.int(*number),
            // JavaScript has no integers this large: the number is rounded to the nearest float.
            Value::BigInt(digits) => self.number(digits.parse().unwrap_or(f64::NAN)),
            Value::Float(number) => self.number(*number),
            Value::Str(text) => self.str(text),
            Value::List(items) => {
                self.0.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.0.push(b',');
                    }
                    self.value(item);
                }
                self.0.push(b']');
            }
            Value::Map(map) => self.map(map, &[]),
        }
    }

    /// Appends a map, with `more` fields after its own.
    pub fn map(&mut self, map: &Map, more: &[(&str, &Value)]) {
        self.0.push(b'{');
        let mut first = true;
        let mut field = |writer: &mut Self, key: &str, value: &Value| {
            if !std::mem::take(&mut first) {
                writer.0.push(b',');
            }
            writer.str(key);
            writer.0.push(b':');
            writer.value(value);
        };
        // JavaScript orders keys that are array indexes first, by number.
        let mut indices: Vec<(u32, &Key, &Value)> =
            map.iter().filter_map(|(key, value)| Some((array_index(key.as_str())?, key, value))).collect();
        indices.sort_by_key(|(index, ..)| *index);
        for (_, key, value) in &indices {
            field(self, key.as_str(), value);
        }
        let hidden = |key: &str| more.iter().any(|(name, _)| *name == key);
        for (key, value) in map.iter() {
            if !hidden(key.as_str()) && (indices.is_empty() || array_index(key.as_str()).is_none()) {
                field(self, key.as_str(), value);
            }
        }
        for (key, value) in more {
            field(self, key, value);
        }
        self.0.push(b'}');
    }

    /// Appends text verbatim.
    pub fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends text in quotes, with the minimal escapes.
    pub fn str(&mut self, text: &str) {
        let out = &mut *self.0;
        out.push(b'"');
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let run = plain_prefix(&bytes[at..]);
            out.extend_from_slice(&bytes[at..at + run]);
            at += run;
            let Some(byte) = bytes.get(at) else { break };
            match short_escape(*byte) {
                Some(escape) => out.extend_from_slice(escape),
                None => write_unicode_escape(char::from(*byte), out),
            }
            at += 1;
        }
        out.push(b'"');
    }

    fn int(&mut self, number: i64) {
        const EXACT: u64 = 1 << 53;
        if number.unsigned_abs() <= EXACT {
            self.raw(&number.to_string());
        } else {
            #[expect(clippy::cast_precision_loss, reason = "JavaScript has no other integers")]
            self.number(number as f64);
        }
    }

    /// Writes a number like `Number.prototype.toString`: with an exponent for numbers below 1e-6, and for
    /// numbers of 1e21 or more.
    fn number(&mut self, value: f64) {
        if !value.is_finite() {
            return self.raw("null");
        }
        if value == 0.0 {
            return self.raw("0");
        }
        let shortest = ShortestDigits::of(value);
        if shortest.negative {
            self.0.push(b'-');
        }
        if (-6..21).contains(&shortest.exponent) {
            shortest.positional(false, self.0);
        } else {
            shortest.scientific(1, self.0);
        }
    }
}

/// The number of a key that JavaScript treats as an array index: canonical, below 2^32 - 1.
fn array_index(key: &str) -> Option<u32> {
    let bytes = key.as_bytes();
    if !matches!(bytes, [b'0'] | [b'1'..=b'9', ..]) || bytes.len() > 10 {
        return None;
    }
    key.parse().ok().filter(|index| *index < u32::MAX)
}
