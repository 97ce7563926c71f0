//! Answers that were given before. A bundle never changes, so neither does what it answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use qontract_bundle::Sha256;

use crate::compress::Coding;
use crate::tag::Tag;

/// An answer, with what is made of it once.
#[derive(Debug)]
pub struct Answered {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    tag: OnceLock<Tag>,
    gzip: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
}

impl Answered {
    /// This answer.
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let (tag, gzip, zstd) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { status, body: body.into(), tag, gzip, zstd }
    }

    /// Its tag.
    pub fn tag(&self) -> &Tag {
        self.tag.get_or_init(|| Tag::of(&self.body))
    }

    /// Its body in another form.
    pub fn encoded(&self, coding: Coding) -> Bytes {
        let made = match coding {
            Coding::Identity => return self.body.clone(),
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        };
        made.get_or_init(|| coding.encode(&self.body)).clone()
    }
}

/// What an answer is kept under: a digest of the bundle's sha and of everything that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(Sha256);

impl Key {
    /// The key of a request to a bundle. Parts cannot run into each other: each is told with its length.
    pub fn of(sha: Sha256, parts: &[&str]) -> Self {
        let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_le_bytes()).collect();
        let parts =
            parts.iter().zip(&lengths).flat_map(|(part, length)| [length.as_slice(), part.as_bytes()]);
        Self(Sha256::of_parts([sha.as_bytes().as_slice()].into_iter().chain(parts)))
    }
}

/// Answers within a budget of bytes: what is asked for again lives on, what nobody asked for is gone.
#[derive(Debug)]
pub struct Answers {
    generations: Mutex<[Generation; 2]>,
    /// How many bytes a generation has.
    most: usize,
}

#[derive(Debug, Default)]
struct Generation {
    answers: HashMap<Key, Arc<Answered>>,
    bytes: usize,
}

impl Answers {
    /// Keeps at most this many bytes; with 0, nothing.
    pub fn new(budget: usize) -> Self {
        Self { generations: Mutex::default(), most: budget / 2 }
    }

    /// Whether nothing is kept at all.
    pub fn is_off(&self) -> bool {
        self.most == 0
    }

    /// What is kept under `key`.
    pub fn get(&self, key: Key) -> Option<Arc<Answered>> {
        let mut generations = self.lock();
        if let Some(found) = generations[0].answers.get(&key) {
            return Some(Arc::clone(found));
        }
        let found = generations[1].answers.remove(&key)?;
        generations[1].bytes -= cost(&found);
        self.put(&mut generations, key, Arc::clone(&found));
        Some(found)
    }

    /// Keeps an answer, unless it is too large to be worth it.
    pub fn insert(&self, key: Key, answered: Arc<Answered>) {
        if cost(&answered) <= self.most / 4 {
            self.put(&mut self.lock(), key, answered);
        }
    }

    /// How many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.lock().iter().map(|generation| generation.bytes).sum()
    }

    fn put(&self, generations: &mut [Generation; 2], key: Key, answered: Arc<Answered>) {
        let cost = cost(&answered);
        if generations[0].bytes + cost > self.most {
            generations[1] = std::mem::take(&mut generations[0]);
        }
        if generations[0].answers.insert(key, answered).is_none() {
            generations[0].bytes += cost;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [Generation; 2]> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an answer costs: its body, half of it again for its compressed forms, and what is around it.
fn cost(answered: &Answered) -> usize {
    answered.body.len() + answered.body.len() / 2 + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::of(Sha256::of(b"bundle"), &[text])
    }

    fn answered(bytes: usize) -> Arc<Answered> {
        Arc::new(Answered::new(200, vec![b'x'; bytes]))
    }

    #[test]
    fn the_budget_holds_and_what_is_asked_stays() {
        let answers = Answers::new(100_000);
        answers.insert(key("kept"), answered(100));
        for number in 0..1000 {
            answers.insert(key(&number.to_string()), answered(1000));
            assert!(answers.get(key("kept")).is_some());
            assert!(answers.bytes() <= 100_000);
        }
        assert!(answers.get(key("1")).is_none());
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let answers = Answers::new(10_000);
        answers.insert(key("large"), answered(1_000));
        assert!(answers.get(key("large")).is_none());
        let off = Answers::new(0);
        off.insert(key("any"), answered(1));
        assert!(off.is_off() && off.get(key("any")).is_none());
    }

    #[test]
    fn the_same_twice_counts_once() {
        let answers = Answers::new(100_000);
        answers.insert(key("a"), answered(1000));
        let bytes = answers.bytes();
        answers.insert(key("a"), answered(1000));
        assert_eq!(answers.bytes(), bytes);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let sha = Sha256::of(b"bundle");
        assert_ne!(Key::of(sha, &["ab", "c"]), Key::of(sha, &["a", "bc"]));
        assert_ne!(Key::of(sha, &["a"]), Key::of(sha, &["a", ""]));
    }
}
