//! Weak `ETag`s, computed as in qontract-server: from the length and the SHA-1 of the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha1::{Digest as _, Sha1};

/// The entity tag of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETag(String);

impl ETag {
    /// Computes the tag of a body.
    pub fn of(body: &[u8]) -> Self {
        let digest = STANDARD_NO_PAD.encode(Sha1::digest(body));
        Self(format!("W/\"{:x}-{digest}\"", body.len()))
    }

    /// The value of the `ETag` header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an `If-None-Match` header matches this tag, by weak comparison.
    pub fn matches(&self, header: &str) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        header.trim() == "*" || header.split(',').any(|tag| opaque(tag) == opaque(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::ETag;

    #[test]
    fn tags_equal_those_of_qontract_server() {
        assert_eq!(ETag::of(b"").as_str(), "W/\"0-2jmj7l5rSw0yVb/vlWAYkK/YBwk\"");
        assert_eq!(ETag::of(b"Hello World").as_str(), "W/\"b-Ck1VqNd45QIvq3AZd8XYQLvEhtA\"");
    }

    #[test]
    fn a_tag_matches_any_of_a_list() {
        let tag = ETag::of(b"Hello World");
        for (header, is) in [
            ("*", true),
            ("W/\"b-Ck1VqNd45QIvq3AZd8XYQLvEhtA\"", true),
            ("\"b-Ck1VqNd45QIvq3AZd8XYQLvEhtA\"", true),
            ("\"x\", W/\"b-Ck1VqNd45QIvq3AZd8XYQLvEhtA\"", true),
            ("\"x\"", false),
            ("", false),
        ] {
            assert_eq!(tag.matches(header), is, "{header}");
        }
    }
}
