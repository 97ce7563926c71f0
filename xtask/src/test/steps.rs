//! What each step of `cargo xtask test` does.

use super::{Outcome, cluster};
use crate::cli::{GenerateArgs, Step, TestArgs};
use crate::command::Ended;
use crate::house::House;
use crate::{generate, talk, tidy};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// How long the check for advisories may take: it may want to reach a database that does not answer.
const ADVISORIES_LIMIT: Duration = Duration::from_secs(30);

/// Runs one step.
pub fn run(step: Step, house: &House, arguments: &TestArgs) -> Result<Outcome> {
    match step {
        Step::Fmt => house.cargo("fmt --all --check").run()?,
        Step::Tidy => tidy::run(house)?,
        Step::Clippy => house.cargo("clippy --workspace --all-targets -- -D warnings").run()?,
        Step::Generate => generate::run(house, &GenerateArgs { check: true })?,
        Step::Deny => house.cargo("deny check licenses bans sources").run()?,
        Step::Advisories => return advisories(house),
        Step::Docs => house.cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()?,
        Step::Doctests => house.cargo("test --quiet --workspace --doc").run()?,
        Step::Tests => return cluster::run_tests(house, arguments),
    }
    Ok(Outcome::Passed)
}

/// Best effort: without a database there is nothing to compare with, and what one says is for people to weigh.
fn advisories(house: &House) -> Result<Outcome> {
    if !has_database() {
        talk::say(
            "no advisory database on this machine; `cargo deny fetch db` gets one where it can be reached",
        );
        return Ok(Outcome::Noted);
    }
    let online = house.cargo("deny check advisories").run_within(ADVISORIES_LIMIT)?;
    if online == Ended::Well {
        return Ok(Outcome::Passed);
    }
    talk::say("not reached, or something found: once more with the database as it is");
    let offline = house.cargo("deny --offline check advisories").run_within(ADVISORIES_LIMIT)?;
    Ok(if offline == Ended::Well { Outcome::Passed } else { Outcome::Noted })
}

/// Whether cargo-deny has a database: a folder in its folder of databases.
fn has_database() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let databases = cargo_home.and_then(|home| home.join("advisory-dbs").read_dir().ok());
    databases.is_some_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}
