//! Tests of `up`: once, and live on a terminal.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::command::qontract;
use crate::support::terminal::Terminal;
use qontract_testkit::{Scratch, example};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const FILE: &str = "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml";
/// The row of an integration that has run successfully.
const NAMESPACES_OK: &str = "ok        \x1b[0mopenshift-namespaces";

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch
}

fn once(folder: &Path, more: &[&str]) -> (i32, String) {
    let words = ["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"];
    let output = qontract(folder, &[&words, more].concat());
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn once_applies_the_data_and_then_has_nothing_to_do() {
    let scratch = stage();
    let (code, printed) = once(scratch.path(), &["--dry-run"]);
    assert!(code == 0 && printed.contains("\n  + create Namespace `catalog-stage`"), "{printed}");
    assert!(!scratch.path().join("sandbox").exists(), "a dry run makes nothing");
    let (code, printed) = once(scratch.path(), &[]);
    assert!(code == 0 && printed.contains("+ create Namespace `catalog-stage`"), "{printed}");
    for made in
        ["~ label Namespace", "+ create ResourceQuota", "+ create LimitRange", "+ create NetworkPolicy"]
    {
        assert!(printed.contains(made), "{made}: {printed}");
    }
    for made in ["+ create RoleBinding", "+ create ClusterRoleBinding"] {
        assert!(printed.contains(made), "{made}: {printed}");
    }
    assert!(scratch.path().join(FILE).exists());
    let (code, printed) = once(scratch.path(), &[]);
    assert!(code == 0 && !printed.contains("create"), "{printed}");
    assert!(printed.contains("ok changes=0 held=0 integration=openshift-namespaces"), "{printed}");
    assert!(printed.contains("integration=query-validator"), "{printed}");
}

#[test]
fn an_integration_with_missing_tools_is_skipped_and_logged_once() {
    let scratch = stage();
    scratch.write("config.toml", "[promtool]\npath = \"/no/promtool\"\n");
    let (code, printed) = once(scratch.path(), &["--config", "config.toml"]);
    let line = "integration skipped: promtool not found at `/no/promtool`: not an executable file; set `path` of `[promtool]` in the configuration; its changes are unknown";
    assert!(code == 0 && printed.matches(line).count() == 1, "{printed}");
    assert!(!printed.contains("ok changes=0 held=0 integration=prometheus-rules-tester"), "{printed}");
    assert!(printed.contains("ok changes=0 held=0 integration=resource-template-tester"), "{printed}");
}

#[test]
#[ignore = "needs QONTRACT_PROMTOOL; run by `cargo xtask test`"]
fn an_integration_whose_tools_are_installed_runs() {
    let scratch = stage();
    let promtool = std::env::var("QONTRACT_PROMTOOL").expect("`cargo xtask test` sets QONTRACT_PROMTOOL");
    scratch.write("config.toml", format!("[promtool]\npath = {promtool:?}\n"));
    let (code, printed) = once(scratch.path(), &["--config", "config.toml"]);
    assert!(code == 0 && !printed.contains("skipped: "), "{printed}");
    assert!(printed.contains("ok changes=0 held=0 integration=prometheus-rules-tester"), "{printed}");
}

#[test]
fn once_with_bad_data_ends_with_its_findings() {
    let scratch = stage();
    scratch.write("repo/data/bad.yml", "$schema: /openshift/namespace-1.yml\nname: 7\n");
    let words = ["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"];
    let output = qontract(scratch.path(), &words);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && printed.contains("data/bad.yml"), "{printed}");
    scratch.write("repo/data/bad.yml", "name: {\n");
    let printed = String::from_utf8(qontract(scratch.path(), &words).stderr).unwrap();
    assert!(
        printed.contains("error[Q") && printed.contains("data/bad.yml:"),
        "an unreadable file is reported with its line: {printed}"
    );
    assert!(!scratch.path().join("sandbox").exists());
}

#[test]
fn on_a_terminal_a_saved_file_takes_effect_and_a_bad_one_does_not() {
    let scratch = stage();
    assert_eq!(once(scratch.path(), &[]).0, 0);
    let mut terminal =
        Terminal::run(scratch.path(), &["up", "repo", "--sandbox", "sandbox", "--runs", "runs"]);
    terminal.until(NAMESPACES_OK);
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, text.replace("tier: edge", "tier: core"));
    terminal.until("~ label Namespace `catalog-stage`");
    assert!(scratch.read(FILE).contains("tier: core"));
    scratch.write(NAMESPACE, "name: [");
    terminal.until("catalog-stage.yml:1");
    terminal.until("; still reconciling bundle ");
    assert!(scratch.read(FILE).contains("tier: core"));
    scratch.write(NAMESPACE, text);
    terminal.until("~ label Namespace `catalog-stage`");
    assert!(scratch.read(FILE).contains("tier: edge"));
    assert_eq!(terminal.interrupt(), Some(0), "Ctrl-C ends it cleanly");
}

#[test]
fn a_sandbox_is_used_by_one_process_at_a_time() {
    let scratch = stage();
    assert_eq!(once(scratch.path(), &[]).0, 0);
    assert_eq!(once(scratch.path(), &[]).0, 0);
    let mut terminal =
        Terminal::run(scratch.path(), &["up", "repo", "--sandbox", "sandbox", "--runs", "runs"]);
    terminal.until(NAMESPACES_OK);
    let output =
        qontract(scratch.path(), &["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && printed.contains("another `qontract up` uses"), "{printed}");
    assert_eq!(once(scratch.path(), &["--dry-run"]).0, 0, "looking is free");
    assert_eq!(terminal.interrupt(), Some(0));
}

#[test]
fn data_without_integrations_is_a_warning_with_a_hint() {
    let scratch = stage();
    for folder in ["integrations", "integration-shards"] {
        std::fs::remove_dir_all(scratch.path().join("repo/data").join(folder)).unwrap();
    }
    let (code, printed) = once(scratch.path(), &[]);
    assert!(code == 0 && printed.contains("no integration that the data defines is available"), "{printed}");
}

/// A running `up`: the process, its stdout, and its first line.
fn live(folder: &Path) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_qontract"))
        .current_dir(folder)
        .args(["up", "repo", "--sandbox", "sandbox", "--runs", "runs", "--log-format", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    (child, lines, line)
}

#[test]
fn up_exits_when_its_output_is_closed() {
    let scratch = stage();
    let (mut child, lines, line) = live(scratch.path());
    let printed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(printed["message"], "up: real run of repo on sandbox");
    drop(lines);
    // This is written after the pipe was closed.
    scratch.write(NAMESPACE, scratch.read(NAMESPACE).replace("tier: edge", "tier: core"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_loop_has_no_huge_pages() {
    let scratch = stage();
    let (mut child, _lines, _line) = live(scratch.path());
    let pages = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", child.id())).unwrap();
    let huge = pages.lines().find(|line| line.starts_with("AnonHugePages:"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(huge.and_then(|line| line.split_whitespace().nth(1)), Some("0"), "{pages}");
}
