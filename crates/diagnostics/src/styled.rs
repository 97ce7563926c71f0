//! Findings with terminal styles.

use crate::diagnostic::Diagnostic;
use crate::render::{Colour, one, text};
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

    /// These findings, an empty line after each.
    pub fn findings(findings: &[Diagnostic], sources: &dyn Sources) -> Self {
        let each = findings.iter().map(|finding| one(finding, sources, Colour::Styled) + "\n\n");
        Self(each.collect())
    }

    /// The text, for a terminal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
