//! Console output, on stderr. No other module prints.

use std::fmt::Display;

/// Prints one line or block of lines.
#[expect(clippy::print_stderr, reason = "the only place that prints")]
pub fn print(text: impl Display) {
    eprintln!("{text}");
}

/// Formats rows as aligned columns: the first column is left-aligned, and the others are right-aligned.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_line_up() {
        let rows =
            [vec!["fmt".to_owned(), "1.0 s".to_owned()], vec!["clippy".to_owned(), "12.5 s".to_owned()]];
        assert_eq!(table(&rows), "  fmt      1.0 s\n  clippy  12.5 s");
    }
}
