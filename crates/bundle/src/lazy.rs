//! Lazy value: parsed on first access.
//!
//! A run parses only a few documents of a large cached bundle and uses the other documents as text.
//! **Invariant:** the text of a lazy value is exactly the output of [`write_python`] for it, so an unparsed
//! value can be written and hashed without parsing.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use crate::json::{JsonParser, ShapeTree, write_python};
use crate::value::Value;
use parking_lot::Mutex;

/// A value, or the JSON text from which it is parsed on first access.
pub struct LazyValue {
    value: OnceLock<Value>,
    /// The text, until it is parsed. The lock is held while the text is read or taken, never while it is
    /// parsed.
    text: Option<Box<Mutex<Option<TextSlice>>>>,
}

/// A slice of a shared buffer.
pub(crate) struct TextSlice {
    pub buffer: Arc<String>,
    pub range: Range<usize>,
}

impl TextSlice {
    fn as_str(&self) -> &str {
        &self.buffer[self.range.clone()]
    }
}

thread_local! {
    /// The map shapes of the values that this thread has parsed, reused between parses.
    static SHAPES: std::cell::RefCell<ShapeTree> = std::cell::RefCell::default();
}

impl LazyValue {
    /// Creates a lazy value from the JSON text of a value.
    pub(crate) fn from_text(text: TextSlice) -> Self {
        Self { value: OnceLock::new(), text: Some(Box::new(Mutex::new(Some(text)))) }
    }

    /// Calls `with` on the text, if the value is not parsed yet. Holds the lock during the call.
    fn with_text<T>(&self, with: impl FnOnce(&mut Option<TextSlice>) -> Option<T>) -> Option<T> {
        let unread = self.text.as_ref().filter(|_| self.value.get().is_none())?;
        with(&mut unread.lock())
    }

    /// Whether the JSON text of the value may contain `characters`, which must not need escapes. Does not
    /// parse the value; returns true if it is parsed already.
    pub fn may_contain(&self, characters: &str) -> bool {
        self.with_text(|text| text.as_ref().map(|text| text.as_str().contains(characters))).unwrap_or(true)
    }

    fn force(&self) -> &Value {
        self.value.get_or_init(|| {
            let text = self.with_text(Option::take);
            let value = text.and_then(|text| {
                let shapes = SHAPES.take();
                let mut reader = JsonParser::with_shapes(shapes);
                let value = reader.parse_text(text.as_str());
                SHAPES.replace(reader.into_shapes());
                value.ok()
            });
            // The text was written from a value, so it can be parsed.
            debug_assert!(value.is_some(), "the text was written from a value");
            value.unwrap_or(Value::Null)
        })
    }

    /// Writes the value as JSON in Python's format, without parsing it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let written = self.with_text(|text| {
            out.extend_from_slice(text.as_ref()?.as_str().as_bytes());
            Some(())
        });
        if written.is_none() {
            write_python(self, out);
        }
    }

    /// The strings at these keys of a map, without parsing its other values. The keys must be sorted.
    pub fn strings<const N: usize>(&self, keys: [&str; N]) -> [Option<String>; N] {
        let peeked = self.with_text(|text| peek_strings(text.as_ref()?.as_str(), keys));
        peeked.unwrap_or_else(|| keys.map(|key| self.get(key).and_then(Value::as_str).map(str::to_owned)))
    }
}

/// Extracts the strings at these keys from the text of a map.
fn peek_strings<const N: usize>(text: &str, keys: [&str; N]) -> Option<[Option<String>; N]> {
    let mut found = [const { None }; N];
    let mut reader = JsonParser::new(text);
    let mut goes_on = reader.take(b'{') && reader.peek() != Some(b'}');
    while goes_on {
        let key = reader.key().ok()?;
        if let Some(at) = keys.iter().position(|wanted| *wanted == key) {
            if reader.peek() == Some(b'"') {
                found[at] = Some(reader.string().ok()?.into_owned());
            } else {
                reader.skip_range().ok()?;
            }
        } else if keys.last().is_none_or(|last| key.as_ref() > *last) {
            // Keys are sorted.
            break;
        } else {
            reader.skip_range().ok()?;
        }
        goes_on = reader.take(b',');
    }
    Some(found)
}

impl Deref for LazyValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.force()
    }
}

impl From<Value> for LazyValue {
    fn from(value: Value) -> Self {
        Self { value: OnceLock::from(value), text: None }
    }
}

impl PartialEq for LazyValue {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for LazyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#"{"$file_sha256sum":"0","$schema":"/a\n-1.yml","Name":7,"__identifier":{"a":"b"},"z":"last"}"#;

    fn later() -> LazyValue {
        let all = Arc::new(format!("before{TEXT}behind"));
        LazyValue::from_text(TextSlice { buffer: all, range: 6..6 + TEXT.len() })
    }

    #[test]
    fn an_unparsed_value_returns_the_same_results() {
        let (unread, read) = (later(), LazyValue::from(JsonParser::new(TEXT).parse().expect("JSON")));
        let texts = |later: &LazyValue| {
            later.strings(["$file_sha256sum", "$other", "$schema", "Name", "__identifier", "z"])
        };
        assert_eq!(texts(&unread), texts(&read));
        assert_eq!(texts(&unread)[2].as_deref(), Some("/a\n-1.yml"));
        let written = |later: &LazyValue| {
            let mut text = Vec::new();
            later.write(&mut text);
            String::from_utf8(text).expect("text")
        };
        assert_eq!((written(&unread), written(&read)), (TEXT.to_owned(), TEXT.to_owned()));
        assert!(unread.value.get().is_none(), "not parsed yet");
        assert_eq!(unread, read);
        assert_eq!(written(&unread), TEXT);
        assert_eq!(texts(&unread), texts(&read));
    }

    #[test]
    fn a_parsed_value_drops_its_text() {
        let later = later();
        assert_eq!(later.get("Name"), Some(&Value::Int(7)));
        assert!(later.text.as_ref().is_some_and(|text| text.lock().is_none()));
        assert_eq!(later.strings(["$schema"]), [Some("/a\n-1.yml".to_owned())]);
        let empty = LazyValue::from_text(TextSlice { buffer: Arc::new("{}".to_owned()), range: 0..2 });
        assert_eq!(empty.strings(["$schema"]), [None]);
    }
}
