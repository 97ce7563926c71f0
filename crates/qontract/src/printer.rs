//! The one place that prints: data to stdout, talk to stderr.

use std::io::{self, Write as _};

use qontract_diagnostics::render::{self, Colour};
use qontract_diagnostics::{Report, Sources};

/// Prints; colours only where a terminal shows them (`NO_COLOR` is honoured).
#[derive(Debug, Default)]
pub struct Printer {}

impl Printer {
    /// Writes data to stdout.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub fn data(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Writes text to stdout, with its colours only where a terminal shows them.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Says a line on stderr.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub fn note(&self, line: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    }

    /// Says why a command ended.
    pub fn error(&self, error: &anyhow::Error) {
        self.note(&format!("error: {error:#}"));
    }

    /// Shows findings on stderr, with their lines where `sources` has them, and a line that counts them.
    #[expect(clippy::unused_self, reason = "whoever prints has a printer")]
    pub fn report(&self, report: &Report, sources: &dyn Sources) {
        if report.is_empty() {
            return;
        }
        let text = render::text(report, sources, Colour::Styled);
        let _ = writeln!(anstream::stderr().lock(), "{text}{}", report.summary());
    }
}

/// Whether the reader of stdout went away, which is its right.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
