//! **Invariant:** dependencies point one way. A package's name follows from its folder; crates never need rooms, except
//! the binary, which lists them; clients need little; rooms never need rooms.

use super::{Kind, Tree, Violation};

const RULE: &str = "layers";

/// The only packages of ours that a client may need.
const FOR_CLIENTS: [&str; 10] = [
    "qontract-access",
    "qontract-child",
    "qontract-client-http",
    "qontract-concurrency",
    "qontract-diagnostics",
    "qontract-kinds",
    "qontract-python-json",
    "qontract-redaction",
    "qontract-telemetry",
    "qontract-yaml",
];

/// Where a package stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// `crates/qontract`, the binary.
    Binary,
    /// Any other folder of `crates/`.
    Crate,
    /// `clients/*`.
    Client,
    /// `integrations/*`.
    Room,
    /// `xtask`, `benches` and the like: they may need anything.
    Workshop,
}

/// Names and directions.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (folder, package) in tree.packages().ours() {
        let mut report = |word: &str, message: String| violations.push(place(tree, folder, word, message));
        let (layer, expected) = layer(folder);
        if let Some(expected) = expected
            && expected != package.name
        {
            report(
                "name",
                format!("the package in `{folder}` is to be called `{expected}`, not `{}`", package.name),
            );
        }
        for (needed, kind) in tree.packages().needs(package) {
            let Some(theirs) = &needed.folder else { continue };
            if let Some(why) = refusal(layer, self::layer(theirs).0, &needed.name, kind) {
                report(&needed.name, format!("`{}` must not need `{}`: {why}", package.name, needed.name));
            }
        }
    }
    violations
}

/// Where a folder stands, and the name that its package must have.
fn layer(folder: &str) -> (Layer, Option<String>) {
    match folder.split_once('/') {
        Some(("crates", "qontract")) => (Layer::Binary, Some("qontract".to_owned())),
        Some(("crates", name)) => (Layer::Crate, Some(format!("qontract-{name}"))),
        Some(("clients", name)) => (Layer::Client, Some(format!("qontract-client-{name}"))),
        Some(("integrations", name)) => (Layer::Room, Some(format!("qontract-integration-{name}"))),
        _ => (Layer::Workshop, None),
    }
}

fn refusal(from: Layer, to: Layer, name: &str, kind: Kind) -> Option<&'static str> {
    match (from, to) {
        (Layer::Crate | Layer::Client, Layer::Room) => Some("only the binary knows the rooms"),
        (Layer::Room, Layer::Room) => Some("rooms never import rooms"),
        (Layer::Client, _) if kind != Kind::Dev && !FOR_CLIENTS.contains(&name) => Some(
            "a client needs only http, access, child, concurrency, redaction, telemetry, diagnostics, kinds, python-json and yaml",
        ),
        (Layer::Crate | Layer::Client | Layer::Room, Layer::Binary) => Some("nothing needs the binary"),
        (Layer::Binary | Layer::Crate | Layer::Client | Layer::Room, Layer::Workshop)
            if kind != Kind::Dev =>
        {
            Some("the product does not need its workshop")
        }
        _ => None,
    }
}

/// Points to the line of the manifest that has the word, else to its first.
pub(super) fn place(tree: &Tree, folder: &str, word: &str, message: String) -> Violation {
    let path = format!("{folder}/Cargo.toml");
    let line =
        tree.text(&path).and_then(|text| text.lines().position(|line| line.trim_start().starts_with(word)));
    Violation { path, line: line.map_or(1, |index| index + 1), rule: RULE, message }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::packages::Sketch;
    use crate::tidy::{Kind, Packages, Tree, expect};

    fn one_way(packages: &[Sketch<'_>], expected: &[&str]) {
        expect(check, &Tree::of_packages(Packages::of(packages)), expected);
    }

    #[test]
    fn the_house_as_designed_is_fine() {
        one_way(
            &[
                ("qontract", "crates/qontract", &[("qontract-integration-a", Kind::Normal)]),
                ("qontract-runtime", "crates/runtime", &[("serde", Kind::Normal)]),
                ("qontract-client-http", "clients/http", &[("qontract-testkit", Kind::Dev)]),
                (
                    "qontract-client-aws",
                    "clients/aws",
                    &[("qontract-client-http", Kind::Normal), ("qontract-child", Kind::Normal)],
                ),
                ("qontract-integration-a", "integrations/a", &[("qontract-runtime", Kind::Normal)]),
                ("qontract-child", "crates/child", &[]),
                ("qontract-testkit", "crates/testkit", &[]),
                ("xtask", "xtask", &[]),
                ("serde", "", &[]),
            ],
            &[],
        );
    }

    #[test]
    fn a_package_is_called_after_its_folder() {
        one_way(
            &[("yaml", "crates/yaml", &[]), ("aws", "clients/aws", &[]), ("a", "integrations/a", &[])],
            &[
                "integrations/a/Cargo.toml:1: layers: the package in `integrations/a` is to be called `qontract-integration-a`, not `a`",
                "clients/aws/Cargo.toml:1: layers: the package in `clients/aws` is to be called `qontract-client-aws`, not `aws`",
                "crates/yaml/Cargo.toml:1: layers: the package in `crates/yaml` is to be called `qontract-yaml`, not `yaml`",
            ],
        );
    }

    #[test]
    fn crates_and_rooms_need_no_rooms() {
        one_way(
            &[
                ("qontract-a", "crates/a", &[("qontract-integration-x", Kind::Dev)]),
                ("qontract-integration-x", "integrations/x", &[("qontract-integration-y", Kind::Normal)]),
                ("qontract-integration-y", "integrations/y", &[]),
            ],
            &[
                "crates/a/Cargo.toml:1: layers: `qontract-a` must not need `qontract-integration-x`: only the binary knows the rooms",
                "integrations/x/Cargo.toml:1: layers: `qontract-integration-x` must not need `qontract-integration-y`: rooms never import rooms",
            ],
        );
    }

    #[test]
    fn clients_need_little() {
        one_way(
            &[
                ("qontract-client-aws", "clients/aws", &[("qontract-bundle", Kind::Normal)]),
                ("qontract-bundle", "crates/bundle", &[]),
            ],
            &[
                "clients/aws/Cargo.toml:1: layers: `qontract-client-aws` must not need `qontract-bundle`: a client needs only http, access, child, concurrency, redaction, telemetry, diagnostics, kinds, python-json and yaml",
            ],
        );
    }
}
