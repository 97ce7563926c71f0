//! Every integration is complete: it has code (a package, or a program of the process form), a README and a
//! case.

use std::collections::BTreeSet;

use super::{SourceTree, Violation};

const RULE: &str = "integrations";

/// Checks each directory of `integrations/`.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let names: BTreeSet<&str> = tree
        .paths()
        .filter_map(|path| path.strip_prefix("integrations/")?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    names.into_iter().flat_map(|name| missing_parts(tree, &format!("integrations/{name}/"))).collect()
}

fn missing_parts(tree: &SourceTree, folder: &str) -> Vec<Violation> {
    let manifest = format!("{folder}Cargo.toml");
    let mut missing = Vec::new();
    if !tree.has(&manifest) && !tree.texts("").any(|(path, text)| is_program(folder, path, text)) {
        missing.push("an integration has a `Cargo.toml`, or a program that begins with `#!`");
    }
    if !tree.has(&format!("{folder}README.md")) {
        missing.push("an integration has a `README.md`: what it does, from which data, to which target");
    }
    let cases = format!("{folder}cases/");
    if !tree.texts(".md").any(|(path, _)| path.starts_with(&cases)) {
        missing.push("an integration has cases: `cases/*.md`");
    }
    let any = || tree.paths().find(|path| path.starts_with(folder)).unwrap_or(folder).to_owned();
    let path = if tree.has(&manifest) { manifest } else { any() };
    let violation =
        |message: &str| Violation { path: path.clone(), line: 1, rule: RULE, message: message.to_owned() };
    missing.into_iter().map(violation).collect()
}

/// Whether a file is the program of an integration of the process form.
fn is_program(folder: &str, path: &str, text: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|name| !name.contains('/')) && text.starts_with("#!")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{SourceTree, expect};

    #[test]
    fn a_complete_integration_passes() {
        let files = [
            ("integrations/clippy.toml", ""),
            ("integrations/a/Cargo.toml", ""),
            ("integrations/a/README.md", ""),
            ("integrations/a/cases/x.md", ""),
            ("integrations/b/b.py", "#!/usr/bin/env python3\n"),
            ("integrations/b/README.md", ""),
            ("integrations/b/cases/x.md", ""),
        ];
        expect(check, &SourceTree::of_files(&files), &[]);
        expect(check, &SourceTree::of_files(&[("crates/a/Cargo.toml", "")]), &[]);
    }

    #[test]
    fn missing_parts_are_found() {
        expect(
            check,
            &SourceTree::of_files(&[
                ("integrations/a/Cargo.toml", ""),
                ("integrations/b/b.py", "print(1)\n"),
            ]),
            &[
                "integrations/a/Cargo.toml:1: integrations: an integration has a `README.md`: what it does, from which data, to which target",
                "integrations/a/Cargo.toml:1: integrations: an integration has cases: `cases/*.md`",
                "integrations/b/b.py:1: integrations: an integration has a `Cargo.toml`, or a program that begins with `#!`",
                "integrations/b/b.py:1: integrations: an integration has a `README.md`: what it does, from which data, to which target",
                "integrations/b/b.py:1: integrations: an integration has cases: `cases/*.md`",
            ],
        );
    }
}
