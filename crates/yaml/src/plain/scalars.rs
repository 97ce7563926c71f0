//! Scalars on one line, and blocks of text.

use super::{Kind, Reader};
use crate::events::Style;

/// What follows a scalar.
pub(super) enum Stop {
    /// The colon of a key, there.
    Colon(usize),
    /// Anything else.
    Other,
}

impl Reader<'_> {
    /// Whether plain text may begin at `at`.
    pub(super) fn begins_plain(&self, at: usize) -> bool {
        match self.byte(at) {
            b'-' => !matches!(self.byte(at + 1), b' ' | b'\n' | b'\t' | b',' | b'[' | b']' | b'{' | b'}'),
            b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>'
            | b'\'' | b'"' | b'%' | b'@' | b'`' => false,
            byte => byte > b' ',
        }
    }

    /// Reads plain text outside of brackets: its end, and what follows.
    pub(super) fn plain(&self, start: usize) -> Option<(Kind, usize, Stop)> {
        if !self.begins_plain(start) {
            return None;
        }
        let mut at = start;
        let stop = loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let stops = |byte: &u8| matches!(byte, b'\n' | b':' | b'#' | b'\t');
            at += rest.iter().position(stops).unwrap_or(rest.len());
            match self.byte(at) {
                b':' => match self.byte(at + 1) {
                    b' ' | b'\n' => break Stop::Colon(at),
                    b'\t' => return None,
                    _ => {}
                },
                b'#' if self.bytes[at - 1] != b' ' => {}
                b'\t' => return None,
                _ => break Stop::Other,
            }
            at += 1;
        };
        let mut end = at;
        while self.bytes[end - 1] == b' ' {
            end -= 1;
        }
        Some((Kind::Plain, end, stop))
    }

    /// Reads text in quotes outside of brackets: its end, and what follows.
    pub(super) fn quoted(&mut self, start: usize, quote: u8) -> Option<(Kind, usize, Stop)> {
        let (kind, end) = self.quotes(start, quote)?;
        let colon = self.after_spaces(end);
        let stop = match (self.byte(colon), self.byte(colon + 1)) {
            (b':', b' ' | b'\n') => Stop::Colon(colon),
            _ => Stop::Other,
        };
        Some((kind, end, stop))
    }

    /// Reads text in quotes: its end.
    pub(super) fn quotes(&mut self, start: usize, quote: u8) -> Option<(Kind, usize)> {
        let mut at = start + 1;
        let mut made: Option<String> = None;
        let mut kept = at;
        loop {
            let rest = self.bytes.get(at..)?;
            let stops = |byte: &u8| *byte == quote || matches!(byte, b'\n' | b'\\' | b'\t');
            at += rest.iter().position(stops)?;
            let next = self.byte(at + 1);
            let escaped = match (self.bytes[at], quote) {
                (b'\\', b'\'') => {
                    at += 1;
                    continue;
                }
                (b'\'', b'\'') if next == b'\'' => '\'',
                (b'\\', _) => match next {
                    b'"' | b'\\' | b'/' => char::from(next),
                    b'n' => '\n',
                    b't' => '\t',
                    _ => return None,
                },
                (b'\n' | b'\t', _) => return None,
                _ => break,
            };
            let made = made.get_or_insert_default();
            made.push_str(&self.text[kept..at]);
            made.push(escaped);
            at += 2;
            kept = at;
        }
        let Some(mut made) = made else { return Some((Kind::Quoted, at + 1)) };
        made.push_str(&self.text[kept..at]);
        self.made.push(made);
        Some((Kind::Made(Style::Quoted), at + 1))
    }

    /// Reads the block of text whose header stands at `header`, to the line after it.
    pub(super) fn block(&mut self, header: usize) -> Option<()> {
        let chomp = self.byte(header + 1);
        let blanks = if matches!(chomp, b'+' | b'-') { header + 2 } else { header + 1 };
        let mut line = self.after_spaces(blanks);
        self.next_line(line)?;
        line = self.at;
        // Blank lines before the first line of text, which sets the indentation.
        let mut breaks = 0;
        let mut widest = 0;
        let (start, indent) = loop {
            let text = self.after_spaces(line);
            if text >= self.bytes.len() {
                return None;
            }
            if self.bytes[text] != b'\n' {
                break (text, text - line);
            }
            widest = widest.max(text - line);
            breaks += 1;
            line = text + 1;
        };
        // Too little is the end of an empty block, a tab is read differently by YAML 1.1.
        if indent <= self.open.last()?.column || widest > indent || self.bytes[start] == b'\t' {
            return None;
        }
        let folded = self.bytes[header] == b'>';
        let mut made = String::new();
        let mut text = start;
        let mut first = true;
        let mut more_before = false;
        let (end, line_start) = loop {
            let more = matches!(self.bytes[text], b' ' | b'\t');
            if folded && !first && !more_before && !more {
                made.push_str(if breaks == 0 { " " } else { "" });
            } else if !first {
                made.push('\n');
            }
            made.extend(std::iter::repeat_n('\n', breaks));
            (first, more_before, breaks) = (false, more, 0);
            let mut line = self.line_end(text);
            if line == self.bytes.len() {
                return None;
            }
            made.push_str(&self.text[text..line]);
            // Blank lines, and the indentation of the next line that is not blank.
            loop {
                line += 1;
                let most = line + indent;
                text = line;
                while text < most && self.byte(text) == b' ' {
                    text += 1;
                }
                if text >= self.bytes.len() || self.bytes[text] != b'\n' {
                    break;
                }
                breaks += 1;
                line = text;
            }
            if text >= self.bytes.len() || text - line < indent {
                break (text, line);
            }
        };
        if end == self.bytes.len() && self.bytes[end - 1] != b'\n' {
            return None;
        }
        if chomp != b'-' {
            made.push('\n');
        }
        if chomp == b'+' {
            made.extend(std::iter::repeat_n('\n', breaks));
        }
        self.made.push(made);
        self.emit(Kind::Made(Style::Block), start, end);
        self.attach_anchor();
        // The indentation of the next line was looked at, but its column counts from its start.
        self.at = line_start;
        Some(())
    }
}
