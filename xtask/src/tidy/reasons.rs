//! Every silenced lint and every skipped test has a reason.

use super::{SourceTree, Violation};

const RULE: &str = "reasons";

/// Checks every attribute at the start of a line.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let lines: Vec<&str> = text.lines().collect();
        for index in 0..lines.len() {
            if let Some(message) = violation_message(&attribute(&lines[index..])) {
                let message = message.to_owned();
                violations.push(Violation { path: path.to_owned(), line: index + 1, rule: RULE, message });
            }
        }
    }
    violations
}

/// The attribute that begins at the first line, joined up to its closing bracket; empty if the line has no
/// attribute.
fn attribute(lines: &[&str]) -> String {
    let mut joined = String::new();
    for line in lines.iter().map(|line| line.trim()) {
        if joined.is_empty() && !line.starts_with("#[") && !line.starts_with("#![") {
            return joined;
        }
        joined.push_str(line);
        let count = |bracket| joined.matches(bracket).count();
        if count('[') <= count(']') {
            break;
        }
    }
    joined
}

fn violation_message(attribute: &str) -> Option<&'static str> {
    let inner = attribute.trim_start_matches(['#', '!', '[']);
    if (inner.starts_with("allow(") || inner.starts_with("expect(")) && !inner.contains("reason = ") {
        return Some("give a reason for the silenced lint: `reason = \"…\"`");
    }
    let skipped = inner.strip_prefix("ignore")?.trim_start();
    skipped.starts_with(']').then_some("give a reason for the skipped test: `#[ignore = \"…\"]`")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn a_reason_is_enough() {
        let text = "#![allow(dead_code, reason = \"x\")]\n#[expect(\n    unused,\n    reason = \"x\",\n)]\n\
                    #[ignore = \"needs a server\"]\n#[derive(Debug)]\nlet a = \"#[ignore]\";\n";
        expect(check, &SourceTree::of_files(&[("a.rs", text)]), &[]);
    }

    #[test]
    fn a_missing_reason_is_found() {
        let text = "#![allow(dead_code)]\n    #[expect(\n        unused,\n    )]\n#[ignore]\n";
        expect(
            check,
            &SourceTree::of_files(&[("a.rs", text)]),
            &[
                "a.rs:1: reasons: give a reason for the silenced lint: `reason = \"…\"`",
                "a.rs:2: reasons: give a reason for the silenced lint: `reason = \"…\"`",
                "a.rs:5: reasons: give a reason for the skipped test: `#[ignore = \"…\"]`",
            ],
        );
    }
}
