//! Tests of loops with invalid data, and of the provenance in plans, records and approvals.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::command::qontract;
use crate::support::running::{Running, get};
use crate::support::terminal::Terminal;
use qontract_testkit::{Scratch, eventually, example};

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const OTHER: &str = "repo/data/services/checkout/namespaces/checkout-stage.yml";

fn stage() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    scratch.init_journal("runs");
    scratch
}

fn command(scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    let folder = scratch.path();
    command.current_dir(folder).args(words).env("NO_COLOR", "1").env("HOME", folder);
    command.env("QONTRACT_RUNS", "runs").env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command
}

/// The address in the line that names it.
fn address(line: &str) -> String {
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split([':', '/', ' ']).take(2).collect::<Vec<_>>().join(":")
}

/// The value of a metric without labels.
fn metric(address: &str, name: &str) -> i64 {
    let text = get(address, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// A loop over the data repo with a health listener. Its next run is far in the future.
fn start_loop(scratch: &Scratch) -> Running {
    let every = ["--every", "1h", "--listen", "127.0.0.1:0"];
    let words = ["reconcile", "openshift-namespaces", "--data", "repo", "--sandbox", "sandbox"];
    Running::of(&mut command(scratch, &[&words[..], &every].concat()))
}

#[test]
fn a_loop_with_invalid_data_shows_it_in_log_metrics_and_health() {
    let scratch = stage();
    let mut running = start_loop(&scratch);
    let address = address(&running.until("http://"));
    running.until("run ended: ok");
    assert_eq!(metric(&address, "qontract_reconcile_data_invalid"), 0);
    assert_eq!(metric(&address, "qontract_reconcile_data_invalid_since_timestamp_seconds"), 0);
    assert!(get(&address, "/readyz").ends_with("\r\n\r\nok\n"));
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, "name: [");
    let line = running.until("data is invalid: ");
    assert!(
        line.contains(" ERROR ") && line.contains("data/services/catalog/namespaces/catalog-stage.yml:1:"),
        "{line}"
    );
    assert!(line.contains("; still reconciling bundle "), "{line}");
    assert_eq!(metric(&address, "qontract_reconcile_data_invalid"), 1);
    // The same errors are not logged again when another file changes; other errors are.
    let other = scratch.read(OTHER);
    scratch.write(OTHER, format!("{other}# a comment\n"));
    scratch.write(OTHER, "name: [");
    let line = running.until("data is invalid: ");
    assert!(line.contains("data is invalid: 2 errors"), "{line}");
    scratch.write(OTHER, other);
    running.until("data is invalid: ");
    assert!(metric(&address, "qontract_reconcile_data_invalid_since_timestamp_seconds") > 1_700_000_000);
    // The process is degraded but ready, so that a probe does not restart it: a new process could not use
    // the data either.
    for path in ["/readyz", "/healthz"] {
        let answer = get(&address, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("\nok\ndegraded: data invalid since "), "{answer}");
    }
    let status = get(&address, "/status");
    let (_, json) = status.split_once("\r\n\r\n").unwrap();
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["data"]["valid"], false, "{json}");
    assert_eq!(json["loops"][0]["integration"], "openshift-namespaces", "{json}");
    assert_eq!(json["loops"][0]["state"], "ok", "{json}");
    scratch.write(NAMESPACE, text);
    let line = running.until("data is valid again after ");
    assert!(line.contains(" INFO ") && line.contains("; reconciling bundle "), "{line}");
    assert_eq!(metric(&address, "qontract_reconcile_data_invalid"), 0);
    assert!(get(&address, "/readyz").ends_with("\r\n\r\nok\n"));
}

