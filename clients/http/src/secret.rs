//! Text that does not print.

use std::fmt;

/// A token, a password, a whole `Authorization` value: text that is sent but never shown.
///
/// ```
/// use qontract_client_http::Secret;
/// let token = Secret::new("Bearer abc");
/// assert_eq!(format!("{token:?}"), "…");
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for whoever has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether both hide the same text. There is no `==`, so that nothing that holds secrets compares them unseen.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// The secret without a word such as `Bearer` before it.
    pub(crate) fn credential(&self) -> &str {
        self.0.rsplit(' ').next().unwrap_or_default()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn the_credential_is_without_the_word_before_it() {
        assert_eq!(Secret::new("Bearer abc").credential(), "abc");
        assert_eq!(Secret::new("abc").credential(), "abc");
        assert_eq!(Secret::new("").credential(), "");
    }

    #[test]
    fn secrets_are_compared_by_what_they_hide() {
        assert!(Secret::new("a").is_same(&Secret::new("a")));
        assert!(!Secret::new("a").is_same(&Secret::new("b")));
    }
}
