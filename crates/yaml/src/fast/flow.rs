//! Parses flow collections on one line.

use super::{FastEventKind, FastParser};

/// Maximum nesting of brackets; deeper files are left to the fallback parser.
const MAX_FLOW_DEPTH: usize = 16;
/// Maximum number of bytes from the start of a key to its colon.
const MAX_KEY_BYTES: usize = 1_000;

impl FastParser<'_> {
    /// Parses the flow collection that starts at `start`. Returns the end of the collection.
    pub(super) fn flow(&mut self, start: usize) -> Option<usize> {
        self.flow_within(start, MAX_FLOW_DEPTH)
    }

    fn flow_within(&mut self, start: usize, levels: usize) -> Option<usize> {
        let levels = levels.checked_sub(1)?;
        let is_map = self.byte(start) == b'{';
        let (first, last, close) = if is_map {
            (FastEventKind::MapStart, FastEventKind::MapEnd, b'}')
        } else {
            (FastEventKind::ListStart, FastEventKind::ListEnd, b']')
        };
        self.emit(first, start, start + 1);
        self.attach_anchor();
        let mut at = self.after_spaces(start + 1);
        while self.byte(at) != close {
            if is_map {
                let colon = self.flow_scalar(at)?;
                let value = self.after_spaces(colon + 1);
                if self.byte(colon) != b':' || value == colon + 1 || colon - at > MAX_KEY_BYTES {
                    return None;
                }
                at = value;
            }
            at = match self.byte(at) {
                b'[' | b'{' => {
                    let end = self.flow_within(at, levels)?;
                    self.after_spaces(end)
                }
                b'*' => {
                    let end = self.alias(at)?;
                    self.after_spaces(end)
                }
                _ => self.flow_scalar(at)?,
            };
            match self.byte(at) {
                b',' => at = self.after_spaces(at + 1),
                byte if byte == close => {}
                _ => return None,
            }
        }
        self.emit(last, at, at + 1);
        Some(at + 1)
    }

    /// Parses a scalar between brackets. Returns the offset after the scalar and the spaces that follow it.
    fn flow_scalar(&mut self, start: usize) -> Option<usize> {
        if let quote @ (b'"' | b'\'') = self.byte(start) {
            let (kind, end) = self.quotes(start, quote)?;
            self.emit(kind, start, end);
            return Some(self.after_spaces(end));
        }
        if !self.begins_plain(start) {
            return None;
        }
        let mut end = start;
        let mut at = start;
        loop {
            match self.byte(at) {
                b' ' => {}
                b',' | b']' | b'}' => break,
                b':' => match self.byte(at + 1) {
                    b' ' => break,
                    // If one of these bytes follows a colon, YAML 1.1 and 1.2 differ on the value, or it
                    // needs the fallback parser.
                    b'\n' | b'\t' | b',' | b'[' | b']' | b'{' | b'}' | b'?' => return None,
                    _ => end = at + 1,
                },
                b'#' if end < at => return None,
                b'\n' | b'\t' | b'[' | b'{' => return None,
                _ => end = at + 1,
            }
            at += 1;
        }
        self.emit(FastEventKind::Plain, start, end);
        Some(at)
    }
}
