//! **Invariant:** pure crates stay pure. What decides knows no async runtime and no network, not even through others.
//! Their tests may.

use super::{Tree, Violation, layers};

const RULE: &str = "purity";

/// The folders of `crates/` that only turn values into values.
const PURE: [&str; 12] = [
    "access",
    "bundle",
    "diagnostics",
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

/// Async runtimes, and what talks to the network.
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

/// Looks for a chain from a pure crate to something that is not.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let packages = tree.packages();
    let pure = packages
        .ours()
        .filter(|(folder, _)| folder.strip_prefix("crates/").is_some_and(|name| PURE.contains(&name)));
    pure.filter_map(|(folder, package)| {
        let chain = packages.chain_to(package, &IMPURE)?;
        let next = chain.get(1)?;
        let message = format!("a pure crate reaches the network or an async runtime: {}", chain.join(" → "));
        Some(Violation { rule: RULE, ..layers::place(tree, folder, next, message) })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::{Kind, Packages, Tree, expect};

    #[test]
    fn a_runtime_behind_others_is_found() {
        let packages = Packages::of(&[
            ("qontract-graphql", "crates/graphql", &[("fancy", Kind::Normal)]),
            ("fancy", "", &[("tokio", Kind::Normal)]),
            ("tokio", "", &[]),
        ]);
        let expected = "crates/graphql/Cargo.toml:1: purity: a pure crate reaches the network or an async runtime: \
                        qontract-graphql → fancy → tokio";
        expect(check, &Tree::of_packages(packages), &[expected]);
    }

    #[test]
    fn tests_and_other_crates_may_use_a_runtime() {
        let packages = Packages::of(&[
            ("qontract-graphql", "crates/graphql", &[("tokio", Kind::Dev), ("cc", Kind::Build)]),
            ("qontract-server", "crates/server", &[("tokio", Kind::Normal)]),
            ("cc", "", &[("tokio", Kind::Normal)]),
            ("tokio", "", &[]),
        ]);
        expect(check, &Tree::of_packages(packages), &[]);
    }
}
