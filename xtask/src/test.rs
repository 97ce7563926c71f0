//! The one entry point for people and CI: runs the steps, goes on after a failed one, and tells at the end how each of
//! them went.

mod steps;

use crate::cli::{Step, TestArgs};
use crate::house::House;
use crate::setup::{self, Provision};
use crate::talk;
use anyhow::{Result, bail};
use clap::ValueEnum as _;
use std::time::{Duration, Instant};

/// How a step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to complain about.
    Passed,
    /// It makes the run red.
    Failed,
    /// It could not be done here, or only reports; the output above says which.
    Noted,
}

/// Runs the chosen steps; fails if one of them does.
pub fn run(house: &House, arguments: &TestArgs) -> Result<()> {
    let start = Instant::now();
    let steps = chosen(arguments);
    setup::run(&house.cache, &needed(&steps))?;
    let mut done = vec![("setup".to_owned(), Outcome::Passed, start.elapsed())];
    let mut failed = Vec::new();
    for step in steps {
        let start = Instant::now();
        talk::say(format_args!("── {}", name(step)));
        let outcome = steps::run(step, house, &arguments.filters).unwrap_or_else(|error| {
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
        talk::say(format_args!("failed: {}, rerun: {}", name(*step), rerun(*step, &arguments.filters)));
    }
    bail!("{} of the steps failed", failed.len());
}

/// The steps to run, each once, in their own order.
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

/// What these steps need from setup.
fn needed(steps: &[Step]) -> Vec<&'static dyn Provision> {
    let mut needed: Vec<&'static dyn Provision> = Vec::new();
    if steps.contains(&Step::Tests) || steps.contains(&Step::Doctests) {
        needed.extend([&setup::Python as &dyn Provision, &setup::NEXTEST]);
    }
    if steps.contains(&Step::Tests) {
        needed.push(&setup::RustyVault);
    }
    if steps.contains(&Step::Deny) || steps.contains(&Step::Advisories) {
        needed.push(&setup::DENY);
    }
    needed
}

fn name(step: Step) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn rerun(step: Step, filters: &[String]) -> String {
    let filters = if step == Step::Tests { filters } else { &[] };
    let words = ["cargo xtask test --only", &name(step)];
    words.into_iter().chain(filters.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

fn summary(done: &[(String, Outcome, Duration)], total: Duration) -> String {
    let row = |name: &str, outcome: &str, time: Duration| {
        vec![name.to_owned(), outcome.to_owned(), format!("{:.1} s", time.as_secs_f64())]
    };
    let mut rows: Vec<_> = done
        .iter()
        .map(|(name, outcome, time)| {
            let outcome = match outcome {
                Outcome::Passed => "ok",
                Outcome::Failed => "FAILED",
                Outcome::Noted => "noted",
            };
            row(name, outcome, *time)
        })
        .collect();
    rows.push(row("total", "", total));
    talk::table(&rows)
}

#[cfg(test)]
mod tests {
    use super::{chosen, needed, rerun};
    use crate::cli::{Step, TestArgs};
    use crate::setup::FOR_TESTS;

    fn check(only: &[Step], filters: &[&str], expect: &[Step]) {
        let filters = filters.iter().map(ToString::to_string).collect();
        assert_eq!(chosen(&TestArgs { only: only.to_vec(), filters }), expect);
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
    fn all_steps_need_all_that_setup_provides() {
        let all = needed(&chosen(&TestArgs::default()));
        let names = |list: &[&dyn super::Provision]| list.iter().map(|one| one.name()).collect::<Vec<_>>();
        assert_eq!(names(&all), names(&FOR_TESTS));
        assert!(needed(&[Step::Fmt, Step::Tidy]).is_empty());
    }

    #[test]
    fn a_failed_step_tells_how_to_run_it_again() {
        let filters = ["yaml".to_owned()];
        assert_eq!(rerun(Step::Tests, &filters), "cargo xtask test --only tests yaml");
        assert_eq!(rerun(Step::Clippy, &filters), "cargo xtask test --only clippy");
    }
}
