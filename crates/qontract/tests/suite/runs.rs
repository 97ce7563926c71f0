//! Tests of `runs`: the table, its filters, JSON, and short names for runs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;

use crate::support::command::{qontract, seen};
use crate::support::records::records as records_in;
use crate::support::running::Running;
use qontract_testkit::{Scratch, example};
use serde_json::{Value, json};

/// Writes a record to the directory `runs`, with some fields replaced.
fn record(scratch: &Scratch, id: &str, began: i64, change: &Value) {
    let integration = id.split_once('-').unwrap().1.rsplit_once('-').unwrap().0;
    let mut record = json!({
        "version": 2, "run": id, "began": began, "milliseconds": 1234, "integration": integration, "mode": "real run",
        "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1", "decisions": [],
        "shards": {}, "faults": [], "warnings": [], "approval": null, "ended": "ok", "exit": 0,
    });
    record.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    scratch.write(&format!("runs/{id}.json"), record.to_string());
}

fn shard(changes: usize, held: usize, waits: usize) -> Value {
    let planned =
        |count: usize| vec![json!({"change": "add", "text": "+ make x", "approvable": true}); count];
    let waits = vec![json!({"text": "a load balancer"}); waits];
    json!({"a": {
        "state": "ran", "rounds": 1, "changes": planned(changes), "held": planned(held), "waits": waits,
        "faults": [], "applied": 0, "removed": 0,
    }})
}

/// Runs of two integrations, in all states.
fn records() -> Scratch {
    let scratch = Scratch::new();
    record(&scratch, "20270115T080000Z-routes-aaaaa", 1_800_000_000, &json!({"shards": shard(3, 0, 0)}));
    record(
        &scratch,
        "20270115T080100Z-routes-bbbbb",
        1_800_000_060,
        &json!({"ended": "failed for now", "exit": 75, "faults": [{"text": "away"}]}),
    );
    record(
        &scratch,
        "20270115T080200Z-quotas-ccccc",
        1_800_000_120,
        &json!({"ended": "held", "exit": 1, "shards": shard(0, 2, 0), "milliseconds": 125_000}),
    );
    record(
        &scratch,
        "20270115T080300Z-quotas-ddddd",
        1_800_000_180,
        &json!({"shards": shard(0, 0, 1), "mode": "dry run"}),
    );
    record(
        &scratch,
        "20270115T080400Z-quotas-eeeee",
        1_800_000_240,
        &json!({"ended": "interrupted", "exit": 130}),
    );
    scratch
}

