//! The live screen of `up`: a status table below the log lines. Without a terminal, it prints only log lines.
//!
//! The table is redrawn line by line, and the screen is never cleared: terminals that save cleared text
//! (tmux) would fill their history with copies of the table. Only log lines scroll away.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_diagnostics::sanitize_lines;
use qontract_report::status_table::StatusLine;
use tokio::sync::Notify;

use crate::terminal::TerminalSize;

/// The live screen.
pub struct Screen {
    is_live: bool,
    has_colours: bool,
    /// The table that is on the terminal now.
    drawn: Mutex<DrawnTable>,
    /// Notified when the reader of the output has closed the pipe.
    closed: Notify,
}

/// The table on the terminal, and the size of the terminal when it was drawn.
#[derive(Debug, Default)]
struct DrawnTable {
    lines: Vec<StatusLine>,
    size: TerminalSize,
}

impl Screen {
    /// Creates a screen; `is_live` if stdout is a terminal.
    pub fn new(is_live: bool, has_colours: bool) -> Self {
        Self { is_live, has_colours, drawn: Mutex::default(), closed: Notify::new() }
    }

    /// A writer for log lines, which are printed above the table.
    pub fn sink(self: &Arc<Self>) -> ScreenWriter {
        ScreenWriter(Arc::clone(self))
    }

    /// Waits until the reader of the output has closed the pipe.
    pub async fn wait_until_closed(&self) {
        self.closed.notified().await;
    }

    /// Writes text above the table and escapes unsafe characters.
    pub fn text(&self, text: &str) -> io::Result<()> {
        self.write_line(sanitize_lines(text).as_bytes())
    }

    /// Writes log lines above the table; they are already escaped.
    fn write_line(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.closed.notify_one();
        }
        written
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // Lock order: the table first, then stdout.
        let drawn = self.drawn.lock();
        let mut out = io::stdout().lock();
        if !self.is_live {
            out.write_all(bytes)?;
            return out.flush();
        }
        let text = String::from_utf8_lossy(bytes);
        out.write_all(insert_above(&drawn, &text, TerminalSize::of_stdout(), self.has_colours).as_bytes())?;
        out.flush()
    }

    /// Replaces the drawn table.
    pub fn show(&self, lines: Vec<StatusLine>, size: TerminalSize) {
        let mut drawn = self.drawn.lock();
        if !self.is_live || (drawn.lines == lines && drawn.size == size) {
            return;
        }
        let mut out = io::stdout().lock();
        // A closed terminal is not a reason to exit.
        let text = redraw(&drawn, &lines, size, self.has_colours);
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        *drawn = DrawnTable { lines, size };
    }

    /// Stops redrawing the table: later output goes below it.
    pub fn close(&self) {
        *self.drawn.lock() = DrawnTable::default();
    }
}

/// Terminal sequence that clears the rest of the line and moves to the next one.
const END_OF_LINE: &str = "\x1b[K\r\n";

fn text_of(line: &StatusLine, has_colours: bool) -> String {
    if has_colours { line.styled() } else { line.text() }
}

/// Number of rows that the table takes on a terminal of this size, limited to how far the cursor can move up.
fn height(drawn: &DrawnTable, size: TerminalSize) -> usize {
    // In a terminal that became narrower, a drawn line may occupy several rows.
    let rows = drawn.lines.iter().map(|line| line.width().div_ceil(size.width.max(1)).max(1));
    rows.sum::<usize>().min(size.height.saturating_sub(1))
}

fn go_up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

/// Terminal output that draws `lines` over the previous table and skips unchanged lines.
fn redraw(drawn: &DrawnTable, lines: &[StatusLine], size: TerminalSize, has_colours: bool) -> String {
    let before = height(drawn, size);
    let is_same_size = drawn.size == size;
    let mut text = go_up(before);
    for (index, line) in lines.iter().enumerate() {
        if is_same_size && drawn.lines.get(index) == Some(line) {
            text.push_str("\r\n");
        } else {
            text.push_str(&text_of(line, has_colours));
            text.push_str(END_OF_LINE);
        }
    }
    // Rows that only the previous table had are erased.
    let more = before.saturating_sub(lines.len());
    text.push_str(&END_OF_LINE.repeat(more));
    text.push_str(&go_up(more));
    text
}

/// Terminal output that overwrites the table with text and draws the table again below it.
fn insert_above(drawn: &DrawnTable, text: &str, size: TerminalSize, has_colours: bool) -> String {
    let mut all = go_up(height(drawn, size));
    for line in text.lines() {
        all.push_str(line);
        all.push_str(END_OF_LINE);
    }
    for line in &drawn.lines {
        all.push_str(&text_of(line, has_colours));
        all.push_str(END_OF_LINE);
    }
    all
}

/// Writes lines above the table.
pub struct ScreenWriter(Arc<Screen>);

impl Write for ScreenWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_line(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: &[&str], size: TerminalSize) -> DrawnTable {
        DrawnTable { lines: table(lines), size }
    }

    fn table(lines: &[&str]) -> Vec<StatusLine> {
        lines.iter().map(|line| StatusLine::plain(line)).collect()
    }

    #[test]
    fn only_lines_that_changed_are_drawn_and_nothing_is_cleared_below() {
        let size = TerminalSize::default();
        let check = |before: &[&str], after: &[&str], expect: &str| {
            assert_eq!(redraw(&drawn(before, size), &table(after), size, false), expect);
        };
        check(&[], &["a", "b"], "a\x1b[K\r\nb\x1b[K\r\n");
        check(&["a", "b"], &["a", "c"], "\x1b[2A\r\nc\x1b[K\r\n");
        check(&["a", "b", "c"], &["a"], "\x1b[3A\r\n\x1b[K\r\n\x1b[K\r\n\x1b[2A");
    }

    #[test]
    fn a_narrower_terminal_wraps_lines() {
        let (wide, narrow) = (TerminalSize { width: 10, height: 24 }, TerminalSize { width: 4, height: 24 });
        let before = drawn(&["123456789", "", "12345678"], wide);
        assert_eq!(height(&before, wide), 3);
        assert_eq!(height(&before, narrow), 6);
        assert_eq!(
            height(&before, TerminalSize { width: 1, height: 8 }),
            7,
            "the cursor stays on the terminal"
        );
        // All lines are drawn again.
        assert!(redraw(&before, &before.lines, narrow, false).starts_with("\x1b[6A1"));
    }

    #[test]
    fn log_lines_are_written_above_the_table() {
        let size = TerminalSize::default();
        assert_eq!(
            insert_above(&drawn(&["a"], size), "one\ntwo\n", size, false),
            "\x1b[1Aone\x1b[K\r\ntwo\x1b[K\r\na\x1b[K\r\n"
        );
        assert_eq!(insert_above(&drawn(&[], size), "one\n", size, false), "one\x1b[K\r\n");
    }
}
