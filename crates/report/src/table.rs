//! Renders text tables with aligned columns, separated by two spaces. Unsafe characters in cells are escaped,
//! so each row is one line.

use std::borrow::Cow;

use qontract_diagnostics::{StyledText, TextStyle, sanitize};

/// Renders a table as text.
pub fn to_text(header: &[String], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let all: Vec<Vec<Cow<'_, str>>> =
        all().map(|row| row.iter().map(|cell| sanitize(cell)).collect()).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Renders a table with a bold header for a terminal.
pub fn styled(header: &[String], rows: &[Vec<String>]) -> StyledText {
    let text = to_text(header, rows);
    let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
    let mut styled = StyledText::default();
    styled.push(TextStyle::Bold, header);
    styled.push(TextStyle::Plain, &format!("\n{rows}"));
    styled
}

#[cfg(test)]
mod tests {
    use super::{styled, to_text};

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let text = to_text(&cells(["NAME", "FILE"]), &[cells(["ä", "x"]), cells(["longer", ""])]);
        assert_eq!(text, "NAME    FILE\nä       x\nlonger\n");
        let text = to_text(&cells(["NAME", "FILE"]), &[cells(["\u{1b}", "a\nb"])]);
        assert_eq!(text, "NAME    FILE\n\\u{1b}  a\\nb\n");
        let bold = styled(&cells(["NAME", "FILE"]), &[cells(["\u{1b}", "a\nb"])]);
        assert_eq!(bold.plain(), text);
        assert!(bold.as_str().starts_with("\u{1b}[1mNAME    FILE\u{1b}[0m\n\\u{1b}  a"), "{bold:?}");
    }
}