#[test]
fn a_loop_that_starts_with_invalid_data_is_not_ready_and_reports_it() {
    let scratch = stage();
    scratch.write(NAMESPACE, "name: [");
    let mut running = start_loop(&scratch);
    let address = address(&running.until("http://"));
    let line = running.until("data is invalid: ");
    assert!(line.contains("no valid bundle to reconcile yet"), "{line}");
    running.until("cannot start the run: no valid bundle yet");
    let answer = get(&address, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no valid bundle yet"), "{answer}");
    assert_eq!(metric(&address, "qontract_reconcile_data_invalid"), 1);
}

#[test]
fn a_watching_server_with_invalid_data_shows_it_in_metrics_and_health() {
    let scratch = stage();
    let words = ["serve", "repo", "--watch", "--listen", "127.0.0.1:0"];
    let mut server = Running::of(&mut command(&scratch, &words));
    let address = address(&server.until("Running at http://"));
    let gauges = || {
        let since = metric(&address, "qontract_server_data_invalid_since_timestamp_seconds");
        (metric(&address, "qontract_server_data_invalid"), since > 1_700_000_000)
    };
    let failed = || metric(&address, "qontract_server_failed_reloads_total");
    assert_eq!((gauges(), failed()), ((0, false), 0));
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, "name: [");
    server.until("; still serving bundle ");
    assert_eq!(gauges(), (1, true));
    // The counter follows the log line.
    eventually("the failure is counted", || (failed() == 1).then_some(()));
    // The process is alive: a restarted one could not use the data either. The body names no file, because a
    // health check needs no token.
    let answer = get(&address, "/healthz");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\r\n\r\ndegraded: data invalid since "), "{answer}");
    assert!(answer.contains(" UTC (1 error); serving bundle ") && !answer.contains(".yml"), "{answer}");
    scratch.write(NAMESPACE, text);
    server.until("data is valid again after ");
    assert_eq!((gauges(), failed()), ((0, false), 1));
    assert!(get(&address, "/healthz").ends_with("\r\n\r\n"), "a healthy server sends no body");
}

#[test]
fn the_table_of_up_shows_since_when_the_data_is_invalid_and_the_bundle_in_use() {
    let scratch = stage();
    let once = qontract(scratch.path(), &["up", "repo", "--once", "--sandbox", "sandbox", "--runs", "runs"]);
    assert_eq!(once.status.code(), Some(0));
    let words = ["up", "repo", "--sandbox", "sandbox", "--runs", "runs", "--listen", "127.0.0.1:0"];
    let mut terminal = Terminal::run(scratch.path(), &words);
    // The listener's address and its endpoints.
    terminal.until("listening on http://127.0.0.1:");
    terminal.until("/status");
    terminal.until("ok        \x1b[0mopenshift-namespaces");
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, "name: [");
    terminal.until("; still reconciling bundle ");
    terminal.until("data invalid since ");
    terminal.until(" UTC (1 error)");
    terminal.until("reconciling bundle ");
    scratch.write(NAMESPACE, text);
    terminal.until("data is valid again after ");
    assert_eq!(terminal.interrupt(), Some(0));
}

