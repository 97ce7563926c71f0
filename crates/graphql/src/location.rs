//! Places in the text of a request.

use apollo_compiler::parser::SourceSpan;

/// A line and a column, both from 1; columns count UTF-16 units, as clients written in JavaScript do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The place of a byte of `text`.
pub fn of_offset(text: &str, offset: usize) -> Location {
    let before = text.get(..offset).unwrap_or(text);
    let (mut line, mut start) = (1, 0);
    let bytes = before.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        // A line ends at `\n`, at `\r\n` or at a lone `\r`.
        if *byte == b'\n' || *byte == b'\r' && text.as_bytes().get(index + 1) != Some(&b'\n') {
            line += 1;
            start = index + 1;
        }
    }
    Location { line, column: before[start..].encode_utf16().count() + 1 }
}

/// The place where a node of the request begins.
pub fn of_span(text: &str, span: Option<SourceSpan>) -> Option<Location> {
    Some(of_offset(text, span?.offset()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, offset: usize, expect: (usize, usize)) {
        let Location { line, column } = of_offset(text, offset);
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
        check("a", 9, (1, 2));
    }
}
