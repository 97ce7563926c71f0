//! Parses lines into block maps and lists, by their columns.

use super::scalars::ScalarEnd;
use super::{Collection, FastEventKind, FastParser, OpenCollection};

/// Maximum number of open block collections; deeper files are left to the fallback parser.
const MAX_OPEN: usize = 64;
/// Maximum number of bytes from the start of a key to its colon; longer keys are left to the fallback parser,
/// which limits their length.
const MAX_KEY_BYTES: usize = 1_000;

impl FastParser<'_> {
    /// Parses the whole text.
    pub(super) fn document(&mut self) -> Option<()> {
        let mut column = self.content()?;
        let first = self.at;
        if column == 0 && self.bytes[first..].starts_with(b"---") {
            self.emit(FastEventKind::DocumentStart, first, first + 3);
            self.finish_line(first + 3)?;
            column = self.content()?;
        } else {
            self.emit(FastEventKind::DocumentStart, first, first);
        }
        loop {
            self.line(column)?;
            match self.content() {
                Some(next) => column = next,
                None if self.at == self.bytes.len() => break,
                None => return None,
            }
        }
        let end = self.at;
        self.finish_pending_value()?;
        while let Some(open) = self.open.pop() {
            self.emit(open.kind.end(), end, end);
        }
        self.emit(FastEventKind::End, end, end);
        Some(())
    }

    /// Moves to the next line with content. Returns the column of its first byte, or `None` at the end of the
    /// text.
    fn content(&mut self) -> Option<usize> {
        let mut line = self.at;
        loop {
            let start = self.after_spaces(line);
            let end = match self.byte(start) {
                b'\n' => start,
                b'#' => self.line_end(start),
                _ => {
                    self.at = start;
                    return Some(start - line);
                }
            };
            if end >= self.bytes.len() {
                self.at = self.bytes.len();
                return None;
            }
            line = end + 1;
        }
    }

    /// Adds an empty value to a key or dash without a value. Fails if an anchor is pending.
    fn finish_pending_value(&mut self) -> Option<()> {
        if let Some(at) = self.pending_value.take() {
            self.emit(FastEventKind::Plain, at, at);
        }
        self.anchor.is_none().then_some(())
    }

    /// Parses a line whose content starts in `column`, at the current offset.
    fn line(&mut self, column: usize) -> Option<()> {
        let start = self.at;
        let dash = self.is_dash(start);
        if column == 0 && matches!(self.bytes.get(start..start + 3), Some(b"---" | b"...")) {
            return None;
        }
        let Some(top) = self.open.last().copied() else { return self.node(column, dash, true) };
        let flat = column == top.column && dash && top.kind == Collection::Map;
        if self.pending_value.is_some() && (column > top.column || flat) {
            return self.node(column, dash, true);
        }
        self.finish_pending_value()?;
        while let Some(top) = self.open.last().copied() {
            let left = top.column == column && top.kind == Collection::FlatList && !dash;
            if top.column <= column && !left {
                break;
            }
            self.emit(top.kind.end(), start, start);
            self.open.pop();
        }
        let top = self.open.last()?;
        if top.column != column || (top.kind == Collection::Map) == dash {
            return None;
        }
        self.node(column, dash, false)
    }

    /// Whether a list dash is at `at`.
    #[inline]
    fn is_dash(&self, at: usize) -> bool {
        self.byte(at) == b'-' && matches!(self.byte(at + 1), b' ' | b'\n')
    }

    /// Parses the entry or item at the current offset; `fresh` if it is the first of its collection.
    fn node(&mut self, mut column: usize, mut dash: bool, mut fresh: bool) -> Option<()> {
        while dash {
            let start = self.at;
            let content = self.item(column, fresh)?;
            if self.byte(content) == b'\n' {
                return self.next_line(content);
            }
            column += content - start;
            self.at = content;
            dash = self.is_dash(content);
            fresh = true;
        }
        let start = self.at;
        let (kind, end, stop) = match self.byte(start) {
            quote @ (b'"' | b'\'') => self.quoted(start, quote)?,
            b'&' if self.on_line_of_dash() => return self.after_indicator(start, start),
            b'[' | b'{' | b'|' | b'>' | b'*' if self.on_line_of_dash() => {
                self.pending_value = None;
                return self.value(start);
            }
            _ => self.plain(start)?,
        };
        if let ScalarEnd::Colon(colon) = stop {
            if colon - start > MAX_KEY_BYTES {
                return None;
            }
            if fresh {
                self.push(Collection::Map, column)?;
                self.emit(FastEventKind::MapStart, start, start);
                self.attach_anchor();
            }
            self.emit(kind, start, end);
            return self.after_indicator(colon, self.after_spaces(colon + 1));
        }
        if !self.on_line_of_dash() {
            return None;
        }
        self.pending_value = None;
        self.emit(kind, start, end);
        self.finish_line(end)
    }

    /// Whether only a dash precedes the current offset. If so, the item of the dash may be a scalar.
    fn on_line_of_dash(&self) -> bool {
        self.pending_value == Some(self.at)
    }

    /// Parses the dash of an item. Returns the offset of its content, or the end of the line.
    fn item(&mut self, column: usize, fresh: bool) -> Option<usize> {
        let dash = self.at;
        let mut content = self.after_spaces(dash + 1);
        if self.byte(content) == b'#' {
            content = self.line_end(content);
        }
        if fresh {
            let flat = self.open.last().is_some_and(|top| top.column == column);
            self.push(if flat { Collection::FlatList } else { Collection::List }, column)?;
            let start = if flat { content } else { dash };
            self.emit(FastEventKind::ListStart, start, start);
            self.attach_anchor();
        }
        self.pending_value = Some(content);
        Some(content)
    }

    fn push(&mut self, kind: Collection, column: usize) -> Option<()> {
        self.open.push(OpenCollection { column, kind });
        self.pending_value = None;
        (self.open.len() <= MAX_OPEN).then_some(())
    }

    /// Parses the value after a colon or dash, starting at `start`. A missing value is at position `empty`.
    fn after_indicator(&mut self, empty: usize, mut start: usize) -> Option<()> {
        if self.byte(start) == b'&' {
            start = self.anchor(start)?;
        }
        if matches!(self.byte(start), b'\n' | b'#') {
            self.pending_value = Some(empty);
            return self.next_line(self.line_end(start));
        }
        self.pending_value = None;
        self.value(start)
    }

    /// Parses a value that starts at `start`, on the line of its key or dash, up to the end of its line or
    /// block.
    fn value(&mut self, start: usize) -> Option<()> {
        let (kind, end, stop) = match self.byte(start) {
            quote @ (b'"' | b'\'') => self.quoted(start, quote)?,
            b'[' | b'{' => {
                let end = self.flow(start)?;
                return self.finish_line(end);
            }
            b'|' | b'>' => return self.block(start),
            b'*' => {
                let end = self.alias(start)?;
                return self.finish_line(end);
            }
            _ => self.plain(start)?,
        };
        if matches!(stop, ScalarEnd::Colon(_)) {
            return None;
        }
        self.emit(kind, start, end);
        self.attach_anchor();
        self.finish_line(end)
    }
}

impl Collection {
    fn end(self) -> FastEventKind {
        match self {
            Collection::Map => FastEventKind::MapEnd,
            Collection::List | Collection::FlatList => FastEventKind::ListEnd,
        }
    }
}
