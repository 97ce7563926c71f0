//! Where libraries send messages for the user.

use crate::{Report, Sources};

/// Receives notes and findings for the user. Libraries do not print themselves; the binary shows messages on stderr.
pub trait MessageSink: Send + Sync {
    /// A line about what is going on: `note: …`, `warning: …`.
    fn note(&self, line: &str);

    /// Findings, with their lines where `sources` has them.
    fn report(&self, report: &Report, sources: &dyn Sources);
}
