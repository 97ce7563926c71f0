//! Renders text tables: columns as wide as needed, two spaces between. Unsafe characters in cells are
//! escaped, so each row is one line.

use std::borrow::Cow;

use qontract_diagnostics::{Style, Styled, shown};

/// Renders a table as text.
pub fn print(header: &[String], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let all: Vec<Vec<Cow<'_, str>>> = all().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
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
pub fn styled(header: &[String], rows: &[Vec<String>]) -> Styled {
    let text = print(header, rows);
    let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
    let mut styled = Styled::default();
    styled.push(Style::Bold, header);
    styled.push(Style::Plain, &format!("\n{rows}"));
    styled
}

#[cfg(test)]
mod tests {
    use super::{print, styled};

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let text = print(&cells(["NAME", "FILE"]), &[cells(["ä", "x"]), cells(["longer", ""])]);
        assert_eq!(text, "NAME    FILE\nä       x\nlonger\n");
        let text = print(&cells(["NAME", "FILE"]), &[cells(["\u{1b}", "a\nb"])]);
        assert_eq!(text, "NAME    FILE\n\\u{1b}  a\\nb\n");
        let bold = styled(&cells(["NAME", "FILE"]), &[cells(["\u{1b}", "a\nb"])]);
        assert_eq!(bold.plain(), text);
        assert!(bold.as_str().starts_with("\u{1b}[1mNAME    FILE\u{1b}[0m\n\\u{1b}  a"), "{bold:?}");
    }
}
