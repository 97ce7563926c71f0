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

    /// `text` without the secret, nor the credential in it if a word such as `Bearer` goes before.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let credential = self.0.rsplit(' ').next().unwrap_or_default();
        [&*self.0, credential]
            .into_iter()
            .filter(|hidden| !hidden.is_empty())
            .fold(text.to_owned(), |text, hidden| text.replace(hidden, "…"))
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

    fn check(secret: &str, text: &str, expect: &str) {
        assert_eq!(Secret::new(secret).scrub(text), expect);
    }

    #[test]
    fn a_secret_is_taken_out_of_a_text() {
        check("s3cret", "no s3cret here, nor s3cret", "no … here, nor …");
    }

    #[test]
    fn the_credential_alone_is_taken_out_too() {
        check("Bearer abc", "Bearer abc: token abc is unknown", "…: token … is unknown");
    }

    #[test]
    fn secrets_are_compared_by_what_they_hide() {
        assert!(Secret::new("a").is_same(&Secret::new("a")));
        assert!(!Secret::new("a").is_same(&Secret::new("b")));
    }

    #[test]
    fn nothing_to_hide_leaves_the_text_as_it_is() {
        check("", "as it is", "as it is");
    }
}
