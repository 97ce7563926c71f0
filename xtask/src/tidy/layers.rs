//! **Invariant:** dependencies between layers have one direction: only the binary depends on integrations,
//! clients depend only on the crates of a short list, and integrations never depend on integrations. Also, a
//! package is named after its directory.

use super::{Kind, SourceTree, Violation};

const RULE: &str = "layers";

/// The only workspace packages that a client may depend on.
const ALLOWED_FOR_CLIENTS: [&str; 11] = [
    "qontract-access",
    "qontract-child",
    "qontract-client-http",
    "qontract-concurrency",
    "qontract-diagnostics",
    "qontract-files",
    "qontract-kinds",
    "qontract-python-json",
    "qontract-redaction",
    "qontract-telemetry",
    "qontract-yaml",
];

/// The layer of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// `crates/qontract`, the binary.
    Binary,
    /// Any other directory of `crates/`.
    Crate,
    /// `clients/*`.
    Client,
    /// `integrations/*`.
    Integration,
    /// `xtask`, `benches` and other tooling: they may depend on anything.
    Tooling,
}

/// Checks package names and the direction of dependencies.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (folder, package) in tree.packages().members() {
        let mut report =
            |word: &str, message: String| violations.push(violation_at(tree, folder, word, message));
        let (layer, expected) = layer(folder);
        if let Some(expected) = expected
            && expected != package.name
        {
            report(
                "name",
                format!("the package in `{folder}` must be named `{expected}`, not `{}`", package.name),
            );
        }
        for (needed, kind) in tree.packages().dependencies_of(package) {
            let Some(theirs) = &needed.folder else { continue };
            if let Some(why) = forbidden_reason(layer, self::layer(theirs).0, &needed.name, kind) {
                report(
                    &needed.name,
                    format!("`{}` must not depend on `{}`: {why}", package.name, needed.name),
                );
            }
        }
    }
    violations
}

/// The layer of a directory, and the required name of its package.
fn layer(folder: &str) -> (Layer, Option<String>) {
    match folder.split_once('/') {
        Some(("crates", "qontract")) => (Layer::Binary, Some("qontract".to_owned())),
        Some(("crates", name)) => (Layer::Crate, Some(format!("qontract-{name}"))),
        Some(("clients", name)) => (Layer::Client, Some(format!("qontract-client-{name}"))),
        Some(("integrations", name)) => (Layer::Integration, Some(format!("qontract-integration-{name}"))),
        _ => (Layer::Tooling, None),
    }
}

fn forbidden_reason(from: Layer, to: Layer, name: &str, kind: Kind) -> Option<&'static str> {
    match (from, to) {
        (Layer::Crate | Layer::Client, Layer::Integration) => Some("only the binary depends on integrations"),
        (Layer::Integration, Layer::Integration) => Some("integrations never depend on each other"),
        (Layer::Client, _) if kind != Kind::Dev && !ALLOWED_FOR_CLIENTS.contains(&name) => Some(
            "clients may only depend on http, access, child, concurrency, redaction, telemetry, diagnostics, files, kinds, python-json and yaml",
        ),
        (Layer::Crate | Layer::Client | Layer::Integration, Layer::Binary) => {
            Some("nothing depends on the binary")
        }
        (Layer::Binary | Layer::Crate | Layer::Client | Layer::Integration, Layer::Tooling)
            if kind != Kind::Dev =>
        {
            Some("the product does not depend on tooling")
        }
        _ => None,
    }
}

/// A violation at the line of the manifest that begins with `word`, otherwise at its first line.
pub(super) fn violation_at(tree: &SourceTree, folder: &str, word: &str, message: String) -> Violation {
    let path = format!("{folder}/Cargo.toml");
    let line =
        tree.text(&path).and_then(|text| text.lines().position(|line| line.trim_start().starts_with(word)));
    Violation { path, line: line.map_or(1, |index| index + 1), rule: RULE, message }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::packages::TestPackage;
    use crate::tidy::{Kind, Packages, SourceTree, expect};

    fn check_layers(packages: &[TestPackage<'_>], expected: &[&str]) {
        expect(check, &SourceTree::of_packages(Packages::of(packages)), expected);
    }

    #[test]
    fn the_designed_layers_pass() {
        check_layers(
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
    fn a_package_is_named_after_its_directory() {
        check_layers(
            &[("yaml", "crates/yaml", &[]), ("aws", "clients/aws", &[]), ("a", "integrations/a", &[])],
            &[
                "integrations/a/Cargo.toml:1: layers: the package in `integrations/a` must be named `qontract-integration-a`, not `a`",
                "clients/aws/Cargo.toml:1: layers: the package in `clients/aws` must be named `qontract-client-aws`, not `aws`",
                "crates/yaml/Cargo.toml:1: layers: the package in `crates/yaml` must be named `qontract-yaml`, not `yaml`",
            ],
        );
    }

    #[test]
    fn crates_and_integrations_do_not_depend_on_integrations() {
        check_layers(
            &[
                ("qontract-a", "crates/a", &[("qontract-integration-x", Kind::Dev)]),
                ("qontract-integration-x", "integrations/x", &[("qontract-integration-y", Kind::Normal)]),
                ("qontract-integration-y", "integrations/y", &[]),
            ],
            &[
                "crates/a/Cargo.toml:1: layers: `qontract-a` must not depend on `qontract-integration-x`: only the binary depends on integrations",
                "integrations/x/Cargo.toml:1: layers: `qontract-integration-x` must not depend on `qontract-integration-y`: integrations never depend on each other",
            ],
        );
    }

    #[test]
    fn clients_depend_on_a_short_list() {
        check_layers(
            &[
                ("qontract-client-aws", "clients/aws", &[("qontract-bundle", Kind::Normal)]),
                ("qontract-bundle", "crates/bundle", &[]),
            ],
            &[
                "clients/aws/Cargo.toml:1: layers: `qontract-client-aws` must not depend on `qontract-bundle`: clients may only depend on http, access, child, concurrency, redaction, telemetry, diagnostics, files, kinds, python-json and yaml",
            ],
        );
    }
}
