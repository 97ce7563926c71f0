//! Seeded random choices.

use qontract_testkit::SeededRng;
use serde_json::Value;

/// A source of random choices. Equal seeds give equal choices.
pub struct TestRng(SeededRng);

impl TestRng {
    pub fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    /// A number below `count`; 0 if `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.below(count)
    }

    /// One of the choices.
    pub fn pick(&mut self, choices: &[Value]) -> Value {
        choices[self.below(choices.len())].clone()
    }

    /// One of the words.
    pub fn word<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}
