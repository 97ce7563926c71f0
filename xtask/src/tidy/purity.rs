//! **Invariant:** pure crates stay pure. Crates that decide do not depend on an async runtime or on
//! networking, not even transitively. Only their tests may have such dependencies.

use super::{SourceTree, Violation, layers};

const RULE: &str = "purity";

/// The directories of `crates/` that only compute values from values.
const PURE: [&str; 13] = [
    "access",
    "bundle",
    "diagnostics",
    "fleet",
    "graphql",
    "inventory",
    "kinds",
    "python-json",
    "redaction",
    "report",
    "template",
    "validate",
    "yaml",
];

/// Async runtimes and networking crates.
pub(super) const IMPURE: [&str; 17] = [
    "actix-rt",
    "async-executor",
    "async-global-executor",
    "async-io",
    "async-std",
    "compio",
    "curl",
    "glommio",
    "hyper",
    "mio",
    "monoio",
    "reqwest",
    "smol",
    "socket2",
    "tokio",
    "ureq",
    "wasm-bindgen-futures",
];

/// Finds dependency chains from a pure crate to an impure one.
pub fn check(tree: &SourceTree) -> Vec<Violation> {
    let packages = tree.packages();
    let pure = packages
        .members()
        .filter(|(folder, _)| folder.strip_prefix("crates/").is_some_and(|name| PURE.contains(&name)));
    pure.filter_map(|(folder, package)| {
        let chain = packages.chain_to(package, &IMPURE)?;
        let next = chain.get(1)?;
        let message =
            format!("a pure crate depends on networking or an async runtime: {}", chain.join(" → "));
        Some(Violation { rule: RULE, ..layers::violation_at(tree, folder, next, message) })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Kind, Packages, SourceTree, expect};

    #[test]
    fn a_transitive_runtime_dependency_is_found() {
        let packages = Packages::of(&[
            ("qontract-graphql", "crates/graphql", &[("fancy", Kind::Normal)]),
            ("fancy", "", &[("tokio", Kind::Normal)]),
            ("tokio", "", &[]),
        ]);
        let expected = "crates/graphql/Cargo.toml:1: purity: a pure crate depends on networking or an async runtime: \
                        qontract-graphql → fancy → tokio";
        expect(check, &SourceTree::of_packages(packages), &[expected]);
    }

    #[test]
    fn tests_and_other_crates_may_use_a_runtime() {
        let packages = Packages::of(&[
            ("qontract-graphql", "crates/graphql", &[("tokio", Kind::Dev), ("cc", Kind::Build)]),
            ("qontract-server", "crates/server", &[("tokio", Kind::Normal)]),
            ("cc", "", &[("tokio", Kind::Normal)]),
            ("tokio", "", &[]),
        ]);
        expect(check, &SourceTree::of_packages(packages), &[]);
    }
}
