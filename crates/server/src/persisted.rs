//! Texts of requests that clients name by their SHA-256 instead of sending them again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use qontract_bundle::Sha256;

/// How many bytes of texts are remembered (twice, at most).
const MOST: usize = 4 << 20;

/// The texts.
#[derive(Default)]
pub struct Persisted {
    generations: Mutex<[Generation; 2]>,
}

#[derive(Default)]
struct Generation {
    texts: HashMap<String, String>,
    bytes: usize,
}

impl Persisted {
    /// The text of a digest, if a bundle was asked it before.
    pub fn get(&self, bundle: Sha256, digest: &str) -> Option<String> {
        let key = format!("{bundle} {digest}");
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = generations[0].texts.get(&key) {
            return Some(text.clone());
        }
        let text = generations[1].texts.remove(&key)?;
        put(&mut generations, key, text.clone());
        Some(text)
    }

    /// Remembers a text that a bundle was asked, by its digest.
    pub fn insert(&self, bundle: Sha256, digest: &str, text: &str) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        put(&mut generations, format!("{bundle} {digest}"), text.to_owned());
    }
}

fn put(generations: &mut [Generation; 2], key: String, text: String) {
    let bytes = key.len() + text.len();
    if generations[0].bytes + bytes > MOST {
        generations[1] = std::mem::take(&mut generations[0]);
    }
    if generations[0].texts.insert(key, text).is_none() {
        generations[0].bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_to_the_bundle_that_was_asked() {
        let (persisted, [a, b]) = (Persisted::default(), [b"a", b"b"].map(|name| Sha256::of(name)));
        assert_eq!(persisted.get(a, "digest"), None);
        persisted.insert(a, "digest", "{ a }");
        assert_eq!(persisted.get(a, "digest").as_deref(), Some("{ a }"));
        assert_eq!((persisted.get(a, "Digest"), persisted.get(b, "digest")), (None, None));
    }

    #[test]
    fn texts_are_bounded() {
        let (persisted, bundle) = (Persisted::default(), Sha256::of(b"a"));
        for number in 0..100 {
            persisted.insert(bundle, &number.to_string(), &"x".repeat(200_000));
            assert!(persisted.get(bundle, "0").is_some());
        }
        assert!(persisted.get(bundle, "1").is_none());
        let generations = persisted.generations.lock().unwrap();
        assert!(generations.iter().all(|generation| generation.bytes <= MOST));
    }
}
