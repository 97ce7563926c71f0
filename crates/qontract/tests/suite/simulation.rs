//! Tests of the variables for tests in a sandbox: the clock of the runs, and a crash after some writes.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

use crate::support::operator::{operator_fixture, stderr};
use qontract_testkit::Scratch;

fn namespaces(scratch: &Scratch, variables: &[(&str, &str)], more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).env("NO_COLOR", "1");
    command.args(["reconcile", "openshift-namespaces", "--data", "repo", "--runs", "runs"]).args(more);
    command.envs(variables.iter().copied()).output().unwrap()
}

const SANDBOX: [&str; 2] = ["--sandbox", "sandbox"];

#[test]
fn a_simulation_needs_a_sandbox() {
    let scratch = operator_fixture();
    scratch.write("config.toml", "[kubernetes]\n");
    for (name, value) in
        [("QONTRACT_SANDBOX_CLOCK", "2026-01-01T00:00:00Z"), ("QONTRACT_SANDBOX_KILL_AFTER", "1")]
    {
        for mode in [&[][..], &["--dry-run"]] {
            let output =
                namespaces(&scratch, &[(name, value)], &[&["--config", "config.toml"], mode].concat());
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            let expect = format!("`{name}` is for tests in a sandbox");
            assert!(stderr(&output).contains(&expect), "{}", stderr(&output));
        }
    }
    let output = namespaces(&scratch, &[("QONTRACT_SANDBOX_CLOCK", "noon")], &SANDBOX);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("`QONTRACT_SANDBOX_CLOCK` must be a time"), "{}", stderr(&output));
}

#[test]
fn a_run_has_the_clock_of_its_sandbox() {
    let scratch = operator_fixture();
    let clock = [("QONTRACT_SANDBOX_CLOCK", "2026-02-03T04:05:06Z")];
    let output = namespaces(&scratch, &clock, &[&SANDBOX[..], &["-o", "json"]].concat());
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        record["run"].as_str().unwrap().starts_with("20260203T040506Z-openshift-namespaces-"),
        "{record}"
    );
    assert_eq!(record["now"], "2026-02-03T04:05:06Z");
}

#[test]
fn a_killed_run_is_continued_by_the_next_one() {
    let scratch = operator_fixture();
    let output = namespaces(&scratch, &[("QONTRACT_SANDBOX_KILL_AFTER", "2")], &SANDBOX);
    assert!(output.status.signal().is_some(), "{output:?}");
    let written = || {
        let clusters = std::fs::read_dir(scratch.path().join("sandbox/clusters")).unwrap();
        let folders = clusters.map(|cluster| cluster.unwrap().path().join("_cluster/Namespace"));
        folders.map(|folder| std::fs::read_dir(folder).map_or(0, Iterator::count)).sum::<usize>()
    };
    let after_kill = written();
    assert!(after_kill >= 2);
    assert_eq!(namespaces(&scratch, &[], &SANDBOX).status.code(), Some(0));
    assert!(written() > after_kill, "the example has more namespaces");
    let output = namespaces(&scratch, &[], &[&SANDBOX[..], &["--dry-run"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(0) && !text.contains("create"), "{text}");
}
