//! `cargo xtask chaos`: runs the randomized tests with many more cases than the suite.
//!
//! Each scenario is a test of the suite. In the suite, it runs a seeded sample; here, it reads its number of
//! cases from [`COUNT_VARIABLE`].

use std::path::PathBuf;

use crate::cli::ChaosArgs;
use crate::command::CommandLine;
use crate::test::cluster;
use crate::workspace::Workspace;
use crate::{console, setup};
use anyhow::{Result, bail};

/// The variable that overrides the number of cases of a test; `qontract_testkit::chaos_count` reads it.
const COUNT_VARIABLE: &str = "QONTRACT_CHAOS_COUNT";

/// The variable with the binary of the previous version.
const PREVIOUS_VARIABLE: &str = "QONTRACT_PREVIOUS_BINARY";

/// A randomized test that can run with more cases.
#[derive(Debug)]
struct Scenario {
    name: &'static str,
    /// The unit of the count: cases, kills, seconds.
    unit: &'static str,
    /// The default for `--count`.
    default_count: u64,
    package: &'static str,
    /// The name of the test in nextest.
    test: &'static str,
    needs: Needs,
}

/// The requirements of a scenario besides the tools of every test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Python with an S3 server.
    Python,
    /// Python with an S3 server, and the binary of the previous version.
    PreviousVersion,
    /// A Kubernetes API server.
    Cluster,
}

impl Scenario {
    /// A scenario without further requirements.
    const fn local(
        name: &'static str,
        unit: &'static str,
        default_count: u64,
        package: &'static str,
        test: &'static str,
    ) -> Self {
        Self { name, unit, default_count, package, test, needs: Needs::Nothing }
    }
}

const SCENARIOS: [Scenario; 18] = [
    Scenario::local(
        "faults",
        "seeds: clients that time out, lie, lose writes and crash",
        10_000,
        "qontract-runtime",
        "whatever_happens_nothing_is_lost_and_it_converges",
    ),
    Scenario::local(
        "affected",
        "seeds: random changes against the selection of affected shards",
        1_000,
        "qontract",
        "an_unaffected_integration_has_the_same_declared_state",
    ),
    Scenario::local(
        "ownership",
        "seeds: random field owners against the preview of an apply",
        20_000,
        "qontract-objects",
        "fields_shown_as_removed_are_gone_after_the_write",
    ),
    Scenario::local(
        "incremental",
        "histories: random edits against a full build",
        100,
        "qontract-bundle",
        "random_edits_match_a_full_build",
    ),
    Scenario::local(
        "soak",
        "seconds: fifty loops that fail, panic and hang",
        300,
        "qontract-runtime",
        "fifty_loops_continue_whatever_happens_in_them",
    ),
    Scenario::local(
        "waits",
        "seeds: crashes between a step, the wait for its rollout and the step that depends on it",
        1_000,
        "qontract-runtime",
        "a_crash_at_any_point_of_a_wait_loses_nothing_and_records_nothing_false",
    ),
    Scenario::local(
        "leases",
        "histories: paused and killed processes, wrong clocks, lost and late requests",
        100_000,
        "qontract-journal",
        "at_most_one_fence_holds_in_random_histories",
    ),
    Scenario {
        needs: Needs::Python,
        ..Scenario::local(
            "fleet",
            "processes that share a journal in a bucket, and their one removal budget",
            200,
            "qontract",
            "processes_that_share_a_bucket_share_one_budget",
        )
    },
    Scenario {
        needs: Needs::Python,
        ..Scenario::local(
            "fleet-directory",
            "processes that share a journal in a directory, and their one removal budget",
            200,
            "qontract",
            "processes_that_share_a_directory_share_one_budget",
        )
    },
    Scenario::local(
        "fleet-balance",
        "fleets: shard keys on 10, 9 and 10 slots, compared with other methods, and noisy run times",
        1_000,
        "qontract-fleet",
        "simulated_fleets_are_balanced_with_few_moves",
    ),
    Scenario::local(
        "fleet-membership",
        "histories: shard keys and slots that join and leave",
        2_000,
        "qontract-fleet",
        "membership_histories_keep_the_invariants",
    ),
    Scenario::local(
        "fleet-handover",
        "histories: moves of shard keys with crashes, and late, lost and repeated acknowledgements",
        20_000,
        "qontract-fleet",
        "a_handover_never_runs_a_key_twice_and_always_ends",
    ),
    Scenario {
        needs: Needs::PreviousVersion,
        ..Scenario::local(
            "upgrade",
            "processes of two versions that share a journal (`--previous REV`)",
            16,
            "qontract",
            "two_versions_share_a_journal",
        )
    },
    Scenario::local(
        "records",
        "run records in one listing, which does not read the records",
        100_000,
        "qontract",
        "listing_reads_no_records",
    ),
    Scenario::local(
        "throttling",
        "seconds: an API server that refuses every request with 429",
        180,
        "qontract",
        "a_cluster_that_throttles_for_minutes_is_unknown_until_it_recovers",
    ),
    Scenario {
        needs: Needs::Cluster,
        ..Scenario::local(
            "kills",
            "kills during writes to a real API server",
            200,
            "qontract",
            "a_run_that_is_killed_at_any_point_converges",
        )
    },
    Scenario {
        needs: Needs::Cluster,
        ..Scenario::local(
            "fleet-kills",
            "kills of the manager while it writes a fleet to a real API server",
            100,
            "qontract",
            "a_manager_that_is_killed_at_any_point_converges",
        )
    },
    Scenario {
        needs: Needs::Cluster,
        ..Scenario::local(
            "fleet-cutover",
            "living fleets of the Helm chart that a manager, which is killed, replaces on a real API server",
            12,
            "qontract",
            "a_living_fleet_is_replaced_without_overlaps_even_if_the_manager_is_killed",
        )
    },
];

