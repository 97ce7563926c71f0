//! Tests with the real promtool, and tests of the limits with misbehaving programs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use qontract_access::ReadPermit;
use qontract_client_promtool::{Promtool, PromtoolError, PromtoolLimits, RuleVerdict, find};
use qontract_testkit::Scratch;
use serde_json::{Map, Value, json};

fn real() -> Promtool {
    let program = std::env::var_os("QONTRACT_PROMTOOL").expect("`cargo xtask test` sets QONTRACT_PROMTOOL");
    Promtool::new(find(Some(Path::new(&program)), None))
}

fn permit() -> ReadPermit {
    ReadPermit::for_data()
}

fn rules(expr: &str) -> Value {
    json!({"groups": [{"name": "g", "rules": [{"alert": "Down", "expr": expr, "labels": {"x": "ü{{ $value }}"}}]}]})
}

fn test(expected: &Value) -> Map<String, Value> {
    let test = json!({
        "rule_files": ["/no/such/file"],
        "tests": [{
            "interval": "1m",
            "input_series": [{"series": "up{job=\"a\"}", "values": "1 1 0 0"}],
            "alert_rule_test": [{"eval_time": "3m", "alertname": "Down", "exp_alerts": expected}],
        }],
    });
    test.as_object().unwrap().clone()
}

#[tokio::test]
#[ignore = "needs QONTRACT_PROMTOOL; run by `cargo xtask test`"]
async fn valid_rules_pass_and_others_fail_with_the_messages_of_promtool() {
    let check = async |rules: Value| real().check_rules(&permit(), &rules).await.unwrap();
    assert_eq!(check(rules("up == 0")).await, RuleVerdict::Passed);
    let words = "group \"g\", rule 1, \"Down\": could not parse expression: 1:6: parse error: unexpected end of input";
    assert_eq!(check(rules("up ==")).await, RuleVerdict::Failed(words.to_owned()));
    let RuleVerdict::Failed(words) = check(json!({"groups": [], "rules": []})).await else {
        panic!("it passed")
    };
    assert!(words.contains("field rules not found"), "{words}");
}

#[tokio::test]
#[ignore = "needs QONTRACT_PROMTOOL; run by `cargo xtask test`"]
async fn a_test_runs_on_the_given_rules_whatever_files_it_names() {
    let check = async |expected: Value| {
        real().test_rules(&permit(), &rules("up == 0"), &test(&expected)).await.unwrap()
    };
    assert_eq!(check(json!([{"exp_labels": {"job": "a", "x": "ü0"}}])).await, RuleVerdict::Passed);
    let RuleVerdict::Failed(words) = check(json!([])).await else { panic!("it passed") };
    assert!(words.starts_with("alertname: Down, time: 3m,\n    exp:[],\n    got:["), "{words}");
}

#[tokio::test]
async fn a_missing_program_is_an_error() {
    let none = Promtool::new(find(Some(Path::new("/no/promtool")), None));
    let error = none.check_rules(&permit(), &rules("up")).await.unwrap_err();
    assert_eq!(error.to_string(), "promtool not found at `/no/promtool`: not an executable file");
    assert!(none.check_available().is_err());
}

/// A script in place of promtool.
struct FakePromtool {
    scratch: Scratch,
    program: PathBuf,
}

impl FakePromtool {
    fn of(script: &str) -> Self {
        let scratch = Scratch::new();
        let source = scratch.write("source", format!("#!/bin/sh\n{script}\n"));
        let program = scratch.path().join("promtool");
        // Installed by another process: a file that a forked child still has open for writing cannot be
        // executed.
        let installed = Command::new("install").args(["-m", "755"]).args([&source, &program]).status();
        assert!(installed.unwrap().success());
        Self { scratch, program }
    }

    async fn check(&self, limits: PromtoolLimits) -> Result<RuleVerdict, PromtoolError> {
        let promtool = Promtool::new(Ok(self.program.clone())).with_limits(limits);
        promtool.check_rules(&permit(), &rules("up")).await
    }

    /// Waits until the process whose pid is in a file is gone.
    async fn is_gone(&self, file: &str) {
        // On a busy machine it may have been killed before it wrote the file.
        let Ok(text) = std::fs::read_to_string(self.scratch.path().join(file)) else { return };
        let Ok(pid) = text.trim().parse::<i32>() else { return };
        // A reparented process is reaped later by init; a zombie counts as gone.
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        while is_there() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_hanging_program_times_out_and_its_children_are_killed() {
    let stand = FakePromtool::of(r#"sleep 600 & echo $! > "$(dirname "$0")/left"; wait"#);
    let short = PromtoolLimits { deadline: Duration::from_secs(1), ..PromtoolLimits::default() };
    let error = stand.check(short).await.unwrap_err();
    assert!(matches!(error, PromtoolError::TimedOut(_)) && error.is_transient(), "{error}");
    stand.is_gone("left").await;
}

#[tokio::test]
async fn the_children_of_an_exited_program_are_killed() {
    let stand = FakePromtool::of(r#"sleep 600 & echo $! > "$(dirname "$0")/left"; exit 0"#);
    assert_eq!(stand.check(PromtoolLimits::default()).await.unwrap(), RuleVerdict::Passed);
    stand.is_gone("left").await;
}

#[tokio::test]
async fn a_program_is_killed_when_the_caller_stops_waiting() {
    let stand = FakePromtool::of(
        r#"echo $$ > "$(dirname "$0")/new"; mv "$(dirname "$0")/new" "$(dirname "$0")/left"; sleep 600"#,
    );
    {
        let mut check = Box::pin(stand.check(PromtoolLimits::default()));
        let left = stand.scratch.path().join("left");
        while !left.exists() {
            let soon = tokio::time::timeout(Duration::from_millis(1), &mut check).await;
            assert!(soon.is_err(), "it ended: {soon:?}");
        }
    }
    stand.is_gone("left").await;
}

#[tokio::test]
async fn a_program_with_endless_output_is_killed() {
    let stand = FakePromtool::of("yes");
    let error = stand.check(PromtoolLimits { output: 1000, ..PromtoolLimits::default() }).await.unwrap_err();
    assert!(matches!(error, PromtoolError::OutputTooLarge(1000)), "{error}");
}

#[tokio::test]
async fn a_failing_program_gives_no_verdict() {
    let error = async |script: &str| {
        FakePromtool::of(script).check(PromtoolLimits::default()).await.unwrap_err().to_string()
    };
    assert_eq!(error("echo oh >&2; exit 2").await, "promtool ended without a verdict (exit code 2): oh");
    assert_eq!(error("kill -9 $$").await, "promtool ended without a verdict (signal 9): ");
}

#[tokio::test]
async fn the_program_is_isolated() {
    let stand = FakePromtool::of(
        r#"test -z "$HOME$CARGO_MANIFEST_DIR" && test "$(stat -c %a .)" = 700 && test -z "$(cat)" && ls | tr '\n' ' ' >&2; exit 1"#,
    );
    let verdict = stand.check(PromtoolLimits::default()).await.unwrap();
    assert_eq!(verdict, RuleVerdict::Failed("rules.yaml stderr stdout".to_owned()));
}
