//! Answers that were given before. A bundle never changes, so neither does what it answers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use qontract_bundle::Sha256;
use qontract_graphql::Cache;

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

/// The bytes of a body without much room to spare: what is kept is counted by its bytes.
pub fn fitting(mut body: Vec<u8>) -> Vec<u8> {
    if body.capacity() - body.len() > body.len() / 4 {
        body.shrink_to_fit();
    }
    body
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

/// Answers within a budget of bytes.
pub type Answers = Cache<Key, Arc<Answered>>;

/// Keeps an answer, unless it is too large to be worth it.
pub fn keep(answers: &Answers, key: Key, answered: &Arc<Answered>) {
    answers.insert(key, Arc::clone(answered), cost(answered));
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
    fn an_answer_costs_its_bytes() {
        let answers = Answers::new(10_000);
        keep(&answers, key("large"), &answered(1_000));
        assert!(answers.get(&key("large")).is_none());
        keep(&answers, key("small"), &answered(100));
        assert!(answers.get(&key("small")).is_some());
        assert_eq!(answers.cost(), 100 + 50 + 256);
    }

    #[test]
    fn an_answer_has_no_room_to_spare() {
        let mut body = Vec::with_capacity(1 << 20);
        body.extend_from_slice(b"{}");
        assert_eq!(fitting(body).capacity(), 2);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let sha = Sha256::of(b"bundle");
        assert_ne!(Key::of(sha, &["ab", "c"]), Key::of(sha, &["a", "bc"]));
        assert_ne!(Key::of(sha, &["a"]), Key::of(sha, &["a", ""]));
    }
}