/// Runs the named scenarios, or all scenarios. A failure does not stop the others; failures are reported at
/// the end.
pub fn run(workspace: &Workspace, arguments: &ChaosArgs) -> Result<()> {
    if arguments.list {
        let row =
            |one: &Scenario| vec![one.name.to_owned(), one.default_count.to_string(), one.unit.to_owned()];
        console::print(console::table(&SCENARIOS.iter().map(row).collect::<Vec<_>>()));
        return Ok(());
    }
    let chosen = select_scenarios(&arguments.names)?;
    setup::run(&workspace.cache, &[&setup::NEXTEST])?;
    let mut failed = Vec::new();
    for scenario in chosen {
        let count = arguments.count.unwrap_or(scenario.default_count);
        console::print(format_args!("── {}: {count} {}", scenario.name, scenario.unit));
        if let Err(error) = run_scenario(workspace, scenario, count, arguments.previous.as_deref()) {
            console::print(format_args!("error: {error:#}"));
            failed.push(scenario.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn run_scenario(
    workspace: &Workspace,
    scenario: &Scenario,
    count: u64,
    previous: Option<&str>,
) -> Result<()> {
    let filter = format!("package({}) & test(~{})", scenario.package, scenario.test);
    let run = workspace.cargo("nextest run --profile chaos --no-capture --run-ignored all");
    let run = run.args(["--package", scenario.package, "-E", &filter]).env(COUNT_VARIABLE, count.to_string());
    match scenario.needs {
        Needs::Nothing => run.run(),
        Needs::Python => {
            setup::run(&workspace.cache, &[&setup::PYTHON])?;
            run.run()
        }
        Needs::PreviousVersion => {
            setup::run(&workspace.cache, &[&setup::PYTHON])?;
            let Some(revision) = previous else {
                console::print("note: without `--previous REV`, both versions are the same");
                return run.run();
            };
            let binary = build_previous(workspace, revision)?;
            run.env(PREVIOUS_VARIABLE, binary).run()
        }
        Needs::Cluster => {
            setup::run(&workspace.cache, &[&setup::Kubernetes])?;
            let server = cluster::start(workspace)?;
            cluster::set_cluster_variables(run, Some(&server), workspace)?.run()
        }
    }
}

/// Builds the binary of a revision in a separate work tree.
fn build_previous(workspace: &Workspace, revision: &str) -> Result<PathBuf> {
    let (tree, target) = (workspace.cache.path("previous/tree"), workspace.cache.path("previous/target"));
    let git = |arguments: &[&str]| {
        CommandLine::new("git").folder(&workspace.root).args(arguments.iter().map(ToString::to_string)).run()
    };
    let tree_name = tree.display().to_string();
    if tree.exists() {
        git(&["worktree", "remove", "--force", &tree_name])?;
    }
    git(&["worktree", "add", "--detach", &tree_name, revision])?;
    let build = workspace.cache.cargo("build --package qontract").folder(&tree);
    let built = build.env("CARGO_TARGET_DIR", &target).run();
    git(&["worktree", "remove", "--force", &tree_name])?;
    built?;
    Ok(target.join("debug/qontract"))
}

/// The scenarios with these names; all scenarios if no name is given.
fn select_scenarios(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| match SCENARIOS.iter().find(|one| one.name == name) {
        Some(scenario) => Ok(scenario),
        None => bail!("no scenario `{name}`; `cargo xtask chaos --list` lists them"),
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_chosen_by_name() {
        let check = |names: &[&str], expect: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let found: Vec<&str> = select_scenarios(&names).unwrap().iter().map(|one| one.name).collect();
            assert_eq!(found, expect);
        };
        check(&["soak", "faults"], &["soak", "faults"]);
        check(&[], &SCENARIOS.map(|one| one.name));
        let error = select_scenarios(&["sok".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "no scenario `sok`; `cargo xtask chaos --list` lists them");
    }

    /// Renaming a test must not leave a scenario that runs nothing.
    #[test]
    fn every_scenario_is_a_test_that_reads_the_count() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for scenario in &SCENARIOS {
            let crate_folder = root.join("crates").join(scenario.package.trim_start_matches("qontract-"));
            let files = rust_files(&crate_folder);
            let reads = |text: &String| text.contains("chaos_count(") && text.contains(scenario.test);
            assert!(
                files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).any(|text| reads(&text)),
                "{}: no file of {} has `{}` and calls `chaos_count`",
                scenario.name,
                crate_folder.display(),
                scenario.test
            );
        }
    }

    fn rust_files(folder: &std::path::Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(rust_files(&path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        found
    }
}
