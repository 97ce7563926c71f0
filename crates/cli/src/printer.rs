//! The only module that prints: results to stdout, messages to stderr.
//!
//! **Invariant:** no character of the data controls the terminal or changes how output looks
//! (`hostile_output.rs`). All text goes through [`sanitize_lines`], and all JSON goes through
//! [`sanitize_json`]; terminal styles are kept only in [`StyledText`], in which data is escaped. A command
//! escapes single-line values with [`sanitize`] first, so that data cannot start a new line.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};

use anstream::AutoStream;
use qontract_diagnostics::{
    MessageSink, Report, Sources, StyledText, sanitize, sanitize_json, sanitize_lines,
};
use qontract_runtime::Fault;

use crate::pretty;
use crate::progress;

/// The amount of output besides results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verbosity {
    /// Warnings and errors.
    Quiet,
    /// Warnings, errors and notes.
    Normal,
    /// Everything.
    Verbose,
}

/// The verbosity of the process, set once from the command line.
static VERBOSITY: AtomicU8 = AtomicU8::new(Verbosity::Normal as u8);

/// Sets the verbosity of this process.
pub fn set_verbosity(verbosity: Verbosity) {
    VERBOSITY.store(verbosity as u8, Ordering::Relaxed);
}

/// The verbosity of this process.
pub fn verbosity() -> Verbosity {
    match VERBOSITY.load(Ordering::Relaxed) {
        0 => Verbosity::Quiet,
        1 => Verbosity::Normal,
        _ => Verbosity::Verbose,
    }
}

/// Stdout and stderr of the process.
#[derive(Debug)]
pub struct Printer {
    out: io::Stdout,
    err: io::Stderr,
}

/// Whether stdout is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PipeState {
    /// The pipe is open.
    Open,
    /// The other end of the pipe is closed.
    Closed,
}

impl Default for Printer {
    fn default() -> Self {
        Self { out: io::stdout(), err: io::stderr() }
    }
}

impl MessageSink for Printer {
    fn note(&self, line: &str) {
        Self::note(self, line);
    }

    fn report(&self, report: &Report, sources: &dyn Sources) {
        Self::report(self, report, sources);
    }
}

impl Printer {
    /// Stdout for a bundle, which is written byte for byte: its JSON is printable ASCII.
    pub fn bundle_out(&self) -> &io::Stdout {
        &self.out
    }

    /// Writes JSON to stdout and escapes unsafe characters, which does not change the value.
    pub fn json(&self, json: &[u8]) -> anyhow::Result<()> {
        self.write(sanitize_json(&String::from_utf8_lossy(json)).as_bytes())
    }

    /// Writes text to stdout and escapes unsafe characters.
    pub fn text(&self, text: &str) -> anyhow::Result<()> {
        self.write(sanitize_lines(text).as_bytes())
    }

    /// Writes findings to stdout, as [`styled`](Self::styled) text.
    pub fn findings(&self, findings: &StyledText) -> anyhow::Result<()> {
        self.styled(findings)
    }

    /// Writes styled text to stdout; colours are removed unless stdout is a terminal and `NO_COLOR` is unset.
    pub fn styled(&self, text: &StyledText) -> anyhow::Result<()> {
        progress::erase();
        ignore_broken_pipe(AutoStream::auto(self.out.lock()).write_all(text.as_str().as_bytes()))
    }

    /// Writes text to stdout and escapes unsafe characters, for commands that run until the reader closes the
    /// pipe.
    pub fn print_streaming(&self, text: &str) -> anyhow::Result<PipeState> {
        progress::erase();
        let mut out = self.out.lock();
        match out.write_all(sanitize_lines(text).as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(PipeState::Closed),
            result => Ok(result.map(|()| PipeState::Open)?),
        }
    }

    /// Writes JSON to stdout: indented on a terminal, otherwise unchanged.
    pub fn print_json(&self, json: &[u8]) -> anyhow::Result<()> {
        if io::IsTerminal::is_terminal(&self.out) {
            self.json(pretty::json(&String::from_utf8_lossy(json)).as_bytes())
        } else {
            self.json(json)
        }
    }

    /// Writes help or a usage error, which has its own styles and contains no data.
    pub fn usage(&self, styled: &str, is_error: bool) {
        let _ = if is_error {
            AutoStream::auto(self.err.lock()).write_all(styled.as_bytes())
        } else {
            AutoStream::auto(self.out.lock()).write_all(styled.as_bytes())
        };
    }

    /// Writes lines to stderr and escapes unsafe characters; with `--quiet`, only warnings and errors.
    pub fn note(&self, line: &str) {
        if verbosity() == Verbosity::Quiet && !["error", "warning"].iter().any(|word| line.starts_with(word))
        {
            return;
        }
        progress::erase();
        let line = sanitize_lines(line);
        let line = if has_colours(&self.err) { coloured(&line) } else { line };
        // A closed stderr is not a reason to fail.
        let _ = writeln!(self.err.lock(), "{line}");
    }

    /// Writes the error of a command to stderr, followed by the details and the hint of a fault.
    pub fn error(&self, error: &anyhow::Error) {
        let mut text = format!("error: {}", sanitize(&format!("{error:#}")));
        if let Some(fault) = error.chain().find_map(|cause| cause.downcast_ref::<Fault>()) {
            fault.details.iter().for_each(|line| text.push_str(&format!("\n    {}", sanitize(line))));
            fault.hint.iter().for_each(|hint| text.push_str(&format!("\nhint: {}", sanitize(hint))));
        }
        self.note(&text);
    }

    /// Writes findings to stderr, with source lines from `sources`, and a summary line; colours are removed
    /// unless stderr is a terminal and `NO_COLOR` is unset.
    pub fn report(&self, report: &Report, sources: &dyn Sources) {
        if report.is_empty() {
            return;
        }
        let text = StyledText::report(report, sources);
        progress::erase();
        let _ = AutoStream::auto(self.err.lock()).write_all(text.as_str().as_bytes());
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        progress::erase();
        let mut out = self.out.lock();
        ignore_broken_pipe(out.write_all(bytes).and_then(|()| out.flush()))
    }
}

/// Colours `error:`, `warning:`, `note:` and `hint:` at the beginning of lines.
fn coloured(text: &str) -> Cow<'_, str> {
    let colours = [("error:", "1;31"), ("warning:", "1;33"), ("note:", "1;32"), ("hint:", "1;36")];
    let line = |line: &str| {
        let prefix = colours.iter().find(|(word, _)| line.starts_with(word));
        prefix.map_or_else(
            || line.to_owned(),
            |(word, colour)| format!("\x1b[{colour}m{word}\x1b[0m{}", &line[word.len()..]),
        )
    };
    Cow::Owned(text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

/// Whether colours are shown on a stream: as `--color`, `NO_COLOR` and `CLICOLOR_FORCE` specify, otherwise
/// only on a terminal.
pub fn has_colours(stream: &impl anstream::stream::RawStream) -> bool {
    AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Treats a broken pipe as success: a reader that closes stdout early, such as `head`, does not change the
/// exit code.
pub fn ignore_broken_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use super::coloured;

    #[test]
    fn the_prefix_of_a_line_is_coloured() {
        let check = |text: &str, expect: &str| assert_eq!(coloured(text), expect);
        check(
            "error: a\n    error: b\nnote: c",
            "\x1b[1;31merror:\x1b[0m a\n    error: b\n\x1b[1;32mnote:\x1b[0m c",
        );
        check("plain", "plain");
    }
}
