//! `cargo xtask test`, the entry point for people and CI: runs all steps, also after a failed one, and prints
//! a summary.

pub mod cluster;
mod steps;

use crate::cli::{Step, TestArgs};
use crate::house::House;
use crate::setup::{self, Provision};
use crate::talk;
use anyhow::{Result, bail};
use clap::ValueEnum as _;
use std::time::{Duration, Instant};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It passed; this many tests were skipped, as requested.
    LeftOut(usize),
    /// It failed, and so does the run.
    Failed,
    /// It could not run on this machine, or only reports; its output says which.
    Noted,
}

/// Runs the chosen steps; fails if one of them does.
pub fn run(workspace: &House, arguments: &TestArgs) -> Result<()> {
    let start = Instant::now();
    let steps = chosen(arguments);
    setup::run(&workspace.cache, &needed(&steps, arguments))?;
    let mut done = vec![("setup".to_owned(), Outcome::Passed, start.elapsed())];
    let mut failed = Vec::new();
    for step in steps {
        let start = Instant::now();
        talk::say(format_args!("── {}", name(step)));
        let outcome = steps::run(step, workspace, arguments).unwrap_or_else(|error| {
            talk::say(format_args!("error: {error:#}"));
            Outcome::Failed
        });
        if outcome == Outcome::Failed {
            failed.push(step);
        }
        done.push((name(step), outcome, start.elapsed()));
    }
    talk::say(summary(&done, start.elapsed()));
    if failed.is_empty() {
        return Ok(());
    }
    for step in &failed {
        talk::say(format_args!("failed: {}, rerun: {}", name(*step), rerun(*step, arguments)));
    }
    bail!("{} steps failed", failed.len());
}

/// The steps to run, each once, in their fixed order.
fn chosen(arguments: &TestArgs) -> Vec<Step> {
    let mut steps = match (arguments.only.as_slice(), arguments.filters.as_slice()) {
        ([], []) => Step::value_variants().to_vec(),
        ([], _) => vec![Step::Tests],
        (only, _) => only.to_vec(),
    };
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// The tools that these steps need.
fn needed(steps: &[Step], arguments: &TestArgs) -> Vec<&'static dyn Provision> {
    let mut needed: Vec<&'static dyn Provision> = Vec::new();
    if steps.contains(&Step::Tests) || steps.contains(&Step::Doctests) {
        needed.extend([&setup::Python as &dyn Provision, &setup::NEXTEST]);
    }
    if steps.contains(&Step::Tests) {
        needed.extend([&setup::Promtool as &dyn Provision, &setup::Chromium]);
        needed.extend([&setup::RustyVault as &dyn Provision, &setup::GRAPHQL_JS]);
    }
    if steps.contains(&Step::Tests) && !arguments.without_kube {
        needed.push(&setup::Kubernetes);
    }
    if steps.contains(&Step::Deny) || steps.contains(&Step::Advisories) {
        needed.push(&setup::DENY);
    }
    needed
}

fn name(step: Step) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn rerun(step: Step, arguments: &TestArgs) -> String {
    let mut words = vec!["cargo xtask test --only".to_owned(), name(step)];
    if step == Step::Tests {
        words.extend(arguments.without_kube.then(|| "--without-kube".to_owned()));
        words.extend(arguments.filters.iter().cloned());
    }
    words.join(" ")
}

fn summary(done: &[(String, Outcome, Duration)], total: Duration) -> String {
    let row = |name: &str, outcome: &str, time: Duration| {
        vec![name.to_owned(), outcome.to_owned(), format!("{:.1} s", time.as_secs_f64())]
    };
    let mut rows: Vec<_> = done
        .iter()
        .map(|(name, outcome, time)| {
            let outcome = match outcome {
                Outcome::Passed => "ok".to_owned(),
                Outcome::LeftOut(count) => format!("ok, {count} skipped (--without-kube)"),
                Outcome::Failed => "FAILED".to_owned(),
                Outcome::Noted => "noted".to_owned(),
            };
            row(name, &outcome, *time)
        })
        .collect();
    rows.push(row("total", "", total));
    talk::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::{Outcome, chosen, needed, rerun, summary};
    use crate::cli::{Step, TestArgs};
    use crate::setup::FOR_TESTS;
    use std::time::Duration;

    fn check(only: &[Step], filters: &[&str], expect: &[Step]) {
        let filters = filters.iter().map(ToString::to_string).collect();
        assert_eq!(chosen(&TestArgs { only: only.to_vec(), filters, ..TestArgs::default() }), expect);
    }

    #[test]
    fn the_chosen_steps_run_once_and_in_order() {
        check(&[Step::Tests, Step::Fmt, Step::Tests], &[], &[Step::Fmt, Step::Tests]);
    }

    #[test]
    fn a_filter_alone_runs_only_the_tests() {
        check(&[], &["yaml"], &[Step::Tests]);
        check(&[Step::Doctests], &["yaml"], &[Step::Doctests]);
    }

    #[test]
    fn all_steps_need_all_tools_of_setup() {
        let arguments = TestArgs::default();
        assert_eq!(names(&needed(&chosen(&arguments), &arguments)), names(&FOR_TESTS));
        assert!(needed(&[Step::Fmt, Step::Tidy], &arguments).is_empty());
    }

    #[test]
    fn a_skipped_cluster_is_not_set_up() {
        let arguments = TestArgs { without_kube: true, ..TestArgs::default() };
        let all = needed(&chosen(&arguments), &arguments);
        assert!(names(&all).len() + 1 == FOR_TESTS.len() && !names(&all).contains(&"kubernetes"));
    }

    fn names(list: &[&dyn super::Provision]) -> Vec<&'static str> {
        list.iter().map(|one| one.name()).collect()
    }

    #[test]
    fn a_failed_step_has_a_rerun_command() {
        let mut arguments = TestArgs { filters: vec!["yaml".to_owned()], ..TestArgs::default() };
        assert_eq!(rerun(Step::Tests, &arguments), "cargo xtask test --only tests yaml");
        assert_eq!(rerun(Step::Clippy, &arguments), "cargo xtask test --only clippy");
        arguments.without_kube = true;
        assert_eq!(rerun(Step::Tests, &arguments), "cargo xtask test --only tests --without-kube yaml");
        assert_eq!(rerun(Step::Clippy, &arguments), "cargo xtask test --only clippy");
    }

    #[test]
    fn the_summary_shows_how_many_tests_were_skipped() {
        let done = [("tests".to_owned(), Outcome::LeftOut(6), Duration::ZERO)];
        let text = summary(&done, Duration::ZERO);
        assert!(text.contains("ok, 6 skipped (--without-kube)"), "{text}");
    }
}
