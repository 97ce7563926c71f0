//! Strings that are never printed.

use std::fmt;

/// A string that is sent but never printed: a token, a password, a complete `Authorization` value.
///
/// ```
/// use qontract_client_http::Secret;
/// let token = Secret::new("Bearer abc");
/// assert_eq!(format!("{token:?}"), "…");
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The string itself, for sending it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether both contain the same string. `==` is not implemented, so that types that contain secrets do
    /// not compare them implicitly.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// The secret without a scheme such as `Bearer`.
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
    fn the_credential_has_no_scheme() {
        assert_eq!(Secret::new("Bearer abc").credential(), "abc");
        assert_eq!(Secret::new("abc").credential(), "abc");
        assert_eq!(Secret::new("").credential(), "");
    }

    #[test]
    fn secrets_are_compared_by_content() {
        assert!(Secret::new("a").is_same(&Secret::new("a")));
        assert!(!Secret::new("a").is_same(&Secret::new("b")));
    }
}
