//! `cargo xtask test`, the entry point for people and CI. It runs all steps, even after a step has failed,
//! and prints a summary.

pub mod cluster;
mod steps;

use crate::cli::{TestArgs, TestStep};
use crate::console;
use crate::setup::{self, Provision};
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use clap::ValueEnum as _;
use std::time::{Duration, Instant};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step passed.
    Passed,
    /// The step passed; some tests were skipped.
    LeftOut(SkippedTests),
    /// The step failed, so the run fails.
    Failed,
    /// The step could not run on this machine, or it only reports. Its output has the details.
    Advisory,
}

/// Numbers of tests that were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedTests {
    /// Number of skipped tests that need a real Kubernetes API server, which was not started as requested.
    pub without_kube: usize,
    /// Number of tests that were skipped, as a whole or in part, because this machine lacks a requirement.
    pub not_available: usize,
}

/// Runs the chosen steps. Fails if a step fails.
pub fn run(workspace: &Workspace, arguments: &TestArgs) -> Result<()> {
    let start = Instant::now();
    let steps = select_steps(arguments);
    setup::run(&workspace.cache, &required_provisions(&steps, arguments))?;
    let setup =
        FinishedStep { name: "setup".to_owned(), outcome: StepOutcome::Passed, time: start.elapsed() };
    let mut done = vec![setup];
    let mut failed = Vec::new();
    for step in steps {
        let start = Instant::now();
        console::print(format_args!("── {}", name(step)));
        let outcome = steps::run(step, workspace, arguments).unwrap_or_else(|error| {
            console::print(format_args!("error: {error:#}"));
            StepOutcome::Failed
        });
        if outcome == StepOutcome::Failed {
            failed.push(step);
        }
        done.push(FinishedStep { name: name(step), outcome, time: start.elapsed() });
    }
    console::print(summary(&done, start.elapsed()));
    if failed.is_empty() {
        return Ok(());
    }
    for step in &failed {
        console::print(format_args!("failed: {}, rerun: {}", name(*step), rerun_command(*step, arguments)));
    }
    bail!("{} steps failed", failed.len());
}

/// The steps to run, each once, in their fixed order.
fn select_steps(arguments: &TestArgs) -> Vec<TestStep> {
    let mut steps = match (arguments.only.as_slice(), arguments.filters.as_slice()) {
        ([], []) => TestStep::value_variants().to_vec(),
        ([], _) => vec![TestStep::Tests],
        (only, _) => only.to_vec(),
    };
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// The tools that these steps need.
fn required_provisions(steps: &[TestStep], arguments: &TestArgs) -> Vec<&'static dyn Provision> {
    let mut needed: Vec<&'static dyn Provision> = Vec::new();
    if steps.contains(&TestStep::Tests) || steps.contains(&TestStep::Doctests) {
        needed.extend([&setup::PYTHON as &dyn Provision, &setup::NEXTEST]);
    }
    if steps.contains(&TestStep::Tests) {
        needed.extend([&setup::Promtool as &dyn Provision, &setup::Prometheus]);
        needed.extend([&setup::Faketime as &dyn Provision, &setup::Chromium, &setup::ImagePackages]);
        needed.extend([&setup::RustyVault as &dyn Provision, &setup::GRAPHQL_JS, &setup::PEER]);
    }
    if steps.contains(&TestStep::Tests) && !arguments.without_kube {
        needed.push(&setup::Kubernetes);
    }
    if steps.contains(&TestStep::Deny) || steps.contains(&TestStep::Advisories) {
        needed.push(&setup::DENY);
    }
    needed
}

fn name(step: TestStep) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn rerun_command(step: TestStep, arguments: &TestArgs) -> String {
    let mut words = vec!["cargo xtask test --only".to_owned(), name(step)];
    if step == TestStep::Tests {
        words.extend(arguments.without_kube.then(|| "--without-kube".to_owned()));
        words.extend(arguments.filters.iter().cloned());
    }
    words.join(" ")
}

/// A step that has run.
struct FinishedStep {
    name: String,
    outcome: StepOutcome,
    time: Duration,
}

