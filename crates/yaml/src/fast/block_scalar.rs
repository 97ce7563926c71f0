//! Parses block scalars, below `|` or `>`.

use super::{FastEventKind, FastParser};
use crate::events::Style;

/// The position after a line of a block scalar.
struct NextLine {
    /// Number of blank lines.
    breaks: usize,
    /// Offset of the line after the blank lines.
    line: usize,
    /// Offset after the indentation of that line. Indentation beyond that of the block is part of the text.
    text: usize,
}

impl FastParser<'_> {
    /// Parses the block scalar whose header is at `header`, up to the line after it.
    pub(super) fn block(&mut self, header: usize) -> Option<()> {
        let folded = self.bytes[header] == b'>';
        let chomp = self.byte(header + 1);
        let blanks = if matches!(chomp, b'+' | b'-') { header + 2 } else { header + 1 };
        self.next_line(self.after_spaces(blanks))?;
        let (mut breaks, indent) = self.first_line()?;
        let start = self.at;
        let mut made = String::new();
        let mut text = start;
        // Whether the previous line is indented more than the block; such a line, and the line after it, is
        // not folded.
        let mut more_before = None;
        let next = loop {
            let more = matches!(self.bytes[text], b' ' | b'\t');
            match more_before {
                Some(false) if folded && !more => made.push_str(if breaks == 0 { " " } else { "" }),
                Some(_) => made.push('\n'),
                None => {}
            }
            made.extend(std::iter::repeat_n('\n', breaks));
            more_before = Some(more);
            let end = self.line_end(text);
            if end == self.bytes.len() {
                return None;
            }
            made.push_str(&self.text[text..end]);
            let next = self.after_line(end, indent);
            if next.text == self.bytes.len() || next.text - next.line < indent {
                break next;
            }
            (text, breaks) = (next.text, next.breaks);
        };
        // A last line without a newline is left to the fallback parser.
        if next.text > next.line && next.text == self.bytes.len() {
            return None;
        }
        if chomp != b'-' {
            made.push('\n');
        }
        if chomp == b'+' {
            made.extend(std::iter::repeat_n('\n', next.breaks));
        }
        self.decoded.push(made);
        self.emit(FastEventKind::Decoded(Style::Block), start, next.text);
        self.attach_anchor();
        self.at = next.line;
        Some(())
    }

    /// Moves to the first text of a block. Returns the number of blank lines before it, and its indentation.
    fn first_line(&mut self) -> Option<(usize, usize)> {
        let mut line = self.at;
        let mut breaks = 0;
        let mut widest = 0;
        loop {
            let text = self.after_spaces(line);
            let indent = text - line;
            match *self.bytes.get(text)? {
                b'\n' => {
                    widest = widest.max(indent);
                    breaks += 1;
                    line = text + 1;
                }
                // YAML 1.1 treats a tab here as indentation, so the fallback parser decides.
                b'\t' => return None,
                // An empty block, and blank lines that are wider than the text, are left to the fallback
                // parser.
                _ if indent <= self.open.last()?.column || widest > indent => return None,
                _ => {
                    self.at = text;
                    return Some((breaks, indent));
                }
            }
        }
    }

    /// The position after the line of text that ends at `end`, in a block indented by `indent`.
    fn after_line(&self, end: usize, indent: usize) -> NextLine {
        let mut line = end + 1;
        let mut breaks = 0;
        loop {
            let mut text = line;
            while text < line + indent && self.bytes.get(text) == Some(&b' ') {
                text += 1;
            }
            if self.bytes.get(text) != Some(&b'\n') {
                return NextLine { breaks, line, text };
            }
            breaks += 1;
            line = text + 1;
        }
    }
}
