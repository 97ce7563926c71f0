//! Source locations: byte spans in a file, converted to lines and columns late.

/// A range of bytes in one file. Files are limited to far less than 4 GiB, so 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span from byte offsets. Offsets above 4 GiB are clamped; no accepted file reaches them.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end.max(start)) }
    }

    /// The span as a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A location in a file: the file, and optionally a span and a JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiagnosticLocation {
    /// Path relative to the data repo; empty until the finding is assigned to a file.
    pub file: String,
    /// The bytes; `None` means the whole file.
    pub span: Option<Span>,
    /// JSON pointer of the value, if the location is a value.
    pub pointer: Option<String>,
}

/// A line and a column. Both are counted from 1, and the column is counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The line and column of byte `offset` of `text`. For an offset after the end of the text, returns the
/// position of the end.
///
/// For many offsets of one text, create a [`LineIndex`] once.
///
/// ```
/// use qontract_diagnostics::position;
/// let at = position("a: 1\nbé: 2\n", 9);
/// assert_eq!((at.line, at.column), (2, 4));
/// ```
pub fn position(text: &str, offset: usize) -> Position {
    let offset = char_boundary(text, offset);
    let line_start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[..offset].bytes().filter(|byte| *byte == b'\n').count();
    at(text, line, line_start, offset)
}

/// The line starts of a text, to find the position of an offset by binary search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineIndex {
    /// The offset of the first byte of each line except the first.
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes a text.
    pub fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: newlines.filter_map(|(offset, _)| u32::try_from(offset + 1).ok()).collect() }
    }

    /// The line and column of byte `offset` of the indexed text; equal to [`position`].
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let offset = char_boundary(text, offset);
        let line = self.line(offset);
        let line_start = line.checked_sub(1).map_or(0, |before| self.starts[before] as usize);
        at(text, line, line_start, offset)
    }

    /// The index of the line that contains this offset: the number of lines that end before the offset.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= offset)
    }
}

/// The offset, or the start of the character that contains it; at most the end of the text.
pub(crate) fn char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn at(text: &str, line: usize, line_start: usize, offset: usize) -> Position {
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let column = text[line_start..offset].chars().count();
    Position { line: narrow(line + 1), column: narrow(column + 1) }
}

#[cfg(test)]
mod tests {
    use super::{LineIndex, position};

    #[test]
    fn an_index_finds_what_counting_finds() {
        for text in ["", "\n", "a", "a\n", "a: 1\nbé: 2\n\n\nlast", "é\né"] {
            let index = LineIndex::new(text);
            for offset in 0..text.len() + 3 {
                assert_eq!(index.position(text, offset), position(text, offset), "{text:?} {offset}");
            }
        }
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let check = |offset, expect| {
            let at = position("ab\ncd\n", offset);
            assert_eq!((at.line, at.column), expect, "{offset}");
        };
        check(0, (1, 1));
        check(2, (1, 3));
        check(3, (2, 1));
        check(5, (2, 3));
        check(6, (3, 1));
        check(100, (3, 1));
    }
}