fn stdout(scratch: &Scratch, words: &str) -> String {
    let words: Vec<&str> = words.split(' ').chain(["--runs", "runs"]).collect();
    let output = qontract(scratch.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The last letters of the ids that are listed.
fn listed(scratch: &Scratch, words: &str) -> String {
    let text = stdout(scratch, format!("runs list {words}").trim_end());
    text.lines().skip(1).filter_map(|line| line.split_once("  ")?.0.chars().last()).collect()
}

#[test]
fn runs_are_an_aligned_table() {
    let scratch = records();
    scratch.write(
        "runs/idle/routes.json",
        r#"{"integration": "routes", "first": 1800000000, "last": 1800000600, "count": 7}"#,
    );
    assert_eq!(
        stdout(&scratch, "runs list"),
        "\
RUN                            STARTED               MODE      STATE        CHANGES  HELD  ERRORS  DURATION
20270115T080000Z-routes-aaaaa  2027-01-15T08:00:00Z  real run  ok           3        0     0       1.2s
20270115T080100Z-routes-bbbbb  2027-01-15T08:01:00Z  real run  failed       0        0     1       1.2s
20270115T080200Z-quotas-ccccc  2027-01-15T08:02:00Z  real run  held         0        2     0       2m05s
20270115T080300Z-quotas-ddddd  2027-01-15T08:03:00Z  dry run   waiting      0        0     0       1.2s
20270115T080400Z-quotas-eeeee  2027-01-15T08:04:00Z  real run  interrupted  0        0     0       1.2s

routes: 7 runs with nothing to do, from 2027-01-15T08:00:00Z to 2027-01-15T08:10:00Z
"
    );
}

#[test]
fn runs_are_listed_by_default() {
    let scratch = records();
    assert_eq!(stdout(&scratch, "runs"), stdout(&scratch, "runs list"));
    assert_eq!(stdout(&scratch, "runs -o json"), stdout(&scratch, "runs list -o json"));
}

#[test]
fn runs_are_filtered_by_integration_state_and_time() {
    let scratch = records();
    assert_eq!(listed(&scratch, ""), "abcde");
    assert_eq!(listed(&scratch, "--last 2"), "de");
    assert_eq!(listed(&scratch, "--integration routes"), "ab");
    assert_eq!(listed(&scratch, "--failed"), "be");
    assert_eq!(listed(&scratch, "--held"), "c");
    assert_eq!(listed(&scratch, "--held --failed --last 2"), "ce");
    assert_eq!(listed(&scratch, "--since 2027-01-15T08:02:00Z"), "cde");
    assert_eq!(listed(&scratch, "--since 2027-01-15T08:02:01Z"), "de");
    let failed =
        json!({"ended": "failed", "exit": 1, "shards": shard(0, 1, 0), "faults": [{"text": "wrong"}]});
    record(&scratch, "20270115T080500Z-quotas-fffff", 1_800_000_300, &failed);
    assert_eq!(listed(&scratch, "--held"), "cf", "a failed run may hold something");
    let refused = seen(scratch.path(), &["runs", "list", "--runs", "runs", "--since", "yesterday"]);
    assert!(refused.contains("exit: 2") && refused.contains("`yesterday` is not a time"), "{refused}");
    let more = seen(scratch.path(), &["runs", "list", "--runs", "runs", "--last", "4"]);
    assert!(more.contains("note: older runs are not listed; `--last N` lists more"), "{more}");
    let none = stdout(&scratch, "runs list --integration nothing");
    assert_eq!(none, "no runs\n");
}

#[test]
fn failed_and_held_runs_are_coloured_on_a_terminal() {
    let scratch = records();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).args(["runs", "list", "--runs", "runs", "--color", "always"]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = |id: &str| text.lines().find(|line| line.contains(id)).unwrap();
    assert!(line("RUN").starts_with("\u{1b}[1m"), "{text:?}");
    assert!(
        line("bbbbb").starts_with("\u{1b}[1;31m") && line("ccccc").starts_with("\u{1b}[1;33m"),
        "{text:?}"
    );
    assert!(line("aaaaa").starts_with("2027"), "{text:?}");
}

#[test]
fn runs_are_structured_as_json() {
    let scratch = records();
    let all: Value = serde_json::from_str(&stdout(&scratch, "runs list -o json")).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!(
        all[2],
        json!({
            "version": 2, "run": "20270115T080200Z-quotas-ccccc", "integration": "quotas", "mode": "real run", "state": "held",
            "ended": "held", "exit": 1, "started": "2027-01-15T08:02:00Z", "duration_ms": 125_000,
            "changes": {"add": 0, "change": 0, "replace": 0, "remove": 0}, "held": 2, "waits": 0, "errors": 0, "applied": 0,
            "head": {"sha": "s", "commit": null},
        })
    );
    let one: Value = serde_json::from_str(&stdout(&scratch, "runs show last -o json")).unwrap();
    assert_eq!((&one["state"], &one["started"]), (&"interrupted".into(), &"2027-01-15T08:04:00Z".into()));
    assert_eq!(one["ended"], "interrupted");
    // A record of an older version has seconds; the output always has a timestamp.
    assert_eq!(one["began"], "2027-01-15T08:04:00Z");
    assert_eq!(stdout(&scratch, "runs list --since 2027-01-15T08:04:00Z").lines().count(), 2);
}

/// The numbers of changes, held changes and errors are those of the summary, in every output.
#[test]
fn all_outputs_of_a_run_have_the_same_counts() {
    let scratch = Scratch::new();
    scratch.copy(&example(), "repo");
    let sandbox = ["--data", "repo", "--sandbox", "sandbox", "--runs", "runs", "--log-level", "WARNING"];
    let made = qontract(scratch.path(), &[&["reconcile", "openshift-namespaces"][..], &sandbox].concat());
    assert_eq!(made.status.code(), Some(0));
    // Some objects are created, and the others fail for one reason in several shards.
    let template = "repo/resources/shop/app-config.configmap.yaml.j2";
    scratch.write(template, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ nope.x }}\n");
    let words = [&["reconcile", "openshift-resources", "--no-validate"][..], &sandbox].concat();
    let output = qontract(scratch.path(), &words);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let shown: Value = serde_json::from_str(&stdout(&scratch, "runs show last -o json")).unwrap();
    let listed: Value = serde_json::from_str(&stdout(&scratch, "runs list --last 1 -o json")).unwrap();
    let counts = &shown["counts"];
    for count in ["changes", "held", "errors", "applied", "not_made"] {
        assert_eq!(counts[count], listed[0][count], "{count}");
    }
    let summary = text.lines().find(|line| line.contains(" to add, ")).unwrap();
    let (add, errors) = (&counts["changes"]["add"], &counts["errors"]);
    assert!(summary.starts_with(&format!("{add} to add, ")), "{counts}: {summary}");
    assert!(summary.ends_with(&format!("; {errors} errors")), "{counts}: {summary}");
    let row = stdout(&scratch, "runs list --last 1");
    let cells: Vec<&str> = row.lines().nth(1).unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
    assert_eq!((cells[4].trim(), cells[6].trim()), (&*add.to_string(), &*errors.to_string()), "{row}");
    // Times are timestamps, in the output and in the files of the run.
    let stored = records_in(&scratch.path().join("runs"));
    let (_, stored) = stored.iter().find(|(id, _)| shown["run"] == **id).unwrap();
    assert_eq!(stored["began"], shown["started"]);
    assert!(stored["began"].as_str().unwrap().ends_with('Z') && stored["version"] == 5, "{stored}");
}

#[test]
fn a_run_is_named_by_its_id_a_prefix_its_integration_or_as_the_last() {
    let scratch = records();
    for (word, letter) in [
        ("last", 'e'),
        ("routes", 'b'),
        ("quotas", 'e'),
        ("20270115T080200Z-quotas-ccccc", 'c'),
        ("20270115T0802", 'c'),
    ] {
        let shown = stdout(&scratch, &format!("runs show {word}"));
        let id = shown.lines().next().unwrap().strip_prefix("run ").unwrap().split_once(':').unwrap().0;
        assert!(id.ends_with(letter), "{word}: {shown}");
        assert_eq!(shown, stdout(&scratch, &format!("explain run {word}")), "an alias");
    }
    let ambiguous = seen(scratch.path(), &["runs", "show", "20270115T08", "--runs", "runs"]);
    assert!(ambiguous.contains("exit: 2") && ambiguous.contains("is a prefix of 5 runs"), "{ambiguous}");
    let near = seen(scratch.path(), &["runs", "show", "route", "--runs", "runs"]);
    assert!(near.contains("exit: 2") && near.contains("did you mean `routes`?"), "{near}");
    let empty = seen(Scratch::new().path(), &["runs", "show", "last", "--runs", "runs"]);
    assert!(empty.contains("exit: 2") && empty.contains("no run `last` in `runs`"), "{empty}");
}

#[test]
fn new_runs_are_followed() {
    let scratch = records();
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command
        .current_dir(scratch.path())
        .args("runs list --runs runs --follow -o json --held --last 1".split(' '));
    let mut running = Running::with_log_on_stdout(&mut command);
    assert_eq!(running.json("ccccc")["state"], "held");
    record(&scratch, "20270115T080500Z-quotas-fffff", 1_800_000_300, &json!({}));
    record(&scratch, "20270115T080600Z-quotas-ggggg", 1_800_000_360, &json!({"ended": "held", "exit": 1}));
    let next: Value = serde_json::from_str(&running.until("20270115T080")).unwrap();
    assert_eq!(next["run"], "20270115T080600Z-quotas-ggggg", "only what passes the filter");
}
