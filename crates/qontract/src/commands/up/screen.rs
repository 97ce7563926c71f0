//! What one sees: a table that lives on a terminal, below the lines of the log; elsewhere only the lines.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qontract_diagnostics::{shown, shown_lines};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::crew::Voices;
use crate::keep::voice::{ShardRow, Status};

/// The screen.
pub struct Screen {
    is_live: bool,
    /// How many lines the table has now, and its text.
    table: Mutex<(usize, String)>,
    /// Told when nobody reads any more.
    gone: Notify,
}

impl Screen {
    /// A screen; on a terminal it is live.
    pub fn new(is_live: bool) -> Self {
        Self { is_live, table: Mutex::default(), gone: Notify::new() }
    }

    /// Where the lines of the log go: above the table.
    pub fn sink(self: &Arc<Self>) -> Sink {
        Sink(Arc::clone(self))
    }

    /// Waits until nobody reads any more.
    pub async fn is_gone(&self) {
        self.gone.notified().await;
    }

    /// Writes text above the table, with unsafe characters as escapes.
    pub fn text(&self, text: &str) -> io::Result<()> {
        self.line(shown_lines(text).as_bytes())
    }

    /// Writes lines of the log above the table; they are safe.
    fn line(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.gone.notify_one();
        }
        written
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // Always the table first, then the terminal: whoever takes both takes them in this order.
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = io::stdout().lock();
        if !self.is_live {
            out.write_all(bytes)?;
            return out.flush();
        }
        out.write_all(wiped(table.0).as_bytes())?;
        out.write_all(bytes)?;
        out.write_all(table.1.as_bytes())?;
        out.flush()
    }

    /// Shows another table.
    fn show(&self, text: String) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_live || table.1 == text {
            return;
        }
        let mut out = io::stdout().lock();
        // A terminal that went away is no reason to end.
        let _ = out.write_all(format!("{}{text}", wiped(table.0)).as_bytes()).and_then(|()| out.flush());
        *table = (text.lines().count(), text);
    }

    /// Leaves the table as it is.
    pub fn close(&self) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = (0, String::new());
    }
}

/// What removes the last lines of a terminal.
fn wiped(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// Writes lines above the table.
pub struct Sink(Arc<Screen>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.line(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Draws the table, for ever.
pub async fn draw(screen: Arc<Screen>, voices: Arc<Voices>) {
    loop {
        let rows: Vec<(String, Status)> =
            voices.all().iter().map(|voice| (voice.integration().to_owned(), voice.status())).collect();
        screen.show(fitted(&table(&rows, Instant::now()), size()));
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// How many lines and columns the terminal has, if that is known.
fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some((usize::from(size.ws_row), usize::from(size.ws_col)))
        .filter(|(lines, columns)| *lines > 0 && *columns > 0)
}

/// As much of a table as a terminal can show: what it has scrolled away or broken into two lines cannot be removed.
fn fitted(table: &str, size: Option<(usize, usize)>) -> String {
    let Some((lines, columns)) = size else { return table.to_owned() };
    // One line is left for the cursor.
    let (all, room) = (table.lines().count(), lines.saturating_sub(1));
    let shown = if all > room { room.saturating_sub(1) } else { all };
    let mut text = String::new();
    for line in table.lines().take(shown) {
        text.extend(line.chars().take(columns));
        text.push('\n');
    }
    if all > shown && room > 0 {
        let more = format!("and {} more lines", all - shown);
        text.extend(more.chars().take(columns));
        text.push('\n');
    }
    text
}

/// More shards of one integration than this are not shown.
const MOST_SHARDS: usize = 5;

/// The table: a row for each loop, and below it one for each shard with something to tell.
fn table(rows: &[(String, Status)], now: Instant) -> String {
    let mut lines =
        vec![["INTEGRATION", "SHARD", "NOW", "LAST", "TOOK", "CHANGES", "NEXT"].map(str::to_owned)];
    for (name, status) in rows {
        let (last, took) = status.last.map_or_else(Default::default, |(ended, took)| {
            (ended.as_str().to_owned(), format!("{:.1} s", took.as_secs_f64()))
        });
        let next = status.next.map_or_else(String::new, |next| {
            format!("in {} s", next.saturating_duration_since(now).as_secs())
        });
        let doing = status.doing.last().map_or_else(|| status.word.to_owned(), |one| short(&one.what));
        let shards =
            if status.last.is_some() { format!("all {}", status.shards.len()) } else { String::new() };
        lines.push([name.clone(), shards, doing, last, took, changes(status.changes), next]);
        let news: Vec<&ShardRow> =
            status.shards.iter().filter(|row| row.failed || row.changes != (0, 0)).collect();
        for row in news.iter().take(MOST_SHARDS) {
            let word = match row {
                ShardRow { failed: true, .. } => "failed",
                ShardRow { changes: (_, 1..), .. } => "held",
                ShardRow { .. } => "ok",
            };
            let word = word.to_owned();
            let empty = String::new;
            lines.push([empty(), short(&row.key), empty(), word, empty(), changes(row.changes), empty()]);
        }
        if news.len() > MOST_SHARDS {
            let more = format!("and {} more", news.len() - MOST_SHARDS);
            lines.push(["", &more, "", "", "", "", ""].map(str::to_owned));
        }
    }
    let mut widths = [0; 7];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn changes(counts: (usize, usize)) -> String {
    match counts {
        (changes, 0) => changes.to_string(),
        (changes, held) => format!("{changes}, {held} held"),
    }
}

/// A cell: the beginning of a text, in one line.
fn short(text: &str) -> String {
    let text = shown(text);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ShardRow, Status, fitted, table};
    use qontract_runtime::Ended;
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn a_table_is_no_larger_than_its_terminal() {
        let table = "one two\nthree\nfour\n";
        assert_eq!(fitted(table, None), table);
        assert_eq!(fitted(table, Some((4, 7))), table);
        assert_eq!(fitted(table, Some((3, 5))), "one t\nand 2\n");
        assert_eq!(fitted(table, Some((2, 80))), "and 3 more lines\n");
        assert_eq!(fitted(table, Some((1, 80))), "");
    }

    fn row(key: &str, changes: (usize, usize), failed: bool) -> ShardRow {
        ShardRow { key: key.to_owned(), changes, failed }
    }

    #[test]
    fn a_row_tells_how_a_loop_goes() {
        let now = Instant::now();
        let status = Status {
            word: "sleeps",
            last: Some((Ended::Failed, Duration::from_millis(1230))),
            changes: (2, 1),
            shards: vec![
                row("cluster=a", (2, 1), false),
                row("cluster=b", (0, 0), true),
                row("cluster=c", (0, 0), false),
            ],
            next: Some(now + Duration::from_mins(10)),
            ..Status::default()
        };
        assert_eq!(
            table(&[("openshift-namespaces".to_owned(), status)], now),
            "INTEGRATION           SHARD      NOW     LAST    TOOK   CHANGES    NEXT\n\
             openshift-namespaces  all 3      sleeps  failed  1.2 s  2, 1 held  in 600 s\n\
             \x20                     cluster=a          held           2, 1 held\n\
             \x20                     cluster=b          failed         0\n"
        );
    }
}
