//! Checks layout and dependency rules that the compiler does not check.
//!
//! A rule is a function from the [`SourceTree`] to the [`Violation`]s in it. Each rule is in a separate file
//! and is listed in [`RULES`].

mod code_map;
mod git;
mod headers;
mod integration_lints;
mod integrations;
mod layers;
mod links;
mod mechanisms;
mod module_cycles;
mod names;
mod packages;
mod promises;
mod purity;
mod reasons;
mod signatures;
mod size;
mod tree;
mod vocabulary;

pub use packages::{Kind, Packages};
pub use tree::SourceTree;

use crate::console;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::fmt;

/// A violation of a rule. Violations are ordered by file and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the root of the checkout.
    pub path: String,
    /// The line in the file, counted from 1.
    pub line: usize,
    /// The name of the rule.
    pub rule: &'static str,
    /// The problem, and how to fix it.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// A rule checks the whole tree and returns all violations.
pub type Rule = fn(&SourceTree) -> Vec<Violation>;

/// Every rule.
const RULES: [Rule; 16] = [
    code_map::check,
    git::check,
    headers::check,
    layers::check,
    links::check,
    mechanisms::check,
    module_cycles::check,
    names::check,
    promises::check,
    purity::check,
    reasons::check,
    integrations::check,
    signatures::check,
    size::check,
    vocabulary::check,
    integration_lints::check,
];

/// Path and code of every source file, without tests, and with empty lines instead of comments.
fn production_code(tree: &SourceTree) -> impl Iterator<Item = (&str, String)> {
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

/// Whether a file belongs to a crate that only tests use, or to the rules themselves.
fn is_test_crate(path: &str) -> bool {
    path.starts_with("crates/test") || path.starts_with("xtask/src/tidy/")
}

/// Maximum number of warnings that are printed.
const MAX_WARNINGS: usize = 10;

/// Checks this checkout.
pub fn run(workspace: &Workspace) -> Result<()> {
    let tree = SourceTree::read(workspace)?;
    let mut violations: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    violations.sort();
    let warnings = vocabulary::prose(&tree);
    for warning in warnings.iter().take(MAX_WARNINGS) {
        console::print(format_args!("warning: {warning}"));
    }
    if warnings.len() > MAX_WARNINGS {
        console::print(format_args!("warning: and {} more lines of prose", warnings.len() - MAX_WARNINGS));
    }
    for violation in &violations {
        console::print(violation);
    }
    match violations.len() {
        0 => {
            console::print(format_args!("tidy: {} files, {} rules, no violations", tree.len(), RULES.len()));
            Ok(())
        }
        1 => bail!("1 tidy violation"),
        count => bail!("{count} tidy violations"),
    }
}

/// Test helper: runs `rule` on a tree and compares the printed violations.
#[cfg(test)]
fn expect(rule: Rule, tree: &SourceTree, expected: &[&str]) {
    let found: Vec<String> = rule(tree).iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}
