//! The tests and files that `SECURITY.md` and `ARCHITECTURE.md` name as evidence of a promise exist.

use super::{SourceTree, Violation};

const RULE: &str = "promises";

/// Documents whose promises name their tests.
const PAGES: [&str; 2] = ["SECURITY.md", "ARCHITECTURE.md"];

/// Minimum number of underscores in the name of a test, because test names are sentences. Other names between
/// backticks are not checked.
const MIN_UNDERSCORES: usize = 3;

/// Checks every test name and every path of a test file between backticks.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in PAGES {
        let Some(text) = tree.text(page) else { continue };
        for (index, line) in text.lines().enumerate() {
            for code in line.split('`').skip(1).step_by(2) {
                let missing = (is_test_name(code) && !has_test(tree, code))
                    .then_some("test")
                    .or((is_test_file(code) && !tree.has(code)).then_some("file"));
                if let Some(what) = missing {
                    let message =
                        format!("the {what} `{code}` does not exist: name one that verifies the promise");
                    violations.push(Violation {
                        path: page.to_owned(),
                        line: index + 1,
                        rule: RULE,
                        message,
                    });
                }
            }
        }
    }
    violations
}

fn is_test_name(code: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    code.bytes().all(is_name) && code.matches('_').count() >= MIN_UNDERSCORES
}

fn is_test_file(code: &str) -> bool {
    let is_ours = ["crates/", "clients/", "integrations/"].iter().any(|folder| code.starts_with(folder));
    is_ours && !code.contains('*') && (code.contains("/tests") || code.contains("/cases"))
}

fn has_test(tree: &SourceTree, name: &str) -> bool {
    let start = format!("fn {name}(");
    tree.texts(".rs").any(|(_, text)| text.contains(&start))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn a_promise_names_a_test_that_exists() {
        let files = [
            ("crates/x/tests/hostile.rs", "fn it_holds_for_all() {}\nfn too_short() {}\n"),
            (
                "SECURITY.md",
                "It holds (`it_holds_for_all`, `crates/x/tests/hostile.rs`).\n`no_such`, `MAX_A_B_C`, `crates/*/tests`.\n",
            ),
            (
                "ARCHITECTURE.md",
                "Text.\nIt holds (`it_holds_for_none`), and `crates/x/tests/other.rs` shows it.\n",
            ),
        ];
        expect(
            check,
            &SourceTree::of_files(&files),
            &[
                "ARCHITECTURE.md:2: promises: the test `it_holds_for_none` does not exist: name one that verifies the promise",
                "ARCHITECTURE.md:2: promises: the file `crates/x/tests/other.rs` does not exist: name one that verifies the promise",
            ],
        );
    }
}
