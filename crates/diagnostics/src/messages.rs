//! The sink through which libraries send messages to the user.

use crate::{Report, Sources};

/// Receives notes and findings for the user. Libraries do not print; the binary prints messages to stderr.
pub trait MessageSink: Send + Sync {
    /// Receives a progress line: `note: …`, `warning: …`.
    fn note(&self, line: &str);

    /// Receives findings; `sources` provides file contents for code frames.
    fn report(&self, report: &Report, sources: &dyn Sources);
}
