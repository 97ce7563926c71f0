//! The sha of a bundle.

use std::fmt;

/// The SHA-256 of a bundle's bytes, which is the name of the bundle: 64 hexadecimal digits.
///
/// ```
/// use qontract_client_server::Sha;
/// assert!(Sha::parse(&"0aF1".repeat(16)).is_some_and(|sha| sha.as_str().starts_with("0af1")));
/// assert_eq!(Sha::parse("../reload"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha(Box<str>);

impl Sha {
    /// Parses a sha; `None` for other strings, such as a Git commit.
    pub fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_name.then(|| Self(text.to_ascii_lowercase().into()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
