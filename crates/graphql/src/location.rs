//! Locations in a query string.

use apollo_compiler::parser::SourceSpan;

/// A line and a column, both starting at 1. Columns count UTF-16 code units, as in JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The column in UTF-16 code units, from 1.
    pub column: usize,
}

/// The line starts of a query string, for converting byte offsets to locations.
#[derive(Debug)]
pub struct RequestLines {
    /// The byte offset of the start of each line.
    starts: Vec<usize>,
    /// Per byte, the number of UTF-16 code units before it; `None` if the text is ASCII.
    units: Option<Vec<u32>>,
}

impl RequestLines {
    /// Indexes the lines of `text`.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        // A line ends at `\n`, at `\r\n` or at a lone `\r`.
        let ends = |(index, byte): &(usize, &u8)| {
            **byte == b'\n' || **byte == b'\r' && bytes.get(index + 1) != Some(&b'\n')
        };
        let after = bytes.iter().enumerate().filter(ends).map(|(index, _)| index + 1);
        let starts = std::iter::once(0).chain(after).collect();
        let units = (!text.is_ascii()).then(|| {
            let mut units = Vec::with_capacity(bytes.len() + 1);
            let mut before = 0;
            for character in text.chars() {
                units.resize(units.len() + character.len_utf8(), before);
                before += if character.len_utf16() == 1 { 1 } else { 2 };
            }
            units.push(before);
            units
        });
        Self { starts, units }
    }

    /// The location of a byte offset.
    pub fn location(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        let column = match &self.units {
            None => offset - start,
            Some(units) => {
                let unit = |byte: usize| units.get(byte).or(units.last()).copied().unwrap_or_default();
                (unit(offset) - unit(start)) as usize
            }
        };
        Location { line, column: column + 1 }
    }

    /// The location of the start of a syntax node.
    pub fn of_span(&self, span: Option<SourceSpan>) -> Option<Location> {
        Some(self.location(span?.offset()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, offset: usize, expect: (usize, usize)) {
        let Location { line, column } = RequestLines::new(text).location(offset);
        assert_eq!((line, column), expect, "{text:?} at {offset}");
    }

    #[test]
    fn lines_end_as_in_javascript_and_columns_count_utf16_units() {
        check("{ a }", 2, (1, 3));
        check("{\n  a }", 4, (2, 3));
        check("{\r\n  a }", 5, (2, 3));
        check("{\r a }", 3, (2, 2));
        check("# ☃ 😀\n{ a }", 13, (2, 3));
        check("😀a", 4, (1, 3));
        check("a", 1, (1, 2));
    }
}
