//! Regular expressions as the data's authors know them, turned into what our engine reads.
//!
//! Patterns in schemas are Python's, looked for anywhere in the text. They are read by Python's own rules, so that
//! what Python refuses is refused, and then written for our engine with the meaning that they have there: `$` is also
//! before a final newline, `\d`, `\w` and `\b` know all scripts, any punctuation may be escaped.
//!
//! Patterns without look-around take time in proportion to the text; the others are given up after a fixed number of
//! steps, see [`Pattern::finds`].

mod parse;
mod syntax;
mod width;
mod write;

use fancy_regex::{Regex, RegexBuilder};

/// How often an expression may turn back before it is given up: long enough for honest patterns, short for bombs.
const MOST_BACKTRACKS: usize = 100_000;
/// The longest pattern, in bytes: a longer one is refused before it is compiled.
const LONGEST: usize = 64 << 10;
/// Most bytes that a compiled expression may take.
const MOST_BYTES: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(Regex);

/// Why a text is no pattern that can be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// Python does not take it, for this reason.
    Invalid(String),
    /// It is too large, or goes beyond what our engine can do.
    TooLarge,
}

/// Whether a pattern is found could not be decided in reasonable time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooCostly;

impl Pattern {
    /// Compiles a Python pattern.
    pub fn new(python: &str) -> Result<Self, BadPattern> {
        if python.len() > LONGEST {
            return Err(BadPattern::TooLarge);
        }
        let parsed = parse::parse(python).map_err(BadPattern::Invalid)?;
        let mut builder = RegexBuilder::new(&write::write(&parsed));
        builder.backtrack_limit(MOST_BACKTRACKS).delegate_size_limit(MOST_BYTES);
        builder.build().map(Self).map_err(|_| BadPattern::TooLarge)
    }

    /// Whether the pattern is found in `text`.
    pub fn finds(&self, text: &str) -> Result<bool, TooCostly> {
        self.0.is_match(text).map_err(|_| TooCostly)
    }
}
