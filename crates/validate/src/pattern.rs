//! Compiles Python regular expressions for the `fancy-regex` engine.
//!
//! Patterns in schemas are Python's, and are searched anywhere in the text. They are parsed by Python's
//! rules, so that a pattern that Python rejects is rejected here, and then written for our engine with
//! Python's meaning: `$` also matches before a final newline, `\d`, `\w` and `\b` cover all of Unicode, any
//! punctuation may be escaped.
//!
//! Patterns without look-around or backreferences take time linear in the text. The others are aborted after
//! a fixed number of backtracking steps, see [`Pattern::finds`].

mod parse;
mod syntax;
mod width;
mod write;

use fancy_regex::{Regex, RegexBuilder};

/// Maximum number of backtracking steps of a match: enough for real patterns, short for catastrophic ones.
const MOST_BACKTRACKS: usize = 100_000;
/// Maximum length of a pattern in bytes. Longer ones are rejected before they are compiled.
const LONGEST: usize = 64 << 10;
/// Maximum size of a compiled expression in bytes.
const MOST_BYTES: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(Regex);

/// The reason a text cannot be compiled as a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// Python rejects it, for this reason.
    Invalid(String),
    /// It is too large, or not supported by our engine.
    TooLarge,
}

/// A match was aborted because it exceeded the backtracking limit.
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

    /// Whether the pattern matches anywhere in `text`.
    pub fn finds(&self, text: &str) -> Result<bool, TooCostly> {
        self.0.is_match(text).map_err(|_| TooCostly)
    }
}
