//! Parses anchors before values, and aliases.

use super::{FastEventKind, FastParser};

/// Maximum number of anchors, which is low because each alias searches all anchors.
const MAX_ANCHORS: usize = 64;

impl FastParser<'_> {
    /// The end of the name after the `&` or `*` at `start`. Names on which parsers disagree are left to the
    /// fallback parser.
    fn name(&self, start: usize) -> Option<usize> {
        let name = self.bytes.get(start + 1..)?;
        let usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let length = name.iter().position(|byte| !usual(byte)).unwrap_or(name.len());
        (length > 0).then_some(start + 1 + length)
    }

    /// Parses the anchor of the next value, at `start`. Returns the offset after the anchor and the spaces
    /// that follow it.
    pub(super) fn anchor(&mut self, start: usize) -> Option<usize> {
        let end = self.name(start)?;
        if !matches!(self.byte(end), b' ' | b'\n') || self.anchors.len() == MAX_ANCHORS {
            return None;
        }
        self.anchors.push(&self.text[start + 1..end]);
        self.anchor = Some((start, end));
        Some(self.after_spaces(end))
    }

    /// Parses the alias at `start`. Returns the end of the alias.
    pub(super) fn alias(&mut self, start: usize) -> Option<usize> {
        let end = self.name(start)?;
        if !matches!(self.byte(end), b' ' | b'\n' | b',' | b']' | b'}') || self.anchor.is_some() {
            return None;
        }
        let name = &self.text[start + 1..end];
        // Anchors are numbered from one, and an alias refers to the last anchor with its name.
        let anchor = self.anchors.iter().rposition(|anchor| *anchor == name)? + 1;
        self.aliases.push(anchor);
        self.emit(FastEventKind::Alias, start, end);
        Some(end)
    }

    /// Emits the pending anchor for the node just emitted.
    #[inline]
    pub(super) fn attach_anchor(&mut self) {
        if let Some((start, end)) = self.anchor.take() {
            self.emit(FastEventKind::Anchor, start, end);
        }
    }
}
