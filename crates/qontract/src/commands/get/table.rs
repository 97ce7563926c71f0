//! Columns for people: as wide as needed, two spaces between.

/// The text of a table.
pub fn print(header: &[String], rows: &[Vec<String>]) -> String {
    let all = || std::iter::once(header).chain(rows.iter().map(Vec::as_slice));
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for row in all() {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::print;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let text = print(&cells(["NAME", "FILE"]), &[cells(["ä", "x"]), cells(["longer", ""])]);
        assert_eq!(text, "NAME    FILE\nä       x\nlonger\n");
    }
}
