//! Chance from a seed: the same seed, the same events.

use fastrand::Rng;

/// A stream of numbers.
#[derive(Debug)]
pub struct Chance(Rng);

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// A number below `limit`, or 0 if there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit.max(1))
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}
