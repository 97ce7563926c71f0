//! Keys, tags, and what a blob is.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::BlobsError;

/// How many bytes a key may have, as in S3.
const LONGEST_KEY: usize = 1024;

/// The name of a blob: slashes in it mean nothing but to those who list by prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// A key of 1 to 1024 bytes, none of them a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, BlobsError> {
        let text = text.into();
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > LONGEST_KEY {
            "it has more than 1024 bytes"
        } else if text.chars().any(char::is_control) {
            "it has a control character"
        } else if text.split('/').any(|part| [".", ".."].contains(&part)) {
            // What speaks HTTP on the way may take them for folders.
            "it has a part of dots"
        } else {
            return Ok(Self(text));
        };
        Err(BlobsError::Key { key: text, why })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What tells one content of a blob from the next. Tags of different stores have nothing in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Etag(pub String);

/// Texts that are kept beside the bytes. Names are in lower case.
pub type Metadata = BTreeMap<String, String>;

/// A blob.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// All else.
    pub head: Head,
}

impl fmt::Debug for Blob {
    /// Not the bytes: nobody knows what they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("head", &self.head).finish_non_exhaustive()
    }
}

/// All about a blob but its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The tag.
    pub etag: Etag,
    /// How many bytes it has.
    pub size: u64,
    /// What is kept beside them.
    pub metadata: Metadata,
}

/// What is written.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What is kept beside them.
    pub metadata: Metadata,
}

impl Content {
    /// Bytes with nothing beside them.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), metadata: Metadata::new() }
    }

    /// Fails unless each name beside the bytes is of letters in lower case, digits, `-` and `_`, and each text is of
    /// printable ASCII: anything else is read by nobody as it was written.
    pub(crate) fn check(&self, key: &Key) -> Result<(), BlobsError> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
        };
        let is_text =
            |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
        match self.metadata.iter().find(|(name, text)| !is_name(name) || !is_text(text)) {
            Some((name, _)) => Err(BlobsError::Metadata { key: key.clone(), name: name.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.bytes.len())
    }
}

/// What must hold for a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    Any,
    /// There is no such blob.
    IfAbsent,
    /// It has this tag.
    IfMatch(Etag),
}

/// A blob in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key, as it is, even if we would not make such a key.
    pub key: String,
    /// Its tag.
    pub etag: Etag,
    /// How many bytes it has.
    pub size: u64,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What is on it.
    pub entries: Vec<Entry>,
    /// Where the next one is, unless this is the last.
    pub next: Option<Cursor>,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) String);

#[cfg(test)]
mod tests {
    use super::{Content, Key};

    #[test]
    fn a_key_is_a_text_that_every_store_takes() {
        let long = "x".repeat(1025);
        for (text, good) in [
            ("a", true),
            ("a//b/", true),
            ("/a", true),
            ("ä b%2f?#&+", true),
            ("a/..b", true),
            ("", false),
            ("a\nb", false),
            ("a/../b", false),
            ("./a", false),
            (&long[1..], true),
            (&long, false),
        ] {
            assert_eq!(Key::new(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn what_is_kept_beside_the_bytes_is_plain() {
        let key = Key::new("a").unwrap();
        for (name, text, good) in [
            ("a-b_1", "x y=~", true),
            ("a", "", true),
            ("A", "x", false),
            ("", "x", false),
            ("a", "é", false),
            ("a", " x", false),
            ("a", "x\n", false),
        ] {
            let metadata = [(name.to_owned(), text.to_owned())].into();
            assert_eq!(Content { bytes: Vec::new(), metadata }.check(&key).is_ok(), good, "{name}: {text}");
        }
    }
}
