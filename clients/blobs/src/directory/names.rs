//! Converts keys to file names and back. Pure.
//!
//! Each segment of a key is a directory, except the last, which is a file with the suffix `.blob`. Therefore,
//! the blobs `a` and `a/b` do not collide. Characters with a special meaning in file names are escaped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::blob::{BlobKey, Etag};
use crate::error::BlobsError;

const BLOB_SUFFIX: &str = ".blob";
/// Maximum length of a file name in bytes: the limit of common file systems minus prefix and suffix.
const MAX_NAME_BYTES: usize = 160;

/// The path components of a blob.
pub fn file_names(key: &BlobKey) -> Result<Vec<String>, BlobsError> {
    let parts: Vec<&str> = key.as_str().split('/').collect();
    let last = parts.len() - 1;
    let names = parts.iter().enumerate().map(|(index, part)| {
        let name = escape(part);
        match (index == last, name.strip_suffix(BLOB_SUFFIX)) {
            (true, _) => format!("{name}{BLOB_SUFFIX}"),
            (false, Some(rest)) => format!("{rest}%2Eblob"),
            (false, None) => name,
        }
    });
    let names: Vec<String> = names.collect();
    if names.iter().any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(BlobsError::Unsupported(format!(
            "blob `{key}` cannot be stored in a directory: a segment of its key is too long for a file name"
        )));
    }
    Ok(names)
}

/// The key segment of a directory name.
pub fn decode_folder(name: &str) -> Option<String> {
    unescape(name)
}

/// The last key segment of a file name.
pub fn decode_blob(name: &str) -> Option<String> {
    unescape(name.strip_suffix(BLOB_SUFFIX)?)
}

/// The path of the metadata of a blob with this tag.
pub fn metadata_path(file: &Path, etag: &Etag) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // The start of the digest is enough to distinguish two contents of one blob.
    let short: String = etag.0.chars().take(32).collect();
    file.with_file_name(format!(".{name}.{short}"))
}

fn escape(part: &str) -> String {
    if part.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::new();
    for (index, character) in part.char_indices() {
        if character == '%' || character == '\\' || (index == 0 && character == '.') {
            let _ = write!(name, "%{:02X}", u32::from(character));
        } else {
            name.push(character);
        }
    }
    name
}

/// `None` if the name was not produced by [`escape`].
fn unescape(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    if name.starts_with('.') {
        return None;
    }
    let mut parts = name.split('%');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let digits = part.get(..2)?;
        text.push(char::from(u8::from_str_radix(digits, 16).ok()?));
        text.push_str(&part[2..]);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{decode_blob, decode_folder, file_names};
    use crate::blob::BlobKey;

    fn check(key: &str, expect: &str) {
        let names = file_names(&BlobKey::new(key).unwrap()).unwrap();
        assert_eq!(names.join("/"), expect);
        let (last, above) = names.split_last().unwrap();
        let mut back: Vec<String> = above.iter().map(|name| decode_folder(name).unwrap()).collect();
        back.push(decode_blob(last).unwrap());
        assert_eq!(back.join("/"), key);
    }

    #[test]
    fn keys_round_trip() {
        check("a", "a.blob");
        check("state/x/y.json", "state/x/y.json.blob");
        check("a b/é%2f", "a b/é%252f.blob");
        check("a.blob/b.blob", "a%2Eblob/b.blob.blob");
    }

    #[test]
    fn special_characters_are_escaped() {
        check("/a//b/", "%/a/%/b/%.blob");
        check(".a/..b/.lock", "%2Ea/%2E.b/%2Elock.blob");
        check("a\\b", "a%5Cb.blob");
    }

    #[test]
    fn foreign_file_names_are_not_keys() {
        for name in [".lock", ".draft", "a", ".a.blob.0123", "%zz.blob", "a%2.blob"] {
            assert_eq!(decode_blob(name), None, "{name}");
        }
    }

    #[test]
    fn a_segment_too_long_for_a_file_name_is_refused() {
        assert!(file_names(&BlobKey::new("x".repeat(200)).unwrap()).is_err());
        assert!(file_names(&BlobKey::new("x/".repeat(200)).unwrap()).is_ok());
    }
}
