//! The output of a command: its last lines, for the record of the run.

use std::collections::VecDeque;
use std::io::Read;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 1000;

/// Maximum number of bytes that are kept.
const MAX_BYTES: usize = 64 << 10;

/// Maximum number of characters that are kept of a line.
const MAX_LINE_CHARS: usize = 2000;

/// Maximum number of bytes of a line that is read. A longer line is replaced, because a truncated line could contain
/// a part of a secret, which redaction would not recognise.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Replaces a line that is too long.
const LINE_TOO_LONG: &str = "[a line that is too long to be shown]";

/// The last lines of an output, redacted.
#[derive(Debug, Default)]
pub struct OutputTail {
    lines: VecDeque<String>,
    bytes: usize,
    omitted: usize,
}

impl OutputTail {
    /// Adds a line.
    pub fn push(&mut self, line: &str) {
        let line = match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        };
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let first = self.lines.pop_front().unwrap_or_default();
            self.bytes -= first.len();
            self.omitted += 1;
        }
    }

    /// The last lines.
    pub fn last(&self, count: usize) -> String {
        let skipped = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skipped).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// All kept lines, preceded by the number of omitted lines.
    pub fn into_lines(self) -> Vec<String> {
        let omitted = (self.omitted > 0).then(|| format!("[{} earlier lines are omitted]", self.omitted));
        omitted.into_iter().chain(self.lines).collect()
    }
}

/// Reads a stream to its end and passes each line to `sink`.
pub fn read_lines(mut stream: impl Read, sink: impl Fn(&str)) {
    let (mut piece, mut line, mut is_cut) = ([0; 8 << 10], Vec::new(), false);
    let emit = |line: &mut Vec<u8>, is_cut: &mut bool| {
        let text = String::from_utf8_lossy(line);
        let text = if *is_cut { LINE_TOO_LONG } else { text.trim_end() };
        if !text.is_empty() {
            sink(text);
        }
        line.clear();
        *is_cut = false;
    };
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        for byte in &piece[..length] {
            match byte {
                b'\n' => emit(&mut line, &mut is_cut),
                _ if line.len() >= MAX_LINE_BYTES => is_cut = true,
                _ => line.push(*byte),
            }
        }
    }
    emit(&mut line, &mut is_cut);
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    fn the_last_lines_are_kept() {
        let mut tail = OutputTail::default();
        (0..MAX_LINES + 2).for_each(|number| tail.push(&number.to_string()));
        assert_eq!(tail.last(2), format!("{}\n{}", MAX_LINES, MAX_LINES + 1));
        let lines = tail.into_lines();
        assert_eq!(
            (lines.len(), &*lines[0], &*lines[1]),
            (MAX_LINES + 1, "[2 earlier lines are omitted]", "2")
        );
        let mut long = OutputTail::default();
        (0..100).for_each(|_| long.push(&"é".repeat(MAX_LINE_CHARS + 1)));
        let lines = long.into_lines();
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES + 100);
        assert!(lines[1].ends_with("é…"));
    }

    #[test]
    fn whole_lines_are_read() {
        let check = |text: &str, expect: &[&str]| {
            let lines = Mutex::new(Vec::new());
            read_lines(text.as_bytes(), |line| lines.lock().push(line.to_owned()));
            assert_eq!(lines.into_inner(), expect);
        };
        check("", &[]);
        check("a\nb\r\n\nc", &["a", "b", "c"]);
        let fits = "x".repeat(MAX_LINE_BYTES);
        check(&fits, &[&fits]);
        check(&format!("{fits}y\nnext"), &[LINE_TOO_LONG, "next"]);
    }
}
