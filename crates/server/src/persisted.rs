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
    /// The text of a digest.
    pub fn get(&self, digest: &str) -> Option<String> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = generations[0].texts.get(digest) {
            return Some(text.clone());
        }
        let text = generations[1].texts.remove(digest)?;
        put(&mut generations, digest, &text);
        Some(text)
    }

    /// Remembers a text, if this is its digest.
    pub fn insert(&self, digest: &str, text: &str) -> bool {
        if Sha256::of(text.as_bytes()).to_string() != digest {
            return false;
        }
        put(&mut self.generations.lock().unwrap_or_else(PoisonError::into_inner), digest, text);
        true
    }
}

fn put(generations: &mut [Generation; 2], digest: &str, text: &str) {
    if generations[0].bytes + text.len() > MOST {
        generations[1] = std::mem::take(&mut generations[0]);
    }
    if generations[0].texts.insert(digest.to_owned(), text.to_owned()).is_none() {
        generations[0].bytes += digest.len() + text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_digest_and_by_no_other() {
        let persisted = Persisted::default();
        let digest = Sha256::of(b"{ a }").to_string();
        assert_eq!(persisted.get(&digest), None);
        assert!(!persisted.insert("abc", "{ a }"));
        assert!(persisted.insert(&digest, "{ a }"));
        assert_eq!(persisted.get(&digest).as_deref(), Some("{ a }"));
    }

    #[test]
    fn texts_are_bounded() {
        let persisted = Persisted::default();
        for number in 0..100 {
            let text = format!("{number}").repeat(100_000);
            assert!(persisted.insert(&Sha256::of(text.as_bytes()).to_string(), &text));
        }
        let generations = persisted.generations.lock().unwrap();
        assert!(generations.iter().all(|generation| generation.bytes <= MOST));
    }
}
