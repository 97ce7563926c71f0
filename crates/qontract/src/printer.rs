//! The one place that prints: data to stdout, talk to stderr.

use std::io::{self, Write as _};

use anstream::AutoStream;
use qontract_diagnostics::render::{self, Colour};
use qontract_diagnostics::{Report, Sources, shown};

/// Both streams of the process.
#[derive(Debug)]
pub struct Printer {
    out: io::Stdout,
    err: io::Stderr,
}

impl Default for Printer {
    fn default() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }
}

impl Printer {
    /// Where what is too large for one piece is written to.
    pub fn stdout(&self) -> &io::Stdout {
        &self.out
    }

    /// Writes data to stdout.
    pub fn data(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = self.out.lock();
        told(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Writes text to stdout; colours stay only where a terminal shows them and `NO_COLOR` is not set.
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        let mut out = AutoStream::auto(self.out.lock());
        told(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Says a line on stderr; colours stay only where a terminal shows them and `NO_COLOR` is not set.
    pub fn note(&self, line: &str) {
        // Nobody to talk to is no reason to fail.
        let _ = writeln!(AutoStream::auto(self.err.lock()), "{line}");
    }

    /// Says why a command ended.
    pub fn error(&self, error: &anyhow::Error) {
        self.note(&format!("error: {}", shown(&format!("{error:#}"))));
    }

    /// Shows findings on stderr, with their lines where `sources` has them, and a line that counts them.
    pub fn report(&self, report: &Report, sources: &dyn Sources) {
        if report.is_empty() {
            return;
        }
        let text = render::text(report, sources, Colour::Styled);
        self.note(&format!("{text}{}", report.summary()));
    }
}

/// What came of writing to stdout. A reader that went away has its right: it does not change what the exit code tells.
pub fn told(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
