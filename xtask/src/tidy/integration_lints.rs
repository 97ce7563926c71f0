//! Integrations access the outside world only through clients, which require a permit. The clippy settings
//! for integrations include those of the workspace, and no integration depends on networking or an async
//! runtime directly.

use super::{Kind, SourceTree, Violation, layers, purity};

const RULE: &str = "integration-lints";

/// The clippy settings of the workspace.
const WORKSPACE_CLIPPY: &str = "clippy.toml";
/// The clippy settings for integrations. Clippy reads only the nearest file.
const INTEGRATIONS_CLIPPY: &str = "integrations/clippy.toml";

/// Compares the settings and checks the dependencies of each integration.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    compare_settings(tree).into_iter().chain(check_dependencies(tree)).collect()
}

/// Checks that every setting of the workspace is also set for integrations, line by line.
fn compare_settings(tree: &SourceTree) -> Vec<Violation> {
    let (Some(all), Some(integrations)) = (tree.text(WORKSPACE_CLIPPY), tree.text(INTEGRATIONS_CLIPPY))
    else {
        return Vec::new();
    };
    let missing = lines(all).filter(|line| lines(integrations).all(|other| other != *line));
    missing
        .map(|line| Violation {
            path: INTEGRATIONS_CLIPPY.to_owned(),
            line: 1,
            rule: RULE,
            message: format!("`{WORKSPACE_CLIPPY}` contains `{line}`: add it here"),
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Checks that no integration, except its tests, depends on an async runtime or on networking.
fn check_dependencies(tree: &SourceTree) -> Vec<Violation> {
    let packages = tree.packages();
    let integrations = packages.members().filter(|(folder, _)| folder.starts_with("integrations/"));
    integrations
        .flat_map(|(folder, package)| {
            packages.dependencies_of(package).map(move |(needed, kind)| (folder, needed, kind))
        })
        .filter(|(_, needed, kind)| *kind != Kind::Dev && purity::IMPURE.contains(&needed.name.as_str()))
        .map(|(folder, needed, _)| {
            let message = format!("an integration must not depend on `{}`: use a client", needed.name);
            Violation { rule: RULE, ..layers::violation_at(tree, folder, &needed.name, message) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{INTEGRATIONS_CLIPPY, WORKSPACE_CLIPPY, check};
    use crate::tidy::{Kind, Packages, SourceTree, expect};

    fn compare(all: &str, integrations: &str, expected: &[&str]) {
        expect(
            check,
            &SourceTree::of_files(&[(WORKSPACE_CLIPPY, all), (INTEGRATIONS_CLIPPY, integrations)]),
            expected,
        );
    }

    #[test]
    fn integrations_may_have_more_lints() {
        compare("# why\na = 5\nb = [\n    {x},\n]\n", "a = 5\nb = [\n    {y},\n    {x},\n]\nc = 1\n", &[]);
    }

    #[test]
    fn workspace_settings_are_required_for_integrations() {
        compare(
            "a = 5\nb = [\n    {x},\n]\n",
            "# a = 5\na = 6\nb = [\n]\n",
            &[
                "integrations/clippy.toml:1: integration-lints: `clippy.toml` contains `a = 5`: add it here",
                "integrations/clippy.toml:1: integration-lints: `clippy.toml` contains `{x},`: add it here",
            ],
        );
    }

    #[test]
    fn an_integration_does_not_depend_on_networking_or_a_runtime() {
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
        let expected = "integrations/a/Cargo.toml:1: integration-lints: an integration must not depend on `reqwest`: use a client";
        expect(check, &SourceTree::of_packages(packages), &[expected]);
    }
}