fn git(scratch: &Scratch, words: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-C", "repo"];
    let status = Command::new("git").current_dir(scratch.path()).args(identity).args(words).output().unwrap();
    assert!(status.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// The example as a Git repository.
fn committed() -> Scratch {
    let scratch = stage();
    git(&scratch, &["init", "-q"]);
    git(&scratch, &["add", "-A"]);
    git(&scratch, &["commit", "-qm", "all"]);
    scratch
}

/// The exit code and the output of a command.
fn run(scratch: &Scratch, words: &[&str]) -> (i32, String) {
    let output = command(scratch, words).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code().unwrap(), text.concat())
}

const PLAN: [&str; 6] = ["plan", "HEAD", "repo", "--repo", "repo", "--sandbox"];

fn plan(scratch: &Scratch, more: &[&str]) -> (i32, String) {
    run(scratch, &[&PLAN[..], &["sandbox"], more].concat())
}

#[test]
fn dry_runs_that_a_change_does_not_affect_are_not_listed() {
    let scratch = committed();
    let (code, text) = plan(&scratch, &[]);
    assert!(code == 0 && text.contains("not affected"), "{text}");
    assert!(run(&scratch, &["runs", "list"]).1.starts_with("no runs\n"), "a plan keeps no records of them");
    // A single run leaves a record, which is listed on request.
    let words = ["reconcile", "openshift-namespaces", "--dry-run", "--sandbox", "sandbox"];
    let (code, text) =
        run(&scratch, &[&words[..], &["--data", "repo", "--repo", "repo", "--base", "HEAD"]].concat());
    assert_eq!(code, 0, "{text}");
    assert!(run(&scratch, &["runs", "list"]).1.starts_with("no runs\n"));
    let (_, listed) = run(&scratch, &["runs", "list", "--all"]);
    assert!(listed.contains("openshift-namespaces"), "{listed}");
}

#[test]
fn approve_takes_the_last_run_that_held_changes_and_names_it() {
    let scratch = stage();
    let guards = "[sandbox]\ndirectory = \"sandbox\"\n[guards]\nshard_removals = 0\nshard_percent = 0\n";
    scratch.write("config.toml", guards);
    let reconcile = |name: &str, more: &[&str]| {
        let words = ["reconcile", name, "--data", "repo", "--config", "config.toml"];
        run(&scratch, &[&words[..], more].concat())
    };
    assert_eq!(reconcile("openshift-namespaces", &[]).0, 0);
    assert_eq!(reconcile("openshift-limitranges", &[]).0, 0);
    let (code, text) = run(&scratch, &["approve", "openshift-limitranges"]);
    assert!(code == 1 && text.contains("held nothing"), "{text}");
    let text = scratch.read(NAMESPACE);
    let without: Vec<&str> = text.lines().filter(|line| !line.contains("limitRanges")).collect();
    scratch.write(NAMESPACE, without.join("\n") + "\n");
    let (code, held) = reconcile("openshift-limitranges", &[]);
    assert_eq!(code, 1, "{held}");
    // Later runs that hold nothing, because their namespace has nothing to remove.
    let other = ["--cluster-name", "harbor-prod", "--dry-run"];
    assert_eq!(reconcile("openshift-limitranges", &other).0, 0);
    assert_eq!(reconcile("openshift-namespaces", &["--dry-run"]).0, 0);
    let (code, text) = run(&scratch, &["approve", "openshift-limitranges"]);
    assert!(code == 0 && text.contains("integration: openshift-limitranges"), "{text}");
    let note = text.lines().find(|line| line.contains(", the last run that held changes")).unwrap();
    assert!(note.starts_with("note: using run 2") && note.ends_with("; 1 newer run held nothing"), "{note}");
    // `last` is the last run, whatever it held.
    let (code, text) = run(&scratch, &["approve", "last"]);
    assert!(code == 1 && text.contains("openshift-namespaces") && text.contains("held nothing"), "{text}");
}

#[test]
fn shards_that_the_data_disables_are_counted_once_for_each_reason() {
    let scratch = committed();
    for format in ["text", "md"] {
        let (_, text) = plan(&scratch, &["--all", "-o", format]);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("managedByExternal")).collect();
        assert!(
            matches!(&lines[..], [one] if one.contains(" shards of 10 integrations skipped: disabled for the namespace")),
            "{text}"
        );
        assert!(text.contains("skipped: disabled for cluster `dunes-int`"), "{text}");
        assert!(!text.contains("observability-stage` is skipped"), "{text}");
    }
    let (_, json) = plan(&scratch, &["--all", "-o", "json", "-i", "openshift-limitranges"]);
    let json: serde_json::Value = serde_json::from_str(&json[..=json.rfind('}').unwrap()]).unwrap();
    let shards = json["integrations"][0]["disabled"][1]["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 2, "{json}");
}

#[test]
fn the_line_before_a_real_run_names_its_targets() {
    let scratch = stage();
    scratch.write("config.toml", "[kubernetes]\n");
    let first = |more: &[&str]| {
        let words = ["reconcile", "openshift-limitranges", "--data", "repo", "--config", "config.toml"];
        let (_, text) = run(&scratch, &[&words[..], more].concat());
        text.lines().find(|line| line.starts_with("real run · ")).map(str::to_owned).ok_or(text)
    };
    assert_eq!(
        first(&["--cluster-name", "cliffs-stage"]).as_deref(),
        Ok("real run · data repo · cluster cliffs-stage")
    );
    let all = first(&[]).unwrap();
    assert!(all.contains("clusters ") && all.contains("harbor-prod"), "{all}");
    assert_eq!(
        first(&["--shard", "cluster=cliffs-stage,namespace=catalog-stage"]).as_deref(),
        Ok("real run · data repo · cluster cliffs-stage")
    );
}

#[test]
fn paths_in_messages_are_relative_to_the_working_directory() {
    let scratch = committed();
    let text = scratch.read(NAMESPACE);
    scratch.write(NAMESPACE, text.replace("tier: edge", "tier: core"));
    let (_, planned) = plan(&scratch, &["-i", "openshift-namespace-labels"]);
    assert!(planned.contains(&format!("because of {NAMESPACE}:")), "{planned}");
    assert!(!planned.contains(" data/services"), "{planned}");
    let (_, affected) = run(&scratch, &["affected", "HEAD", "repo", "--repo", "repo"]);
    assert!(affected.contains(&format!("because of {NAMESPACE}:")), "{affected}");
    // For programs, and in comments on merge requests, they are relative to the data repo.
    let (_, json) = plan(&scratch, &["-i", "openshift-namespace-labels", "-o", "json"]);
    assert!(json.contains("\"file\": \"data/services/catalog/namespaces/catalog-stage.yml\""), "{json}");
    scratch.write(NAMESPACE, "name: [");
    for words in [&["validate", "repo"][..], &["bundle", "repo"]] {
        let (_, text) = run(&scratch, words);
        assert!(text.contains(&format!("--> {NAMESPACE}:1")), "{text}");
    }
}

#[test]
fn causes_follow_a_renamed_file() {
    let scratch = committed();
    let renamed = NAMESPACE.replace("catalog-stage.yml", "catalog-staging.yml");
    let text = scratch.read(NAMESPACE);
    std::fs::remove_file(scratch.path().join(NAMESPACE)).unwrap();
    scratch.write(&renamed, text.replace("tier: edge", "tier: core"));
    for file in ["data/access/roles/dev-catalog.yml", "data/services/catalog/saas/catalog.yml"] {
        let file = format!("repo/{file}");
        let text = scratch.read(&file);
        scratch.write(&file, text.replace("namespaces/catalog-stage.yml", "namespaces/catalog-staging.yml"));
    }
    let note = format!("(renamed from {NAMESPACE})");
    let line = text.lines().position(|line| line.contains("tier: edge")).unwrap() + 1;
    let cause = format!("because of {renamed}:{line} {note}");
    let (code, planned) = plan(&scratch, &[]);
    assert_eq!(code, 0, "{planned}");
    let causes: Vec<&str> =
        planned.lines().filter(|line| line.contains("because of")).map(str::trim).collect();
    assert!(!causes.is_empty() && causes.iter().all(|one| *one == cause), "{planned}");
    let (_, affected) = run(&scratch, &["affected", "HEAD", "repo", "--repo", "repo"]);
    assert!(affected.contains(&cause), "{affected}");
    assert!(
        !affected.contains("(removed)") && !affected.contains("because of repo/data/access"),
        "{affected}"
    );
}

#[test]
fn an_integration_that_cannot_run_on_this_machine_is_not_checked_and_never_ok() {
    let scratch = committed();
    scratch.write("config.toml", "[promtool]\npath = \"/no/promtool\"\n[sandbox]\ndirectory = \"sandbox\"\n");
    let config = ["--config", "config.toml"];
    let words = [&["plan", "HEAD", "repo", "--repo", "repo", "--all"][..], &config].concat();
    let (code, text) = run(&scratch, &words);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning: prometheus-rules-tester not checked: promtool not found at"), "{text}");
    assert!(text.contains("; 1 integration not checked"), "{text}");
    // Named on the command line, it has to run.
    let (code, text) = run(&scratch, &[&words[..], &["-i", "prometheus-rules-tester"]].concat());
    assert!(code == 1 && text.contains("error: promtool not found"), "{text}");
    let words = [&["up", "repo", "--once", "--dry-run"][..], &config].concat();
    let (code, text) = run(&scratch, &words);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("WARNING integration skipped: promtool not found at"), "{text}");
    assert!(text.contains("; 1 integration not checked"), "{text}");
}
