//! Prints values as GraphQL, for messages.

use std::fmt::Write as _;

use crate::document::syntax::tree::{Literal, Name, Value};
use crate::document::syntax::{block_text, string_text};

/// Prints a value in GraphQL syntax.
pub fn print(value: &Value<'_>) -> String {
    match &value.literal {
        Literal::Variable(name) => format!("${name}"),
        Literal::Int(text) | Literal::Float(text) | Literal::Enum(text) => (*text).to_owned(),
        Literal::String(written) => print_string(&string_text(written)),
        Literal::Block(written) => print_block(&block_text(written)),
        Literal::Boolean(value) => value.to_string(),
        Literal::Null => "null".to_owned(),
        Literal::List(items) => {
            format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(", "))
        }
        Literal::Object(fields) => {
            let field = |(name, value): &(Name<'_>, _)| format!("{}: {}", name.text, print(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

fn print_string(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out + "\""
}

fn print_block(text: &str) -> String {
    const MAX_LINE_LEN: usize = 70;
    let escaped = text.replace("\"\"\"", "\\\"\"\"");
    let lines: Vec<&str> = escaped.split('\n').collect();
    let blank = |line: &str| line.starts_with([' ', '\t']);
    let single = lines.len() == 1;
    let leading = !single && lines[1..].iter().all(|line| line.is_empty() || blank(line));
    let triple = escaped.ends_with("\\\"\"\"");
    let trailing = text.ends_with('"') && !triple || text.ends_with('\\');
    let multiple = !single || text.encode_utf16().count() > MAX_LINE_LEN || trailing || leading || triple;
    let before = if multiple && !(single && blank(text)) || leading { "\n" } else { "" };
    let after = if multiple || trailing { "\n" } else { "" };
    format!("\"\"\"{before}{escaped}{after}\"\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_printed_as_in_graphql_js() {
        assert_eq!(print_string("a\"b\n\u{1}\u{85}é"), "\"a\\\"b\\n\\u0001\\u0085é\"");
        let check = |text: &str, expect: &str| assert_eq!(print_block(text), format!("\"\"\"{expect}\"\"\""));
        check("a", "a");
        check(" a", " a");
        check("a\nb", "\na\nb\n");
        check("a\"", "\na\"\n");
        check("", "");
    }
}
