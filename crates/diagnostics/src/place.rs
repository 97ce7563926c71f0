//! Where something stands: byte spans in a file, turned into lines and columns late.

/// A range of bytes in one file. Files are limited to far less than 4 GiB, so 32 bits are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// A span from byte offsets; offsets past 4 GiB are clamped, which no accepted file reaches.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end.max(start)) }
    }

    /// The span as a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A file, and optionally the bytes in it that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path as the user knows it, relative to the data repo; empty while the finding has no file yet.
    pub file: String,
    /// The bytes that are meant; `None` means the file as a whole.
    pub span: Option<Span>,
    /// JSON pointer of the value that is meant, where there is one.
    pub pointer: Option<String>,
}

/// A line and a column, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The line and column of byte `offset` of `text`. Offsets past the end give the end.
///
/// ```
/// use qontract_diagnostics::position;
/// let at = position("a: 1\nbé: 2\n", 9);
/// assert_eq!((at.line, at.column), (2, 4));
/// ```
pub fn position(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Position { line: narrow(line), column: narrow(column) }
}
