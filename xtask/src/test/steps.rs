//! The steps of `cargo xtask test`.

use super::{Outcome, cluster};
use crate::cli::{GenerateArgs, Step, TestArgs};
use crate::command::Ended;
use crate::house::House;
use crate::{generate, talk, tidy};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the advisory check: it may try to fetch a database that cannot be reached.
const ADVISORIES_LIMIT: Duration = Duration::from_secs(30);

/// Runs one step.
pub fn run(step: Step, workspace: &House, arguments: &TestArgs) -> Result<Outcome> {
    match step {
        Step::Fmt => workspace.cargo("fmt --all --check").run()?,
        Step::Tidy => tidy::run(workspace)?,
        Step::Clippy => workspace.cargo("clippy --workspace --all-targets -- -D warnings").run()?,
        Step::Generate => generate::run(workspace, &GenerateArgs { check: true })?,
        Step::Deny => workspace.cargo("deny check licenses bans sources").run()?,
        Step::Advisories => return advisories(workspace),
        Step::Docs => {
            workspace.cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()?
        }
        Step::Doctests => workspace.cargo("test --quiet --workspace --doc").run()?,
        Step::Tests => return cluster::run_tests(workspace, arguments),
    }
    Ok(Outcome::Passed)
}

/// Checks the dependencies for known vulnerabilities. Best effort: there may be no database, and findings
/// need judgement.
fn advisories(workspace: &House) -> Result<Outcome> {
    if !has_database() {
        talk::say("no advisory database on this machine; `cargo deny fetch db` fetches one");
        return Ok(Outcome::Noted);
    }
    let online = workspace.cargo("deny check advisories").run_within(ADVISORIES_LIMIT)?;
    if online == Ended::Well {
        return Ok(Outcome::Passed);
    }
    talk::say(
        "the database was not reached, or advisories were found: checking again with the local database",
    );
    let offline = workspace.cargo("deny --offline check advisories").run_within(ADVISORIES_LIMIT)?;
    Ok(if offline == Ended::Well { Outcome::Passed } else { Outcome::Noted })
}

/// Whether cargo-deny has a database on this machine.
fn has_database() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let databases = cargo_home.and_then(|home| home.join("advisory-dbs").read_dir().ok());
    databases.is_some_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}
