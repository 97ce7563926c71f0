//! A value that is read when somebody looks at it.
//!
//! Of a large bundle that was kept, one run needs a few documents and the texts of all others. **Invariant:** a text that is held here
//! is what [`write_python`] writes of its value.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use crate::json::{Reader, Shapes, write_python};
use crate::value::Value;
use parking_lot::Mutex;

/// A value, or the text that it is read from.
pub struct Later {
    value: OnceLock<Value>,
    /// Gone as soon as it is read.
    unread: Option<Box<Mutex<Option<Text>>>>,
}

/// A text among others.
pub(crate) struct Text {
    pub all: Arc<String>,
    pub place: Range<usize>,
}

impl Text {
    fn as_str(&self) -> &str {
        &self.all[self.place.clone()]
    }
}

thread_local! {
    /// What maps have looked like so far.
    static SHAPES: std::cell::RefCell<Shapes> = std::cell::RefCell::default();
}

impl Later {
    /// The value of a text that was written of one.
    pub(crate) fn of(text: Text) -> Self {
        Self { value: OnceLock::new(), unread: Some(Box::new(Mutex::new(Some(text)))) }
    }

    /// Does something with the text, if nobody has read it.
    fn unread<T>(&self, with: impl FnOnce(&mut Option<Text>) -> Option<T>) -> Option<T> {
        let unread = self.unread.as_ref().filter(|_| self.value.get().is_none())?;
        with(&mut unread.lock())
    }

    /// Whether the text of the value may contain these characters, which need no escapes in JSON. A value that was not read yet stays unread.
    pub fn may_contain(&self, characters: &str) -> bool {
        self.unread(|text| text.as_ref().map(|text| text.as_str().contains(characters))).unwrap_or(true)
    }

    fn read(&self) -> &Value {
        self.value.get_or_init(|| {
            let text = self.unread(Option::take);
            let value = text.and_then(|text| {
                let shapes = SHAPES.take();
                let mut reader = Reader::knowing(shapes);
                let value = reader.again(text.as_str());
                SHAPES.replace(reader.into_shapes());
                value.ok()
            });
            // A text that was written of a value can be read.
            debug_assert!(value.is_some(), "a text that was written of a value");
            value.unwrap_or(Value::Null)
        })
    }

    /// Writes the value as Python does.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let written = self.unread(|text| {
            out.extend_from_slice(text.as_ref()?.as_str().as_bytes());
            Some(())
        });
        if written.is_none() {
            write_python(self, out);
        }
    }

    /// The texts at these keys of a map, without reading the rest of it. The keys must be ascending.
    pub fn texts<const N: usize>(&self, keys: [&str; N]) -> [Option<String>; N] {
        let peeked = self.unread(|text| peek(text.as_ref()?.as_str(), keys));
        peeked.unwrap_or_else(|| keys.map(|key| self.get(key).and_then(Value::as_str).map(str::to_owned)))
    }
}

/// The texts at these keys of the map that a text is.
fn peek<const N: usize>(text: &str, keys: [&str; N]) -> Option<[Option<String>; N]> {
    let mut found = [const { None }; N];
    let mut reader = Reader::new(text);
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
            // They are ascending.
            break;
        } else {
            reader.skip_range().ok()?;
        }
        goes_on = reader.take(b',');
    }
    Some(found)
}

impl Deref for Later {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.read()
    }
}

impl From<Value> for Later {
    fn from(value: Value) -> Self {
        Self { value: OnceLock::from(value), unread: None }
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#"{"$file_sha256sum":"0","$schema":"/a\n-1.yml","Name":7,"__identifier":{"a":"b"},"z":"last"}"#;

    fn later() -> Later {
        let all = Arc::new(format!("before{TEXT}behind"));
        Later::of(Text { all, place: 6..6 + TEXT.len() })
    }

    #[test]
    fn who_has_not_read_it_knows_the_same() {
        let (unread, read) = (later(), Later::from(Reader::new(TEXT).whole().expect("JSON")));
        let texts = |later: &Later| {
            later.texts(["$file_sha256sum", "$other", "$schema", "Name", "__identifier", "z"])
        };
        assert_eq!(texts(&unread), texts(&read));
        assert_eq!(texts(&unread)[2].as_deref(), Some("/a\n-1.yml"));
        let written = |later: &Later| {
            let mut text = Vec::new();
            later.write(&mut text);
            String::from_utf8(text).expect("text")
        };
        assert_eq!((written(&unread), written(&read)), (TEXT.to_owned(), TEXT.to_owned()));
        assert!(unread.value.get().is_none(), "nobody has read it");
        assert_eq!(unread, read);
        assert_eq!(written(&unread), TEXT);
        assert_eq!(texts(&unread), texts(&read));
    }

    #[test]
    fn what_is_read_holds_no_text() {
        let later = later();
        assert_eq!(later.get("Name"), Some(&Value::Int(7)));
        assert!(later.unread.as_ref().is_some_and(|text| text.lock().is_none()));
        assert_eq!(later.texts(["$schema"]), [Some("/a\n-1.yml".to_owned())]);
        let empty = Later::of(Text { all: Arc::new("{}".to_owned()), place: 0..2 });
        assert_eq!(empty.texts(["$schema"]), [None]);
    }
}
