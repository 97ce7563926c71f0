//! JSON parser: parses a [`Value`], or skips a value without parsing it.
//!
//! Written by hand for two reasons: integers of any size stay exact, and the bytes of each document of a
//! bundle are known before it is parsed, so that a document that is already in memory is not parsed again.

use std::borrow::Cow;
use std::ops::Range;

use qontract_python_json::escape::plain_prefix;

use super::shapes::{ShapeId, ShapeTree};
use crate::value::{Map, Value};

/// A syntax error in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct JsonError {
    /// Offset of the byte at which the error was found.
    pub offset: usize,
    /// A description of the expected or unexpected token.
    pub message: &'static str,
}

/// Maximum nesting depth: that of datafiles, plus the levels of the bundle around them.
const MAX_JSON_DEPTH: usize = 220;

/// Parses one JSON text.
pub struct JsonParser<'a> {
    text: &'a str,
    at: usize,
    /// Fields of the open objects, one object after another.
    fields: Vec<(Cow<'a, str>, Value)>,
    /// Values of the open lists and objects.
    items: Vec<Value>,
    /// The key sequences of the objects parsed so far.
    shapes: ShapeTree,
}

type Result<T> = std::result::Result<T, JsonError>;

impl<'a> JsonParser<'a> {
    /// Creates a parser at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, fields: Vec::new(), items: Vec::new(), shapes: ShapeTree::default() }
    }

    /// Creates a parser that starts with the shapes of earlier, similar input.
    pub(crate) fn with_shapes(shapes: ShapeTree) -> Self {
        Self { shapes, ..Self::new("") }
    }

    /// The shapes for the next parser. Empty if the tree is full, so that it can adapt to other input.
    pub(crate) fn into_shapes(self) -> ShapeTree {
        if self.shapes.is_full() { ShapeTree::default() } else { self.shapes }
    }

    /// Parses the whole text as one value.
    ///
    /// ```
    /// use qontract_bundle::{Value, json::JsonParser};
    /// let value = JsonParser::new(r#"{"b": [1, 2.0], "a": "\u00e9"}"#).parse().unwrap();
    /// assert_eq!(value.pointer("/b/1"), Some(&Value::Float(2.0)));
    /// assert_eq!(value.get("a").and_then(Value::as_str), Some("é"));
    /// ```
    pub fn parse(mut self) -> Result<Value> {
        self.parse_text(self.text)
    }

    /// Parses another text as one value, reusing the buffers of this parser.
    pub fn parse_text(&mut self, text: &'a str) -> Result<Value> {
        (self.text, self.at) = (text, 0);
        self.fields.clear();
        self.items.clear();
        let value = self.value(MAX_JSON_DEPTH)?;
        self.end()?;
        Ok(value)
    }

    /// Fails if anything but whitespace is left.
    pub fn end(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.at == self.text.len() { Ok(()) } else { Err(self.error("expected the end of the text")) }
    }

    /// The text being parsed.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The current byte offset.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Skips the next value without parsing it and returns the range of its text.
    pub fn skip_range(&mut self) -> Result<Range<usize>> {
        self.skip_blanks();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        loop {
            match bytes.get(self.at) {
                None => return Err(self.error("the text ends within a value")),
                Some(b'"') => self.skip_string()?,
                Some(b'{' | b'[') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b',' | b'}' | b']') if open == 0 => break,
                Some(_) => self.at += 1,
            }
            if open == 0 && self.at > start && matches!(bytes[self.at - 1], b'"' | b'}' | b']') {
                break;
            }
        }
        Ok(start..start + self.text[start..self.at].trim_end().len())
    }

    fn skip_string(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            self.at += plain_prefix(bytes.get(self.at..).unwrap_or_default());
            match bytes.get(self.at) {
                None => return Err(self.error("the text ends within a string")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Parses the next value.
    fn value(&mut self, depth: usize) -> Result<Value> {
        self.skip_blanks();
        let Some(deeper) = depth.checked_sub(1) else {
            return Err(self.error("nested too deeply"));
        };
        match self.peek() {
            Some(b'"') => Ok(Value::Str(self.string()?.into())),
            Some(b'{') => self.object(deeper).map(Value::Map),
            Some(b'[') => self.list(deeper),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("expected a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Map> {
        self.at += 1;
        let start = self.items.len();
        let mut shape = self.shapes.root(depth);
        if !self.take(b'}') {
            loop {
                self.skip_blanks();
                if let Some((next, length)) = self.shapes.predict(shape, &self.text.as_bytes()[self.at..]) {
                    shape = next;
                    self.at += length;
                } else {
                    let key = self.key()?;
                    let Some(next) = self.shapes.child(shape, &key) else {
                        return self.object_of_new_shape(depth, shape, start, key);
                    };
                    shape = next;
                }
                let value = self.value(depth)?;
                self.items.push(value);
                if !self.has_next_field()? {
                    break;
                }
            }
        }
        Ok(Map::from_values(self.shapes.keys(shape), &mut self.items, start))
    }

    /// Parses the rest of an object that has no shape in the tree, starting at the value of `key`.
    fn object_of_new_shape(
        &mut self,
        depth: usize,
        shape: ShapeId,
        items: usize,
        key: Cow<'a, str>,
    ) -> Result<Map> {
        let start = self.fields.len();
        let keys = self.shapes.path(shape).into_iter().map(|key| Cow::Owned(key.to_owned()));
        self.fields.extend(keys.zip(self.items.drain(items..)));
        let mut key = key;
        loop {
            let value = self.value(depth)?;
            self.fields.push((key, value));
            if !self.has_next_field()? {
                return Ok(Map::drain(&mut self.fields, start));
            }
            self.skip_blanks();
            key = self.key()?;
        }
    }

    /// Parses the next key of an object and the colon after it.
    pub(crate) fn key(&mut self) -> Result<Cow<'a, str>> {
        let key = self.string()?;
        self.expect(b':', "expected `:`")?;
        Ok(key)
    }

    /// Whether another field of the object follows.
    fn has_next_field(&mut self) -> Result<bool> {
        if self.take(b'}') {
            return Ok(false);
        }
        self.expect(b',', "expected `,` or `}`")?;
        Ok(true)
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.at += 1;
        let start = self.items.len();
        if self.take(b']') {
            return Ok(Value::List(Box::new([])));
        }
        loop {
            let item = self.value(depth)?;
            self.items.push(item);
            if self.take(b']') {
                return Ok(Value::List(self.items.drain(start..).collect()));
            }
            self.expect(b',', "expected `,` or `]`")?;
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits()?;
        if leading_zero && whole > 1 {
            self.at = start;
            return Err(self.error("a number with a leading zero"));
        }
        let mut float = false;
        if self.peek() == Some(b'.') {
            float = true;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if float {
            let number: f64 = text.parse().map_err(|_| self.error("a number out of range"))?;
            return if number.is_finite() {
                Ok(Value::Float(number))
            } else {
                Err(self.error("a number out of range"))
            };
        }
        Ok(text.parse().map_or_else(|_| Value::BigInt(text.into()), Value::Int))
    }

    fn digits(&mut self) -> Result<usize> {
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { Err(self.error("expected a digit")) } else { Ok(digits) }
    }

    /// Parses the next string. Borrowed from the text if it has no escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a string"));
        }
        self.at += 1;
        let bytes = self.text.as_bytes();
        let mut text = Cow::Borrowed("");
        loop {
            let start = self.at;
            self.at += plain_prefix(&bytes[start..]);
            let run = &self.text[start..self.at];
            match &mut text {
                Cow::Borrowed("") => text = Cow::Borrowed(run),
                text => text.to_mut().push_str(run),
            }
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    text.to_mut().push(escaped);
                }
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the text ends within a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 2;
        Ok(match escaped {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an unknown escape")),
        })
    }

    fn unicode(&mut self) -> Result<char> {
        let first = self.unit()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.unit()?;
            return char::decode_utf16([first, second])
                .next()
                .and_then(std::result::Result::ok)
                .ok_or_else(|| self.error("half a surrogate pair"));
        }
        char::from_u32(u32::from(first)).ok_or_else(|| self.error("half a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u16> {
        let digits =
            self.text.as_bytes().get(self.at..self.at + 4).and_then(|bytes| str::from_utf8(bytes).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += if unit.is_some() { 4 } else { 0 };
        unit.ok_or_else(|| self.error("expected four hexadecimal digits"))
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.error(what)) }
    }

    /// An error at the current offset.
    pub fn error(&self, what: &'static str) -> JsonError {
        JsonError { offset: self.at.min(self.text.len()), message: what }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shapes_of_earlier_maps_do_not_change_the_result(
            maps in prop::collection::vec(prop::collection::vec(("[ab\"\\\\né]{0,2}", 0..9_i64), 0..5), 1..40),
        ) {
            let field = |(key, number): &(String, i64)| {
                let escaped: Vec<String> = key.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                let key = serde_json::to_string(key).expect("text");
                match number % 3 {
                    0 => format!("\"{}\":{number}", escaped.concat()),
                    1 => format!("{key} : {number}"),
                    _ => format!("{key}:{number}"),
                }
            };
            let text = |map: &Vec<_>| format!("{{{}}}", map.iter().map(field).collect::<Vec<_>>().join(","));
            let texts: Vec<String> = maps.iter().map(text).collect();
            let mut reader = JsonParser::new("");
            for (map, text) in maps.into_iter().zip(&texts) {
                let entries = map.into_iter().map(|(key, number)| (key, Value::Int(number))).collect();
                prop_assert_eq!(reader.parse_text(text), Ok(Value::Map(Map::new(entries))), "{}", text);
            }
        }
    }

    #[test]
    fn more_shapes_than_the_limit_are_parsed() {
        let texts: Vec<String> =
            (0..9000).map(|number| format!("{{\"k{number:05}\":{{\"a\":1,\"b{number}\":2}}}}")).collect();
        let mut reader = JsonParser::new("");
        for text in texts.iter().chain(&texts) {
            let mut written = Vec::new();
            super::super::write_python(&reader.parse_text(text).expect("JSON"), &mut written);
            assert_eq!(String::from_utf8(written).as_ref(), Ok(text));
        }
    }
}
