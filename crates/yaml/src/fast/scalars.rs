//! Parses scalars on one line.

use super::{FastEventKind, FastParser};
use crate::events::Style;

/// The token after a scalar.
pub(super) enum ScalarEnd {
    /// The colon of a key, at this offset.
    Colon(usize),
    /// Any other token, or the end of the line.
    Other,
}

impl FastParser<'_> {
    /// Whether plain text may start at `at`.
    pub(super) fn begins_plain(&self, at: usize) -> bool {
        match self.byte(at) {
            b'-' => !matches!(self.byte(at + 1), b' ' | b'\n' | b'\t' | b',' | b'[' | b']' | b'{' | b'}'),
            b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>'
            | b'\'' | b'"' | b'%' | b'@' | b'`' => false,
            byte => byte > b' ',
        }
    }

    /// Parses plain text outside of brackets. Returns its end and the next token.
    pub(super) fn plain(&self, start: usize) -> Option<(FastEventKind, usize, ScalarEnd)> {
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
                    b' ' | b'\n' => break ScalarEnd::Colon(at),
                    b'\t' => return None,
                    _ => {}
                },
                b'#' if self.bytes[at - 1] != b' ' => {}
                b'\t' => return None,
                _ => break ScalarEnd::Other,
            }
            at += 1;
        };
        let mut end = at;
        while self.bytes[end - 1] == b' ' {
            end -= 1;
        }
        Some((FastEventKind::Plain, end, stop))
    }

    /// Parses quoted text outside of brackets. Returns its end and the next token.
    pub(super) fn quoted(&mut self, start: usize, quote: u8) -> Option<(FastEventKind, usize, ScalarEnd)> {
        let (kind, end) = self.quotes(start, quote)?;
        let colon = self.after_spaces(end);
        let stop = match (self.byte(colon), self.byte(colon + 1)) {
            (b':', b' ' | b'\n') => ScalarEnd::Colon(colon),
            _ => ScalarEnd::Other,
        };
        Some((kind, end, stop))
    }

    /// Parses quoted text. Returns the end of the text.
    pub(super) fn quotes(&mut self, start: usize, quote: u8) -> Option<(FastEventKind, usize)> {
        let mut at = start + 1;
        let mut made: Option<String> = None;
        let mut copied_to = at;
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
            made.push_str(&self.text[copied_to..at]);
            made.push(escaped);
            at += 2;
            copied_to = at;
        }
        let Some(mut made) = made else { return Some((FastEventKind::Quoted, at + 1)) };
        made.push_str(&self.text[copied_to..at]);
        self.decoded.push(made);
        Some((FastEventKind::Decoded(Style::Quoted), at + 1))
    }
}
