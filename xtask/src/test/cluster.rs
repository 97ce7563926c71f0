//! The tests, with one real Kubernetes API server for all those that need one.
//!
//! Which they are is told by their names: those of the test, its module or its file have the word `real_cluster`.

use super::Outcome;
use crate::cli::TestArgs;
use crate::command::CommandLine;
use crate::house::House;
use crate::{setup, talk};
use anyhow::Result;
use qontract_testkit::cluster::{TestCluster, WITHOUT};
use std::time::Instant;

/// What nextest calls the tests that need a server. The pattern, which every name fits, makes it look into a file that
/// is left out, and count.
const NEEDY: &str = "test(~real_cluster) | (binary(~real_cluster) & test(/./))";
/// Everything that is a test.
const SCOPE: &str = "--workspace --lib --bins --tests --examples";

/// Runs the tests; the server runs meanwhile, if one of them needs it.
pub fn run_tests(house: &House, arguments: &TestArgs) -> Result<Outcome> {
    let needy = count_needy(house, arguments)?;
    let run = house.cargo(&format!("nextest run {SCOPE}"));
    if arguments.without_kube {
        let run = run.args(["-E", &format!("not ({NEEDY})"), "--no-tests", "pass"]);
        run.args(&arguments.filters).env(WITHOUT, "1").run()?;
        talk::say(format_args!("left out by choice: {needy} tests that need a real Kubernetes API server"));
        return Ok(Outcome::LeftOut(needy));
    }
    let cluster = if needy > 0 { Some(start(house)?) } else { None };
    tell(run.args(&arguments.filters), cluster.as_ref(), house)?.run()?;
    Ok(Outcome::Passed)
}

/// How many of the chosen tests need a server. Builds them, too, so that the server does not wait for that.
fn count_needy(house: &House, arguments: &TestArgs) -> Result<usize> {
    let list = house.cargo(&format!("nextest list --message-format oneline {SCOPE}"));
    let listed = list.args(["-E", NEEDY]).args(&arguments.filters).run_for_output()?;
    Ok(count(&String::from_utf8_lossy(&listed)))
}

/// One test in a line.
fn count(listed: &str) -> usize {
    listed.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Starts a server.
pub fn start(house: &House) -> Result<TestCluster> {
    let start = Instant::now();
    let cluster = TestCluster::launch(&setup::kubernetes_binaries(&house.cache)?)?;
    let seconds = start.elapsed().as_secs_f64();
    talk::say(format_args!("a Kubernetes API server runs at {} ({seconds:.1} s)", cluster.api.url));
    Ok(cluster)
}

/// Tells the tests where the server is, and where the programs for one of their own are.
pub fn tell(line: CommandLine, cluster: Option<&TestCluster>, house: &House) -> Result<CommandLine> {
    let Some(cluster) = cluster else { return Ok(line) };
    let binaries = setup::kubernetes_binaries(&house.cache)?.variables();
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
