//! The names of queries in messages.

/// Puts a name in backticks.
pub fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// Shortens a string to its beginning, on one line.
pub fn abbreviate(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
