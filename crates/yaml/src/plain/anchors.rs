//! Anchors before values and aliases instead of them.

use super::{Kind, Reader};

/// Most anchors: each alias looks through all of them.
const MOST_ANCHORS: usize = 64;

impl Reader<'_> {
    /// The end of the name after the `&` or `*` at `start`; names that readers differ on are none of ours.
    fn name(&self, start: usize) -> Option<usize> {
        let name = self.bytes.get(start + 1..)?;
        let usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let length = name.iter().position(|byte| !usual(byte)).unwrap_or(name.len());
        (length > 0).then_some(start + 1 + length)
    }

    /// Reads the anchor at `start`, of a value that comes next; returns what follows it and its blanks.
    pub(super) fn anchor(&mut self, start: usize) -> Option<usize> {
        let end = self.name(start)?;
        if !matches!(self.byte(end), b' ' | b'\n') || self.anchors.len() == MOST_ANCHORS {
            return None;
        }
        self.anchors.push(&self.text[start + 1..end]);
        self.anchor = Some((start, end));
        Some(self.after_spaces(end))
    }

    /// Reads the alias at `start`; returns its end.
    pub(super) fn alias(&mut self, start: usize) -> Option<usize> {
        let end = self.name(start)?;
        if !matches!(self.byte(end), b' ' | b'\n' | b',' | b']' | b'}') || self.anchor.is_some() {
            return None;
        }
        let name = &self.text[start + 1..end];
        // Anchors count from one, and the last of a name is meant.
        let anchor = self.anchors.iter().rposition(|anchor| *anchor == name)? + 1;
        self.aliases.push(anchor);
        self.emit(Kind::Alias, start, end);
        Some(end)
    }

    /// The node before this is what the anchor before it names.
    #[inline]
    pub(super) fn attach_anchor(&mut self) {
        if let Some((start, end)) = self.anchor.take() {
            self.emit(Kind::Anchor, start, end);
        }
    }
}
