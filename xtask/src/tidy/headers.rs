//! Every source file begins with a `//!` header that states its purpose.

use super::{SourceTree, Violation};

const RULE: &str = "header";

/// Checks the first line that is neither blank nor an attribute of the file.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    tree.texts(".rs")
        .filter_map(|(path, text)| missing_header(text).map(|line| violation(path, line)))
        .collect()
}

/// The line that should have been a header.
fn missing_header(text: &str) -> Option<usize> {
    let mut in_attribute = false;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if in_attribute || line.starts_with("#![") {
            in_attribute = !line.ends_with(']');
        } else if line.starts_with("//!") {
            return None;
        } else if !line.is_empty() {
            return Some(index + 1);
        }
    }
    Some(1)
}

fn violation(path: &str, line: usize) -> Violation {
    let message = "the file does not begin with `//!`: state its purpose".to_owned();
    Violation { path: path.to_owned(), line, rule: RULE, message }
}

#[cfg(test)]
mod tests {
    use super::missing_header;

    fn check(text: &str, expect: Option<usize>) {
        assert_eq!(missing_header(text), expect, "{text:?}");
    }

    #[test]
    fn a_header_may_follow_blank_lines_and_attributes() {
        check("//! This.\n", None);
        check("\n#![no_main]\n\n//! This.\n", None);
        check("#![expect(\n    dead_code\n)]\n//! This.\n", None);
    }

    #[test]
    fn a_file_without_a_header_is_found() {
        check("", Some(1));
        check("use std::fs;\n//! Late.\n", Some(1));
        check("\n// not a header\n", Some(2));
        check("/// Of the next item.\nfn f() {}\n", Some(1));
    }
}
