//! Every room is complete: it has code (a package, or a program of the process form), a README and at least one case.

use std::collections::BTreeSet;

use super::{Tree, Violation};

const RULE: &str = "rooms";

/// Looks into each folder of `integrations/`.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let rooms: BTreeSet<&str> = tree
        .paths()
        .filter_map(|path| path.strip_prefix("integrations/")?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    rooms.into_iter().flat_map(|room| incomplete(tree, &format!("integrations/{room}/"))).collect()
}

fn incomplete(tree: &Tree, room: &str) -> Vec<Violation> {
    let manifest = format!("{room}Cargo.toml");
    let mut missing = Vec::new();
    if !tree.has(&manifest) && !tree.texts("").any(|(path, text)| is_program(room, path, text)) {
        missing.push("a room has a `Cargo.toml`, or a program that begins with `#!`");
    }
    if !tree.has(&format!("{room}README.md")) {
        missing.push("a room has a `README.md`: what it does, from which data, to which target");
    }
    let cases = format!("{room}cases/");
    if !tree.texts(".md").any(|(path, _)| path.starts_with(&cases)) {
        missing.push("a room has cases: `cases/*.md`");
    }
    let any = || tree.paths().find(|path| path.starts_with(room)).unwrap_or(room).to_owned();
    let path = if tree.has(&manifest) { manifest } else { any() };
    let violation =
        |message: &str| Violation { path: path.clone(), line: 1, rule: RULE, message: message.to_owned() };
    missing.into_iter().map(violation).collect()
}

/// Whether a file is the program of a room.
fn is_program(room: &str, path: &str, text: &str) -> bool {
    path.strip_prefix(room).is_some_and(|name| !name.contains('/')) && text.starts_with("#!")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Tree, expect};

    #[test]
    fn a_complete_room_is_fine() {
        let files = [
            ("integrations/clippy.toml", ""),
            ("integrations/a/Cargo.toml", ""),
            ("integrations/a/README.md", ""),
            ("integrations/a/cases/x.md", ""),
            ("integrations/b/b.py", "#!/usr/bin/env python3\n"),
            ("integrations/b/README.md", ""),
            ("integrations/b/cases/x.md", ""),
        ];
        expect(check, &Tree::of_files(&files), &[]);
        expect(check, &Tree::of_files(&[("crates/a/Cargo.toml", "")]), &[]);
    }

    #[test]
    fn what_is_missing_is_told() {
        expect(
            check,
            &Tree::of_files(&[("integrations/a/Cargo.toml", ""), ("integrations/b/b.py", "print(1)\n")]),
            &[
                "integrations/a/Cargo.toml:1: rooms: a room has a `README.md`: what it does, from which data, to which target",
                "integrations/a/Cargo.toml:1: rooms: a room has cases: `cases/*.md`",
                "integrations/b/b.py:1: rooms: a room has a `Cargo.toml`, or a program that begins with `#!`",
                "integrations/b/b.py:1: rooms: a room has a `README.md`: what it does, from which data, to which target",
                "integrations/b/b.py:1: rooms: a room has cases: `cases/*.md`",
            ],
        );
    }
}
