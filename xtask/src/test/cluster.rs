//! Runs the tests, with one real Kubernetes API server for all tests that need one.
//!
//! A test needs the server if its name, its module or its file contains `real_cluster`.

use super::{SkippedTests, StepOutcome};
use crate::cli::TestArgs;
use crate::command::CommandLine;
use crate::workspace::Workspace;
use crate::{console, setup};
use anyhow::{Context as _, Result};
use qontract_testkit::NOT_TESTED_VARIABLE;
use qontract_testkit::cluster::{TestCluster, WITHOUT_KUBE_VARIABLE};
use std::time::Instant;

/// The nextest filter for tests that need a server. `test(/./)` matches every name. It makes nextest list the
/// tests of a file that is skipped as a whole, so that these tests are counted.
const CLUSTER_TESTS: &str = "test(~real_cluster) | (binary(~real_cluster) & test(/./))";
/// The cargo targets that contain tests, and the option to run the tests that plain `cargo test` ignores
/// because they need a tool or a server. **Invariant:** no test is ignored for another reason.
const TEST_TARGETS: &str = "--workspace --lib --bins --tests --examples --run-ignored all";

/// Runs the tests, with a server if one of them needs it.
pub fn run_tests(workspace: &Workspace, arguments: &TestArgs) -> Result<StepOutcome> {
    let needy = count_cluster_tests(workspace, arguments)?;
    let mut skipped = SkippedTests::default();
    let report = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    let run = workspace.cargo(&format!("nextest run {TEST_TARGETS}")).env(NOT_TESTED_VARIABLE, report.path());
    if arguments.without_kube {
        let run = run.args(["-E", &format!("not ({CLUSTER_TESTS})"), "--no-tests", "pass"]);
        run.args(&arguments.filters).env(WITHOUT_KUBE_VARIABLE, "1").run()?;
        console::print(format_args!(
            "skipped {needy} tests that need a real Kubernetes API server (--without-kube)"
        ));
        skipped.without_kube = needy;
    } else {
        let cluster = if needy > 0 { Some(start(workspace)?) } else { None };
        set_cluster_variables(run.args(&arguments.filters), cluster.as_ref(), workspace)?.run()?;
    }
    for line in std::fs::read_to_string(report.path())?.lines() {
        console::print(format_args!("not tested: {line}"));
        skipped.not_available += 1;
    }
    Ok(if skipped == SkippedTests::default() { StepOutcome::Passed } else { StepOutcome::LeftOut(skipped) })
}

/// Number of selected tests that need a server. This also builds the tests, so that the server starts only
/// afterwards.
fn count_cluster_tests(workspace: &Workspace, arguments: &TestArgs) -> Result<usize> {
    let list = workspace.cargo(&format!("nextest list --message-format oneline {TEST_TARGETS}"));
    let listed = list.args(["-E", CLUSTER_TESTS]).args(&arguments.filters).run_for_output()?;
    Ok(count_listed(&String::from_utf8_lossy(&listed)))
}

/// Counts the tests in the output of `nextest list`, one per line.
fn count_listed(listed: &str) -> usize {
    listed.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Starts a cluster and prints its URL.
pub fn start(workspace: &Workspace) -> Result<TestCluster> {
    let start = Instant::now();
    let cluster = TestCluster::launch(&setup::kubernetes_binaries(&workspace.cache)?)?;
    let seconds = start.elapsed().as_secs_f64();
    console::print(format_args!("started a Kubernetes API server at {} ({seconds:.1} s)", cluster.api.url));
    Ok(cluster)
}

/// Passes the address of the cluster, and the paths of its binaries, to the tests as environment variables.
pub fn set_cluster_variables(
    line: CommandLine,
    cluster: Option<&TestCluster>,
    workspace: &Workspace,
) -> Result<CommandLine> {
    let Some(cluster) = cluster else { return Ok(line) };
    let binaries = setup::kubernetes_binaries(&workspace.cache)?.variables();
    let variables = binaries.into_iter().chain(cluster.api.variables());
    Ok(variables.fold(line, |line, (name, value)| line.env(name, value)))
}

#[cfg(test)]
mod tests {
    use super::count_listed;

    #[test]
    fn listed_tests_are_counted() {
        assert_eq!(count_listed("a::b one\na::b two\n\n"), 2);
        assert_eq!(count_listed(""), 0);
    }
}
