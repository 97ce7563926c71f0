//! The sink for messages of libraries to the user.

use crate::{Report, Sources};

/// Receives notes and findings for the user. Libraries do not print; the binary prints messages to stderr.
pub trait MessageSink: Send + Sync {
    /// Receives a line about the progress: `note: …`, `warning: …`.
    fn note(&self, line: &str);

    /// Receives findings; `sources` has the texts of the files for code frames.
    fn report(&self, report: &Report, sources: &dyn Sources);
}
