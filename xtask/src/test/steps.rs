//! The steps of `cargo xtask test`.

use super::{StepOutcome, cluster};
use crate::cli::{GenerateArgs, TestArgs, TestStep};
use crate::command::CommandStatus;
use crate::workspace::Workspace;
use crate::{console, generate, tidy};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of the advisory check, which may try to fetch a database that cannot be reached.
const ADVISORIES_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs one step.
pub fn run(step: TestStep, workspace: &Workspace, arguments: &TestArgs) -> Result<StepOutcome> {
    match step {
        TestStep::Fmt => workspace.cargo("fmt --all --check").run()?,
        TestStep::Tidy => tidy::run(workspace)?,
        TestStep::Clippy => workspace.cargo("clippy --workspace --all-targets -- -D warnings").run()?,
        TestStep::Generate => generate::run(workspace, &GenerateArgs { check: true })?,
        TestStep::Deny => workspace.cargo("deny check licenses bans sources").run()?,
        TestStep::Advisories => return advisories(workspace),
        TestStep::Docs => {
            workspace.cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()?;
        }
        TestStep::Doctests => workspace.cargo("test --quiet --workspace --doc").run()?,
        TestStep::Tests => return cluster::run_tests(workspace, arguments),
    }
    Ok(StepOutcome::Passed)
}

/// Checks the dependencies for known vulnerabilities. The check never fails a run, because there may be no
/// database, and findings need judgement.
fn advisories(workspace: &Workspace) -> Result<StepOutcome> {
    if !has_database() {
        console::print("no advisory database on this machine; `cargo deny fetch db` fetches one");
        return Ok(StepOutcome::Advisory);
    }
    let online = workspace.cargo("deny check advisories").run_with_timeout(ADVISORIES_TIMEOUT)?;
    if online == CommandStatus::Success {
        return Ok(StepOutcome::Passed);
    }
    console::print(
        "the database was not reached, or advisories were found: checking again with the local database",
    );
    let offline = workspace.cargo("deny --offline check advisories").run_with_timeout(ADVISORIES_TIMEOUT)?;
    Ok(if offline == CommandStatus::Success { StepOutcome::Passed } else { StepOutcome::Advisory })
}

/// Whether cargo-deny has a database on this machine.
fn has_database() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let databases = cargo_home.and_then(|home| home.join("advisory-dbs").read_dir().ok());
    databases.is_some_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
}
