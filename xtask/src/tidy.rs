//! Checks the layout and dependency rules that no compiler knows.
//!
//! A rule is a function from the [`Tree`] to its [`Violation`]s, in a file of its own, listed in [`RULES`].

mod git;
mod headers;
mod layers;
mod links;
mod mechanisms;
mod names;
mod packages;
mod promises;
mod purity;
mod reasons;
mod rooms;
mod signatures;
mod size;
mod tree;
mod walls;
mod words;

pub use packages::{Kind, Packages};
pub use tree::Tree;

use crate::house::House;
use crate::talk;
use anyhow::{Result, bail};
use std::fmt;

/// A place where a rule is broken. Ordered by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the top of the checkout.
    pub path: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The name of the rule.
    pub rule: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// A rule looks at the whole tree and tells every place where it is broken.
pub type Rule = fn(&Tree) -> Vec<Violation>;

/// Every rule.
const RULES: [Rule; 14] = [
    git::check,
    headers::check,
    layers::check,
    links::check,
    mechanisms::check,
    names::check,
    promises::check,
    purity::check,
    reasons::check,
    rooms::check,
    signatures::check,
    size::check,
    walls::check,
    words::check,
];

/// Path and code of every source file: without its tests, and with empty lines in place of comments.
fn code(tree: &Tree) -> impl Iterator<Item = (&str, String)> {
    let is_code = |path: &str| {
        path.contains("src/")
            && !path.contains("/tests/")
            && !path.ends_with("/tests.rs")
            && !is_test_crate(path)
    };
    tree.texts(".rs").filter(move |(path, _)| is_code(path)).map(|(path, text)| {
        let code = text.find("\n#[cfg(test)]").map_or(text, |end| &text[..end]);
        let lines = code.lines().map(|line| if line.trim_start().starts_with("//") { "" } else { line });
        (path, lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Whether a file belongs to what only tests use, or to the rules themselves.
fn is_test_crate(path: &str) -> bool {
    path.starts_with("crates/test") || path.starts_with("xtask/src/tidy/")
}

/// Checks this checkout.
pub fn run(house: &House) -> Result<()> {
    let tree = Tree::read(house)?;
    let mut violations: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    violations.sort();
    for violation in &violations {
        talk::say(violation);
    }
    match violations.len() {
        0 => {
            talk::say(format_args!("tidy: {} files, {} rules, nothing found", tree.len(), RULES.len()));
            Ok(())
        }
        1 => bail!("1 rule of the layout is broken"),
        count => bail!("the rules of the layout are broken in {count} places"),
    }
}

/// For the tests of the rules: runs `rule` over files and packages, and compares what it prints.
#[cfg(test)]
fn expect(rule: Rule, tree: &Tree, expected: &[&str]) {
    let found: Vec<String> = rule(tree).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}
