//! Texts of requests that clients name by their SHA-256 instead of sending them again.

use qontract_bundle::Sha256;
use qontract_graphql::Cache;

/// How many bytes of texts are remembered.
pub const MOST: usize = 8 << 20;

/// The texts, by bundle and digest.
pub type Persisted = Cache<String, String>;

/// The text of a digest, if a bundle was asked it before.
pub fn get(texts: &Persisted, bundle: Sha256, digest: &str) -> Option<String> {
    texts.get(&key(bundle, digest))
}

/// Remembers a text that a bundle was asked, by its digest.
pub fn insert(texts: &Persisted, bundle: Sha256, digest: &str, text: &str) {
    let key = key(bundle, digest);
    let bytes = key.len() + text.len();
    texts.insert(key, text.to_owned(), bytes);
}

fn key(bundle: Sha256, digest: &str) -> String {
    format!("{bundle} {digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_to_the_bundle_that_was_asked() {
        let (texts, [a, b]) = (Persisted::new(MOST), [b"a", b"b"].map(|name| Sha256::of(name)));
        assert_eq!(get(&texts, a, "digest"), None);
        insert(&texts, a, "digest", "{ a }");
        assert_eq!(get(&texts, a, "digest").as_deref(), Some("{ a }"));
        assert_eq!((get(&texts, a, "Digest"), get(&texts, b, "digest")), (None, None));
    }

    #[test]
    fn a_text_costs_its_bytes() {
        let (texts, bundle) = (Persisted::new(MOST), Sha256::of(b"a"));
        insert(&texts, bundle, "digest", &"x".repeat(1000));
        assert_eq!(texts.cost(), 64 + 1 + 6 + 1000);
    }
}