fn summary(done: &[FinishedStep], total: Duration) -> String {
    let row = |name: &str, outcome: &str, time: Duration| {
        vec![name.to_owned(), outcome.to_owned(), format!("{:.1} s", time.as_secs_f64())]
    };
    let mut rows: Vec<_> = done
        .iter()
        .map(|FinishedStep { name, outcome, time }| {
            let outcome = match outcome {
                StepOutcome::Passed => "ok".to_owned(),
                StepOutcome::LeftOut(skipped) => skipped_summary(*skipped),
                StepOutcome::Failed => "FAILED".to_owned(),
                StepOutcome::Advisory => "noted".to_owned(),
            };
            row(name, &outcome, *time)
        })
        .collect();
    rows.push(row("total", "", total));
    console::table(&rows)
}

fn skipped_summary(skipped: SkippedTests) -> String {
    let mut text = "ok".to_owned();
    let reasons = [(skipped.without_kube, "--without-kube"), (skipped.not_available, "not available here")];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} skipped ({reason})"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{
        FinishedStep, SkippedTests, StepOutcome, required_provisions, rerun_command, select_steps, summary,
    };
    use crate::cli::{TestArgs, TestStep};
    use crate::setup::FOR_TESTS;
    use std::time::Duration;

    fn check(only: &[TestStep], filters: &[&str], expect: &[TestStep]) {
        let filters = filters.iter().map(ToString::to_string).collect();
        assert_eq!(select_steps(&TestArgs { only: only.to_vec(), filters, ..TestArgs::default() }), expect);
    }

    #[test]
    fn the_chosen_steps_run_once_and_in_order() {
        check(&[TestStep::Tests, TestStep::Fmt, TestStep::Tests], &[], &[TestStep::Fmt, TestStep::Tests]);
    }

    #[test]
    fn a_filter_alone_runs_only_the_tests() {
        check(&[], &["yaml"], &[TestStep::Tests]);
        check(&[TestStep::Doctests], &["yaml"], &[TestStep::Doctests]);
    }

    #[test]
    fn all_steps_need_all_tools_of_setup() {
        let arguments = TestArgs::default();
        assert_eq!(names(&required_provisions(&select_steps(&arguments), &arguments)), names(&FOR_TESTS));
        assert!(required_provisions(&[TestStep::Fmt, TestStep::Tidy], &arguments).is_empty());
    }

    #[test]
    fn a_skipped_cluster_is_not_set_up() {
        let arguments = TestArgs { without_kube: true, ..TestArgs::default() };
        let all = required_provisions(&select_steps(&arguments), &arguments);
        assert!(names(&all).len() + 1 == FOR_TESTS.len() && !names(&all).contains(&"kubernetes"));
    }

    fn names(list: &[&dyn super::Provision]) -> Vec<&'static str> {
        list.iter().map(|one| one.name()).collect()
    }

    #[test]
    fn a_failed_step_has_a_rerun_command() {
        let mut arguments = TestArgs { filters: vec!["yaml".to_owned()], ..TestArgs::default() };
        assert_eq!(rerun_command(TestStep::Tests, &arguments), "cargo xtask test --only tests yaml");
        assert_eq!(rerun_command(TestStep::Clippy, &arguments), "cargo xtask test --only clippy");
        arguments.without_kube = true;
        assert_eq!(
            rerun_command(TestStep::Tests, &arguments),
            "cargo xtask test --only tests --without-kube yaml"
        );
        assert_eq!(rerun_command(TestStep::Clippy, &arguments), "cargo xtask test --only clippy");
    }

    #[test]
    fn the_summary_shows_how_many_tests_were_skipped() {
        let check = |without_kube, not_available, expect: &str| {
            let outcome = StepOutcome::LeftOut(SkippedTests { without_kube, not_available });
            let step = FinishedStep { name: "tests".to_owned(), outcome, time: Duration::ZERO };
            let text = summary(&[step], Duration::ZERO);
            assert!(text.contains(expect), "{text}");
        };
        check(6, 0, "ok, 6 skipped (--without-kube)");
        check(0, 2, "ok, 2 skipped (not available here)");
        check(6, 2, "ok, 6 skipped (--without-kube), 2 skipped (not available here)");
    }
}
