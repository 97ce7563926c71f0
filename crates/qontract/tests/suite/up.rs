//! `up`, as a user sees it: once, and live on a terminal.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::command::qontract;
use crate::support::terminal::Terminal;
use qontract_testkit::{Scratch, example};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const FILE: &str = "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml";
/// The row of an integration that is done.
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
fn once_makes_the_world_what_the_data_says_and_then_has_nothing_to_do() {
    let scratch = stage();
    let (code, told) = once(scratch.path(), &["--dry-run"]);
    assert!(code == 0 && told.contains("\n  + create Namespace `catalog-stage`"), "{told}");
    assert!(!scratch.path().join("sandbox").exists(), "a dry run makes nothing");
    let (code, told) = once(scratch.path(), &[]);
    assert!(code == 0 && told.contains("+ create Namespace `catalog-stage`"), "{told}");
    for made in
        ["~ label Namespace", "+ create ResourceQuota", "+ create LimitRange", "+ create NetworkPolicy"]
    {
        assert!(told.contains(made), "{made}: {told}");
    }
    for made in ["+ create RoleBinding", "+ create ClusterRoleBinding"] {
        assert!(told.contains(made), "{made}: {told}");
    }
    assert!(scratch.path().join(FILE).exists());
    let (code, told) = once(scratch.path(), &[]);
    assert!(code == 0 && !told.contains("create"), "{told}");
    assert!(told.contains("ok changes=0 held=0 integration=openshift-namespaces"), "{told}");
    assert!(told.contains("integration=query-validator"), "{told}");
}

#[test]
fn what_misses_something_on_the_machine_is_skipped_and_logged_once() {
    let scratch = stage();
    scratch.write("config.toml", "[promtool]\npath = \"/no/promtool\"\n");
    let (code, told) = once(scratch.path(), &["--config", "config.toml"]);
    let line = "skipped: promtool not found at `/no/promtool`: not an executable file; set `path` of `[promtool]` in the configuration; not checked";
    assert!(code == 0 && told.matches(line).count() == 1, "{told}");
    assert!(!told.contains("ok changes=0 held=0 integration=prometheus-rules-tester"), "{told}");
    assert!(told.contains("ok changes=0 held=0 integration=resource-template-tester"), "{told}");
    let promtool = std::env::var("QONTRACT_PROMTOOL").expect("`cargo xtask test` sets QONTRACT_PROMTOOL");
    scratch.write("config.toml", format!("[promtool]\npath = {promtool:?}\n"));
    let (code, told) = once(scratch.path(), &["--config", "config.toml"]);
    assert!(code == 0 && !told.contains("skipped: "), "{told}");
    assert!(told.contains("ok changes=0 held=0 integration=prometheus-rules-tester"), "{told}");
}

#[test]
fn once_with_bad_data_ends_with_its_findings() {
    let scratch = stage();
    scratch.write("repo/data/bad.yml", "$schema: /openshift/namespace-1.yml\nname: 7\n");
    let words = ["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"];
    let output = qontract(scratch.path(), &words);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("data/bad.yml"), "{told}");
    scratch.write("repo/data/bad.yml", "name: {\n");
    let told = String::from_utf8(qontract(scratch.path(), &words).stderr).unwrap();
    assert!(
        told.contains("error[Q") && told.contains("data/bad.yml:"),
        "what cannot be read is told with its line: {told}"
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
fn a_sandbox_is_worked_on_by_one_at_a_time() {
    let scratch = stage();
    assert_eq!(once(scratch.path(), &[]).0, 0);
    assert_eq!(once(scratch.path(), &[]).0, 0);
    let mut terminal =
        Terminal::run(scratch.path(), &["up", "repo", "--sandbox", "sandbox", "--runs", "runs"]);
    terminal.until(NAMESPACES_OK);
    let output =
        qontract(scratch.path(), &["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("another `qontract up` works on"), "{told}");
    assert_eq!(once(scratch.path(), &["--dry-run"]).0, 0, "looking is free");
    assert_eq!(terminal.interrupt(), Some(0));
}

#[test]
fn data_without_integrations_is_told_what_is_missing() {
    let scratch = stage();
    std::fs::remove_dir_all(scratch.path().join("repo/data/integrations")).unwrap();
    let (code, told) = once(scratch.path(), &[]);
    assert!(
        code == 0 && told.contains("none of the integrations that the data defines is available"),
        "{told}"
    );
}

/// `up` under way: the process, what it says, and its first line.
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
fn when_nobody_reads_any_more_it_ends() {
    let scratch = stage();
    let (mut child, lines, line) = live(scratch.path());
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["message"], "up: real run of repo on sandbox");
    drop(lines);
    // Whatever was written before nobody read any more, this is written after.
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
