//! Runs the tests, with one real Kubernetes API server for all tests that need one.
//!
//! A test needs the server if its name, its module or its file contains `real_cluster`.

use super::Outcome;
use crate::cli::TestArgs;
use crate::command::CommandLine;
use crate::house::House;
use crate::{setup, talk};
use anyhow::Result;
use qontract_testkit::cluster::{TestCluster, WITHOUT};
use std::time::Instant;

/// The nextest filter for tests that need a server. `test(/./)` matches every name; it makes nextest list the
/// tests of a file that is skipped as a whole, so that they are counted.
const NEEDY: &str = "test(~real_cluster) | (binary(~real_cluster) & test(/./))";
/// The cargo targets that contain tests.
const SCOPE: &str = "--workspace --lib --bins --tests --examples";

/// Runs the tests, with a server if one of them needs it.
pub fn run_tests(workspace: &House, arguments: &TestArgs) -> Result<Outcome> {
    let needy = count_needy(workspace, arguments)?;
    let run = workspace.cargo(&format!("nextest run {SCOPE}"));
    if arguments.without_kube {
        let run = run.args(["-E", &format!("not ({NEEDY})"), "--no-tests", "pass"]);
        run.args(&arguments.filters).env(WITHOUT, "1").run()?;
        talk::say(format_args!(
            "skipped {needy} tests that need a real Kubernetes API server (--without-kube)"
        ));
        return Ok(Outcome::LeftOut(needy));
    }
    let cluster = if needy > 0 { Some(start(workspace)?) } else { None };
    tell(run.args(&arguments.filters), cluster.as_ref(), workspace)?.run()?;
    Ok(Outcome::Passed)
}

/// Number of selected tests that need a server. This also builds the tests, so that the server starts only
/// afterwards.
fn count_needy(workspace: &House, arguments: &TestArgs) -> Result<usize> {
    let list = workspace.cargo(&format!("nextest list --message-format oneline {SCOPE}"));
    let listed = list.args(["-E", NEEDY]).args(&arguments.filters).run_for_output()?;
    Ok(count(&String::from_utf8_lossy(&listed)))
}

/// Counts the tests in the output of `nextest list`, one per line.
fn count(listed: &str) -> usize {
    listed.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Starts a cluster and prints its URL.
pub fn start(workspace: &House) -> Result<TestCluster> {
    let start = Instant::now();
    let cluster = TestCluster::launch(&setup::kubernetes_binaries(&workspace.cache)?)?;
    let seconds = start.elapsed().as_secs_f64();
    talk::say(format_args!("started a Kubernetes API server at {} ({seconds:.1} s)", cluster.api.url));
    Ok(cluster)
}

/// Passes the address of the cluster, and the paths of its binaries, to the tests as environment variables.
pub fn tell(line: CommandLine, cluster: Option<&TestCluster>, workspace: &House) -> Result<CommandLine> {
    let Some(cluster) = cluster else { return Ok(line) };
    let binaries = setup::kubernetes_binaries(&workspace.cache)?.variables();
    let variables = binaries.into_iter().chain(cluster.api.variables());
    Ok(variables.fold(line, |line, (name, value)| line.env(name, value)))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn listed_tests_are_counted() {
        assert_eq!(count("a::b one\na::b two\n\n"), 2);
        assert_eq!(count(""), 0);
    }
}
