//! Rooms do not touch the world themselves: clients do, and ask for a permit. The lints of rooms are those of everybody
//! and more, and no room needs a network or an async runtime of its own.

use super::{Kind, Tree, Violation, layers, purity};

const RULE: &str = "walls";

/// The settings of clippy for everybody.
const ALL: &str = "clippy.toml";
/// The settings of clippy for rooms. Clippy takes the nearest file alone.
const ROOMS: &str = "integrations/clippy.toml";

/// Compares the settings, and looks at what each room needs.
pub fn check(tree: &Tree) -> Vec<Violation> {
    settings(tree).into_iter().chain(needs(tree)).collect()
}

/// Each line of the settings for everybody that says something is among those for rooms.
fn settings(tree: &Tree) -> Vec<Violation> {
    let (Some(all), Some(rooms)) = (tree.text(ALL), tree.text(ROOMS)) else { return Vec::new() };
    let missing = lines(all).filter(|line| lines(rooms).all(|known| known != *line));
    missing
        .map(|line| Violation {
            path: ROOMS.to_owned(),
            line: 1,
            rule: RULE,
            message: format!("`{ALL}` says `{line}`: say it here, too"),
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What a room needs for more than its tests is neither a runtime nor the network.
fn needs(tree: &Tree) -> Vec<Violation> {
    let packages = tree.packages();
    let rooms = packages.ours().filter(|(folder, _)| folder.starts_with("integrations/"));
    rooms
        .flat_map(|(folder, package)| {
            packages.needs(package).map(move |(needed, kind)| (folder, needed, kind))
        })
        .filter(|(_, needed, kind)| *kind != Kind::Dev && purity::IMPURE.contains(&needed.name.as_str()))
        .map(|(folder, needed, _)| {
            let message =
                format!("a room must not need `{}`: it reaches the world through clients", needed.name);
            Violation { rule: RULE, ..layers::place(tree, folder, &needed.name, message) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{ALL, ROOMS, check};
    use crate::tidy::{Kind, Packages, Tree, expect};

    fn compare(all: &str, rooms: &str, expected: &[&str]) {
        expect(check, &Tree::of_files(&[(ALL, all), (ROOMS, rooms)]), expected);
    }

    #[test]
    fn rooms_may_have_more_lints_than_others() {
        compare("# why\na = 5\nb = [\n    {x},\n]\n", "a = 5\nb = [\n    {y},\n    {x},\n]\nc = 1\n", &[]);
    }

    #[test]
    fn what_is_said_for_everybody_holds_for_rooms() {
        compare(
            "a = 5\nb = [\n    {x},\n]\n",
            "# a = 5\na = 6\nb = [\n]\n",
            &[
                "integrations/clippy.toml:1: walls: `clippy.toml` says `a = 5`: say it here, too",
                "integrations/clippy.toml:1: walls: `clippy.toml` says `{x},`: say it here, too",
            ],
        );
    }

    #[test]
    fn a_room_needs_no_network_and_no_runtime() {
        let packages = Packages::of(&[
            (
                "qontract-integration-a",
                "integrations/a",
                &[("reqwest", Kind::Normal), ("tokio", Kind::Dev), ("qontract-client-x", Kind::Normal)],
            ),
            ("qontract-client-x", "clients/x", &[("reqwest", Kind::Normal)]),
            ("reqwest", "", &[]),
            ("tokio", "", &[]),
        ]);
        let expected = "integrations/a/Cargo.toml:1: walls: a room must not need `reqwest`: it reaches the world through clients";
        expect(check, &Tree::of_packages(packages), &[expected]);
    }
}
