//! Random choices from a number.

use serde_json::Value;

/// A small generator; the same number gives the same choices.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `count`, 0 if there is none.
    pub fn below(&mut self, count: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (count.max(1) as u64)).unwrap()
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
