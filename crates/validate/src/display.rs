//! Formats values and lists of names for messages.

use qontract_bundle::Value;
use serde_json::Value as Plain;

/// Maximum number of characters of a value that a message shows.
const MAX_VALUE_LEN: usize = 60;
/// Maximum number of names that a message lists.
const MAX_LISTED: usize = 8;

/// Formats a value for a message.
pub fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => shortened(text),
        Value::BigInt(digits) => shortened(digits),
        Value::Map(map) if map.is_empty() => "{}".to_owned(),
        Value::Map(_) => "{…}".to_owned(),
        Value::List(items) if items.is_empty() => "[]".to_owned(),
        Value::List(_) => "[…]".to_owned(),
        scalar => shortened(&crate::tree::plain(scalar).to_string()),
    }
}

/// Formats a plain JSON value for a message.
pub fn show_plain(value: &Plain) -> String {
    match value {
        Plain::String(text) => shortened(text),
        other => shortened(&other.to_string()),
    }
}

/// Formats a string for a message: on one line, truncated if it is long.
pub fn shortened(text: &str) -> String {
    let line = text.replace('\n', "\\n");
    match line.char_indices().nth(MAX_VALUE_LEN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// `` `a`, `b` or `c` ``; long lists are truncated.
pub fn any_of<S: AsRef<str>>(words: impl ExactSizeIterator<Item = S>) -> String {
    join_quoted(words, "or")
}

/// `` `a`, `b` and `c` ``; long lists are truncated.
pub fn all_of<S: AsRef<str>>(words: impl ExactSizeIterator<Item = S>) -> String {
    join_quoted(words, "and")
}

fn join_quoted<S: AsRef<str>>(words: impl ExactSizeIterator<Item = S>, last: &str) -> String {
    let count = words.len();
    let quoted: Vec<String> = words.take(MAX_LISTED).map(|word| format!("`{}`", word.as_ref())).collect();
    if count > MAX_LISTED {
        return format!("{} and {} more", quoted.join(", "), count - MAX_LISTED);
    }
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}

/// The kind of a value, for a message.
pub fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::BigInt(_) => "an integer",
        Value::Float(_) => "a number",
        Value::Str(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// A JSON Schema type, for a message.
pub fn type_name(name: &str) -> &str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "a list",
        "object" => "a map",
        "null" => "null",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_number_is_shown_by_its_digits() {
        assert_eq!(
            show(&Value::BigInt("123456789012345678901234567890".into())),
            "123456789012345678901234567890"
        );
        assert_eq!(show(&Value::BigInt("9".repeat(400).into())), format!("{}…", "9".repeat(60)));
    }

    #[test]
    fn lists_read_like_sentences_and_end() {
        assert_eq!(any_of(["a"].iter()), "`a`");
        assert_eq!(all_of(["a", "b", "c"].iter()), "`a`, `b` and `c`");
        assert_eq!(any_of(["x"; 10].iter()).matches("`x`").count(), 8);
    }
}
