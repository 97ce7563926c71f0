//! Every room is complete: it has a README and at least one case.

use super::{Tree, Violation};

const RULE: &str = "rooms";

/// Looks into each folder of `integrations/`.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let rooms =
        tree.paths().filter_map(|path| path.strip_prefix("integrations/")?.strip_suffix("/Cargo.toml"));
    rooms.flat_map(|room| incomplete(tree, &format!("integrations/{room}"))).collect()
}

fn incomplete(tree: &Tree, room: &str) -> Vec<Violation> {
    let mut missing = Vec::new();
    if !tree.has(&format!("{room}/README.md")) {
        missing.push("a room has a `README.md`: what it does, from which data, to which target");
    }
    let cases = format!("{room}/cases/");
    if !tree.texts(".md").any(|(path, _)| path.starts_with(&cases)) {
        missing.push("a room has cases: `cases/*.md`");
    }
    let violation = |message: &str| Violation {
        path: format!("{room}/Cargo.toml"),
        line: 1,
        rule: RULE,
        message: message.to_owned(),
    };
    missing.into_iter().map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Tree, expect};

    #[test]
    fn a_complete_room_is_fine() {
        let files = [
            ("integrations/a/Cargo.toml", ""),
            ("integrations/a/README.md", ""),
            ("integrations/a/cases/x.md", ""),
        ];
        expect(check, &Tree::of_files(&files), &[]);
        expect(check, &Tree::of_files(&[("crates/a/Cargo.toml", "")]), &[]);
    }

    #[test]
    fn what_is_missing_is_told() {
        expect(
            check,
            &Tree::of_files(&[("integrations/a/Cargo.toml", "")]),
            &[
                "integrations/a/Cargo.toml:1: rooms: a room has a `README.md`: what it does, from which data, to which target",
                "integrations/a/Cargo.toml:1: rooms: a room has cases: `cases/*.md`",
            ],
        );
    }
}
