//! Findings with terminal styles.

use crate::render::{Colour, first, text};
use crate::report::{Report, Sources};

/// Text with terminal styles of ours, in which data is escaped.
///
/// Only findings have styles, and only this module makes such a text: whatever else is printed goes through [`shown_lines`](crate::shown_lines), which lets no style pass.
#[derive(Clone, Debug)]
pub struct Styled(String);

impl Styled {
    /// All findings of a report, and a line that counts them.
    pub fn report(report: &Report, sources: &dyn Sources) -> Self {
        Self(format!("{}{}\n", text(report, sources, Colour::Styled), report.summary()))
    }

    /// The first `max` findings of a report, an empty line after each.
    pub fn first(report: &Report, max: usize, sources: &dyn Sources) -> Self {
        Self(first(report, max, sources, Colour::Styled))
    }

    /// The text, for a terminal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
