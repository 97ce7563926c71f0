//! A small pseudo-random number generator (splitmix64). Not `fastrand`, whose sequence may change with its
//! version: published figures were measured on the corpus, so its bytes never change.

/// A pseudo-random number generator.
pub(super) struct CorpusRng(u64);

impl CorpusRng {
    /// The generator of one document: the same seed, kind and index produce the same sequence.
    pub(super) fn new(seed: u64, kind: &str, index: usize) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for byte in kind.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut random = Self(state ^ (index as u64).wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `end`; 0 when `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let drawn = self.next() % (end.max(1) as u64);
        usize::try_from(drawn).expect("it is less than a usize")
    }

    /// A number of the closed range.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high + 1 - low)
    }

    /// True with a probability of `percent` in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the choices.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// At most `wanted` different numbers less than `end`, in ascending order.
    pub(super) fn distinct(&mut self, wanted: usize, end: usize) -> Vec<usize> {
        let drawn = (0..wanted).map(|_| self.below(end)).collect::<std::collections::BTreeSet<_>>();
        drawn.into_iter().filter(|&number| number < end).collect()
    }

    /// A Git commit: 40 hexadecimal digits.
    pub(super) fn commit(&mut self) -> String {
        let text = format!("{:016x}{:016x}{:016x}", self.next(), self.next(), self.next());
        text[..40].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::CorpusRng;

    #[test]
    fn the_first_numbers_never_change() {
        let mut random = CorpusRng::new(1, "kind", 0);
        let drawn: Vec<_> = (0..4).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, EXPECTED);
    }

    const EXPECTED: [usize; 4] = [132, 31, 546, 651];

    #[test]
    fn distinct_numbers_are_in_range_and_ascend() {
        let drawn = CorpusRng::new(2, "kind", 7).distinct(10, 5);
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(drawn.iter().all(|&number| number < 5));
    }
}
