//! Module names are specific: no `mod.rs`, and no vague names such as `utils`.

use super::{SourceTree, Violation};

const RULE: &str = "names";

const VAGUE_NAMES: [&str; 9] =
    ["common", "helper", "helpers", "manager", "managers", "misc", "util", "utilities", "utils"];

/// Checks the paths of source files and the names of inline modules.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let mut report = |line: usize, message: String| {
            violations.push(Violation { path: path.to_owned(), line, rule: RULE, message });
        };
        if path == "mod.rs" || path.ends_with("/mod.rs") {
            report(1, "use `name.rs` next to the directory `name/`, not `name/mod.rs`".to_owned());
        }
        for word in path.trim_end_matches(".rs").split('/').filter(|word| VAGUE_NAMES.contains(word)) {
            report(1, format!("`{word}` is too vague: name it after what it contains"));
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = inline_module(line).filter(|word| VAGUE_NAMES.contains(word)) {
                report(index + 1, format!("`{word}` is too vague: name it after what it contains"));
            }
        }
    }
    violations
}

/// The name in `mod name {`; `mod name;` is a separate file.
fn inline_module(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("mod ").or_else(|| {
        let (visibility, rest) = line.split_once(" mod ")?;
        (visibility.starts_with("pub") && !visibility.contains(' ')).then_some(rest)
    })?;
    rest.strip_suffix('{').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn specific_names_pass() {
        let files =
            [("crates/a/src/lib.rs", "//! a\nmod tests {\n}\nmod x;\n"), ("crates/a/src/commonplace.rs", "")];
        expect(check, &SourceTree::of_files(&files), &[]);
    }

    #[test]
    fn vague_names_are_found_in_paths_and_in_modules() {
        let files = [
            ("a/src/utils.rs", ""),
            ("b/src/lib.rs", "//! b\npub(crate) mod helpers {\n}\n"),
            ("b/tests/common/mod.rs", ""),
        ];
        expect(
            check,
            &SourceTree::of_files(&files),
            &[
                "a/src/utils.rs:1: names: `utils` is too vague: name it after what it contains",
                "b/src/lib.rs:2: names: `helpers` is too vague: name it after what it contains",
                "b/tests/common/mod.rs:1: names: use `name.rs` next to the directory `name/`, not `name/mod.rs`",
                "b/tests/common/mod.rs:1: names: `common` is too vague: name it after what it contains",
            ],
        );
    }
}
