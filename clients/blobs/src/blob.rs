//! Blobs, their keys, tags and metadata.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::BlobsError;

/// Maximum length of a key in bytes, as in S3.
const MAX_KEY_LEN: usize = 1024;

/// The key of a blob. Slashes have no special meaning; listings select keys by prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(String);

impl BlobKey {
    /// A key of 1 to 1024 bytes without control characters.
    pub fn new(text: impl Into<String>) -> Result<Self, BlobsError> {
        let text = text.into();
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_KEY_LEN {
            "it has more than 1024 bytes"
        } else if text.chars().any(char::is_control) {
            "it contains a control character"
        } else if text.split('/').any(|part| [".", ".."].contains(&part)) {
            // Such segments are refused, because HTTP libraries and proxies may resolve them as relative
            // paths.
            "it contains a `.` or `..` segment"
        } else {
            return Ok(Self(text));
        };
        Err(BlobsError::Key { key: text, why })
    }

    /// The key as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies the content of a blob. Tags of different stores are not comparable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Etag(pub String);

/// Metadata that is stored with the bytes. The names are in lower case.
pub type Metadata = BTreeMap<String, String>;

/// A blob.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Tag, size and metadata.
    pub head: BlobHead,
}

impl fmt::Debug for Blob {
    /// Omits the bytes, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Tag, size and metadata of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobHead {
    /// The tag.
    pub etag: Etag,
    /// Size in bytes.
    pub size: u64,
    /// The metadata.
    pub metadata: Metadata,
}

/// The content of a write.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BlobContent {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The metadata.
    pub metadata: Metadata,
}

impl BlobContent {
    /// Bytes without metadata.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), metadata: Metadata::new() }
    }

    /// Fails unless each metadata name consists of lowercase letters, digits, `-` and `_`, and each value
    /// consists of printable ASCII, because stores do not preserve other characters.
    pub(crate) fn check(&self, key: &BlobKey) -> Result<(), BlobsError> {
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

impl fmt::Debug for BlobContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.bytes.len())
    }
}

/// The precondition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// No precondition.
    Any,
    /// The blob does not exist.
    IfAbsent,
    /// The blob has this tag.
    IfMatch(Etag),
}

/// A blob in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobEntry {
    /// The key in the store, which this client may not accept as a [`BlobKey`].
    pub key: String,
    /// The tag.
    pub etag: Etag,
    /// Size in bytes.
    pub size: u64,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The blobs on the page.
    pub entries: Vec<BlobEntry>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<Cursor>,
}

/// The position in a listing at which a page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub(crate) String);

#[cfg(test)]
mod tests {
    use super::{BlobContent, BlobKey};

    #[test]
    fn keys_are_validated() {
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
            assert_eq!(BlobKey::new(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn metadata_is_validated() {
        let key = BlobKey::new("a").unwrap();
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
            assert_eq!(
                BlobContent { bytes: Vec::new(), metadata }.check(&key).is_ok(),
                good,
                "{name}: {text}"
            );
        }
    }
}
