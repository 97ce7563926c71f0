//! The one place that prints: data to stdout, talk to stderr.
//!
//! **Invariant:** no character of the data commands a terminal or changes what is seen (`hostile_output.rs`). Text goes through [`shown_lines`] and JSON through [`shown_json`], whatever the
//! command did before; terminal styles pass only in [`Styled`], in which data is escaped. What a command prints as one line goes through `shown` beforehand, so that data does not begin
//! lines of its own.

use std::io::{self, Write};

use anstream::AutoStream;
use qontract_diagnostics::{Report, Sources, Styled, shown, shown_json, shown_lines};
use qontract_runtime::Fault;

use crate::progress;

/// Both streams of the process.
#[derive(Debug)]
pub struct Printer {
    out: io::Stdout,
    err: io::Stderr,
}

/// Whether stdout is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It is.
    There,
    /// The other end of the pipe is closed.
    Gone,
}

impl Default for Printer {
    fn default() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }
}

impl Printer {
    /// Where a bundle is written to, byte for byte. Its JSON is printable ASCII, as Python writes it.
    pub fn bundle_out(&self) -> &io::Stdout {
        &self.out
    }

    /// Writes JSON to stdout, with unsafe characters as escapes: the same value.
    pub fn json(&self, json: &[u8]) -> anyhow::Result<()> {
        self.write(shown_json(&String::from_utf8_lossy(json)).as_bytes())
    }

    /// Writes text to stdout, with unsafe characters as escapes.
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        self.write(shown_lines(text).as_bytes())
    }

    /// Writes findings to stdout, as [`styled`](Self::styled) text.
    pub fn findings(&self, findings: &Styled) -> anyhow::Result<()> {
        self.styled(findings)
    }

    /// Writes styled text to stdout; colours stay only where a terminal shows them and `NO_COLOR` is not set.
    pub fn styled(&self, text: &Styled) -> anyhow::Result<()> {
        progress::erase();
        written(AutoStream::auto(self.out.lock()).write_all(text.as_str().as_bytes()))
    }

    /// Writes text to stdout, for commands that go on until the reader closes the pipe. Unsafe characters are escapes.
    pub fn follow(&self, text: &str) -> anyhow::Result<Reader> {
        progress::erase();
        let mut out = self.out.lock();
        match out.write_all(shown_lines(text).as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            result => Ok(result.map(|()| Reader::There)?),
        }
    }

    /// Says a line on stderr, with unsafe characters as escapes.
    pub fn note(&self, line: &str) {
        progress::erase();
        // Nobody to talk to is no reason to fail.
        let _ = writeln!(self.err.lock(), "{}", shown_lines(line));
    }

    /// Prints why a command failed; the lines and the hint of a fault go below it.
    pub fn error(&self, error: &anyhow::Error) {
        let mut text = format!("error: {}", shown(&format!("{error:#}")));
        if let Some(fault) = error.chain().find_map(|cause| cause.downcast_ref::<Fault>()) {
            fault.details.iter().for_each(|line| text.push_str(&format!("\n    {}", shown(line))));
            fault.hint.iter().for_each(|hint| text.push_str(&format!("\nhint: {}", shown(hint))));
        }
        self.note(&text);
    }

    /// Shows findings on stderr, with their lines where `sources` has them, and a line that counts them; colours stay only where a terminal shows them and `NO_COLOR` is
    /// not set.
    pub fn report(&self, report: &Report, sources: &dyn Sources) {
        if report.is_empty() {
            return;
        }
        let text = Styled::report(report, sources);
        progress::erase();
        let _ = AutoStream::auto(self.err.lock()).write_all(text.as_str().as_bytes());
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        progress::erase();
        let mut out = self.out.lock();
        written(out.write_all(bytes).and_then(|()| out.flush()))
    }
}

/// What came of writing to stdout. A reader that went away has its right: it does not change what the exit code tells.
pub fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}
