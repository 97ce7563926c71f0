//! Compiles Python regular expressions for the `fancy-regex` engine.
//!
//! Patterns in schemas are Python regular expressions, and match anywhere in the string. They are parsed as
//! in Python, so a pattern that Python rejects is rejected here. Then they are translated for this engine
//! with the semantics of Python: `$` also matches before a final newline; `\d`, `\w` and `\b` cover all of
//! Unicode; any punctuation may be escaped.
//!
//! Patterns without look-around or backreferences match in linear time. A match of any other pattern is aborted
//! after a fixed number of backtracking steps; see [`Pattern::is_match`].

mod parse;
mod syntax;
mod width;
mod write;

use fancy_regex::{Regex, RegexBuilder};

/// Maximum number of backtracking steps of a match: enough for real patterns, and few enough to stop
/// catastrophic patterns quickly.
const MAX_BACKTRACKS: usize = 100_000;
/// Maximum length of a pattern in bytes. Longer patterns are rejected before they are compiled.
const MAX_PATTERN_LEN: usize = 64 << 10;
/// Maximum size of a compiled expression in bytes.
const MAX_COMPILED_SIZE: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern(Regex);

/// The reason why a pattern cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// Python rejects the pattern, for this reason.
    Invalid(String),
    /// The pattern is too large, or the engine does not support it.
    TooLarge,
}

/// A match was aborted because it exceeded the backtracking limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacktrackLimitError;

impl Pattern {
    /// Compiles a Python pattern.
    pub fn new(python: &str) -> Result<Self, PatternError> {
        if python.len() > MAX_PATTERN_LEN {
            return Err(PatternError::TooLarge);
        }
        let parsed = parse::parse(python).map_err(PatternError::Invalid)?;
        let mut builder = RegexBuilder::new(&write::write(&parsed));
        builder.backtrack_limit(MAX_BACKTRACKS).delegate_size_limit(MAX_COMPILED_SIZE);
        builder.build().map(Self).map_err(|_| PatternError::TooLarge)
    }

    /// Whether the pattern matches anywhere in `text`.
    pub fn is_match(&self, text: &str) -> Result<bool, BacktrackLimitError> {
        self.0.is_match(text).map_err(|_| BacktrackLimitError)
    }
}
