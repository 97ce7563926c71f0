//! Rule: the code map in `ARCHITECTURE.md` names every top-level module of every crate.

use super::{SourceTree, Violation};
use std::collections::BTreeMap;

const RULE: &str = "code-map";

/// The page with the code map.
const PAGE: &str = "ARCHITECTURE.md";

/// Modules that every reader expects: tests, and the error type of a crate.
const UNLISTED: [&str; 2] = ["error", "tests"];

/// Checks the modules that the root file of each library and of the binary declares.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let Some(page) = tree.text(PAGE) else { return Vec::new() };
    let map = entries(page);
    let mut violations = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let Some(folder) = crate_folder(path) else { continue };
        let entry = map.get(folder).map(String::as_str).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let Some(module) = declared_module(line).filter(|module| !UNLISTED.contains(module)) else {
                continue;
            };
            if !entry.contains(&format!("`{module}`")) {
                violations.push(Violation {
                    path: path.to_owned(),
                    line: index + 1,
                    rule: RULE,
                    message: format!("name the module `{module}` under `{folder}` in the code map of {PAGE}"),
                });
            }
        }
    }
    violations
}

/// The entries of the code map: the directory of a crate ↦ its line, and the lines below it.
fn entries(page: &str) -> BTreeMap<&str, String> {
    let mut entries: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = None;
    for line in page.lines() {
        if let Some(item) = line.strip_prefix("- `") {
            current = item.split('`').next();
        } else if !line.starts_with(' ') {
            current = None;
        }
        if let Some(folder) = current {
            let entry = entries.entry(folder).or_default();
            entry.push_str(line);
            entry.push('\n');
        }
    }
    entries
}

/// The directory of a crate, if this path is that of its root file.
fn crate_folder(path: &str) -> Option<&str> {
    let folder = path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs"))?;
    let (parent, _) = folder.split_once('/')?;
    ["crates", "clients"].contains(&parent).then_some(folder)
}

/// The module that a line declares, if the module is in a separate file.
fn declared_module(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    line.strip_prefix("mod ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::{check, declared_module};
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn modules_in_files_of_their_own_are_found() {
        assert_eq!(declared_module("mod a;"), Some("a"));
        assert_eq!(declared_module("pub mod a;"), Some("a"));
        assert_eq!(declared_module("pub(crate) mod a;"), Some("a"));
        assert_eq!(declared_module("mod tests {"), None);
        assert_eq!(declared_module("use a::mod_b;"), None);
    }

    #[test]
    fn every_module_is_named_in_the_entry_of_its_crate() {
        let files = [
            (
                "ARCHITECTURE.md",
                "- `crates/a`: text, with `one`\n  - `two`: text\n\nOther `three`.\n\n- `clients/b`: text\n  - `four`: text\n",
            ),
            (
                "crates/a/src/lib.rs",
                "//! a\nmod error;\npub mod one;\nmod two;\nmod three;\nmod four;\nmod tests;\n",
            ),
            ("crates/a/src/one.rs", "mod below;\n"),
            ("crates/c/src/main.rs", "mod five;\n"),
            ("clients/b/src/lib.rs", "mod four;\n"),
            ("xtask/src/main.rs", "mod six;\n"),
        ];
        expect(
            check,
            &SourceTree::of_files(&files),
            &[
                "crates/a/src/lib.rs:5: code-map: name the module `three` under `crates/a` in the code map of ARCHITECTURE.md",
                "crates/a/src/lib.rs:6: code-map: name the module `four` under `crates/a` in the code map of ARCHITECTURE.md",
                "crates/c/src/main.rs:1: code-map: name the module `five` under `crates/c` in the code map of ARCHITECTURE.md",
            ],
        );
    }
}
