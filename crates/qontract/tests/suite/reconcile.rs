//! Snapshot tests of `reconcile`: exit code, stdout and stderr in `snapshots/`.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::path::{Path, PathBuf};

use crate::support::command;
use qontract_testkit::{Scratch, example, snapshot};
use qontract_testserver::DataServer;

fn kept(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots")).join(format!("{name}.txt"))
}

/// Runs one command line and compares its output with the snapshot, without ids of runs, digests and
/// durations.
fn check(name: &str, folder: &Path, arguments: &[&str]) {
    let seen = command::seen(folder, arguments);
    let words = seen.split_inclusive(|one: char| one.is_whitespace() || one == '`' || one == '/');
    let stable = words.map(|word| {
        let bare = word.trim_end_matches(|one: char| !one.is_ascii_alphanumeric());
        let rest = &word[bare.len()..];
        let digest = bare.len() >= 12 && bare.chars().all(|one| one.is_ascii_hexdigit());
        let run = bare.len() > 16 && bare.as_bytes()[8] == b'T' && bare.as_bytes()[15] == b'Z';
        match bare {
            _ if run => format!("RUN{rest}"),
            _ if digest => format!("SHA{rest}"),
            _ => word.to_owned(),
        }
    });
    let stable = stable.collect::<Vec<_>>().concat();
    let lines = stable.lines().map(|line| match line.split_once(" after ") {
        Some((before, after)) if after.ends_with(" ms") => format!("{before} after N ms\n"),
        _ => format!("{line}\n"),
    });
    snapshot(&kept(name), &lines.collect::<Vec<_>>().concat());
}

/// The example as a Git repository: the original, and a commit with a change.
fn repo() -> Scratch {
    let scratch = Scratch::copy_of(&example());
    scratch.commit_all("as it is");
    scratch
}

const HERE: [&str; 4] = ["--sandbox", "sandbox", "--runs", "runs"];

fn reconcile<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["reconcile"], words, &HERE[..]].concat()
}

#[test]
fn a_dry_run_shows_the_plan_and_a_real_run_applies_it() {
    let scratch = repo();
    let stage = ["openshift-namespaces", "--cluster-name", "cliffs-stage"];
    scratch.write(
        "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-legacy.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: catalog-legacy}\n",
    );
    check("reconcile-dry-run", scratch.path(), &reconcile(&[&stage[..], &["--dry-run"]].concat()));
    check("reconcile", scratch.path(), &reconcile(&stage));
    check("reconcile-again", scratch.path(), &reconcile(&stage));
    assert!(
        !scratch.path().join("sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-legacy.yaml").exists()
    );
}

#[test]
fn a_run_explains_itself_down_to_the_line() {
    let scratch = repo();
    let file = "data/services/catalog/namespaces/catalog-stage.yml";
    let text = scratch.read(file).replace("name: catalog-stage", "name: catalog-staging");
    scratch.write(file, text);
    let words = ["openshift-namespaces", "--dry-run", "--base", "HEAD", "-o", "json"];
    let output = command::qontract(scratch.path(), &reconcile(&words));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = record["run"].as_str().unwrap();
    check("explain-run", scratch.path(), &["explain", "run", run, "--runs", "runs"]);
    check(
        "reconcile-affected",
        scratch.path(),
        &reconcile(&["openshift-namespaces", "--dry-run", "--base", "HEAD"]),
    );
    check("affected", scratch.path(), &["affected", "HEAD", "."]);
    check(
        "affected-json",
        scratch.path(),
        &["affected", "HEAD", ".", "-o", "json", "--integration", "openshift-namespaces"],
    );
    check("explain-run-none", scratch.path(), &["explain", "run", "nope", "--runs", "runs"]);
}

#[test]
fn an_unaffected_run_exits_early() {
    let scratch = repo();
    let file = "data/services/catalog/app.yml";
    scratch.write(file, scratch.read(file).replace("description: ", "description: still "));
    check(
        "reconcile-early-exit",
        scratch.path(),
        &reconcile(&["openshift-namespaces", "--dry-run", "--base", "HEAD"]),
    );
    check("affected-none", scratch.path(), &["affected", "HEAD", "."]);
}

#[test]
fn forbidden_schemas_are_refused_before_anything_runs() {
    let scratch = repo();
    let file = "data/integrations/openshift-namespaces.yml";
    let listed = scratch.read(file);
    scratch.write(file, listed.replace("- /openshift/cluster-1.yml\n", ""));
    check("reconcile-forbidden", scratch.path(), &reconcile(&["openshift-namespaces"]));
    check(
        "reconcile-unvalidated",
        scratch.path(),
        &reconcile(&[
            "openshift-namespaces",
            "--dry-run",
            "--no-validate-schemas",
            "--cluster-name",
            "dunes-int",
            "--dump-schemas",
            "schemas.json",
        ]),
    );
    assert_eq!(scratch.read("schemas.json"), r#"["/openshift/cluster-1.yml","/openshift/namespace-1.yml"]"#);
    scratch.write(file, listed.replace("name: openshift-namespaces", "name: something-else"));
    check("reconcile-undefined", scratch.path(), &reconcile(&["openshift-namespaces"]));
    check("integrations-schemas", scratch.path(), &["integrations", "schemas", "openshift-namespaces"]);
    // The data repo has made-up secrets for sandboxes; there are no others.
    let there: Vec<_> = std::fs::read_dir(scratch.path().join("sandbox")).unwrap().collect();
    assert!(there.len() == 1 && scratch.path().join("sandbox/secrets.toml").exists(), "{there:?}");
}

#[test]
fn invalid_data_is_not_reconciled() {
    let scratch = repo();
    let file = "data/services/catalog/namespaces/catalog-stage.yml";
    let text = scratch.read(file).replace("name: catalog-stage\n", "name: 7\n");
    scratch.write(file, text);
    let words = ["openshift-namespaces", "--cluster-name", "cliffs-stage"];
    check("reconcile-invalid", scratch.path(), &reconcile(&words));
    scratch.commit_all("not good");
    check(
        "reconcile-invalid-revision",
        scratch.path(),
        &reconcile(&[&words[..], &["--data", "HEAD", "--dry-run"]].concat()),
    );
    assert!(!scratch.path().join("sandbox/clusters").exists(), "nothing was written");
    // The base may be invalid: the change fixes it.
    scratch.write(file, scratch.read(file).replace("name: 7\n", "name: catalog-stage\n"));
    let output = command::qontract(scratch.path(), &reconcile(&[&words[..], &["--base", "HEAD"]].concat()));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_audit_log_names_changes_that_were_not_done() {
    let scratch = repo();
    // Its namespace does not exist, so nothing can be created in it.
    let words =
        ["openshift-resources", "--cluster-name", "cliffs-stage", "--namespace-name", "catalog-stage"];
    let output = command::qontract(scratch.path(), &reconcile(&words));
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stdout));
    let trail = scratch.read("runs/trail.jsonl");
    let lines: Vec<&str> = trail.lines().collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(
            line.contains("failed without effect: + create") && line.contains(r#""done":false"#),
            "{line}"
        );
    }
}

#[test]
fn usage_errors_are_reported() {
    let scratch = repo();
    check("reconcile-no-target", scratch.path(), &["reconcile", "openshift-namespaces", "--runs", "runs"]);
    check("reconcile-unknown", scratch.path(), &reconcile(&["openshift-nothing"]));
    check("reconcile-none", scratch.path(), &["reconcile"]);
    check(
        "reconcile-slot",
        scratch.path(),
        &reconcile(&["openshift-namespaces", "--shards", "2", "--shard-id", "2"]),
    );
    check(
        "reconcile-sha-without-server",
        scratch.path(),
        &reconcile(&["openshift-namespaces", "--early-exit-compare-sha", "abc"]),
    );
    check(
        "reconcile-no-config",
        scratch.path(),
        &reconcile(&["openshift-namespaces", "--config", "nope.toml"]),
    );
    check("help-reconcile", scratch.path(), &["reconcile", "openshift-namespaces", "--help"]);
    check("integrations", scratch.path(), &["integrations"]);
    check("shards-of", scratch.path(), &["shards", "of", "cluster1/ns1", "--shards", "10"]);
}

/// The bundle of the example, unchanged or with one changed file.
fn bundle(change: Option<(&str, &str, &str)>) -> Vec<u8> {
    let scratch = Scratch::copy_of(&example());
    if let Some((file, from, to)) = change {
        scratch.write(file, scratch.read(file).replace(from, to));
    }
    command::qontract(scratch.path(), &["bundle", ".", "--no-validate", "-o", "-"]).stdout
}

#[test]
fn the_data_comes_from_a_server_as_with_the_peer() {
    let server = DataServer::with_token("Basic abc");
    let base = server.load(&bundle(None));
    let head = server.load(&bundle(Some((
        "data/services/catalog/namespaces/catalog-stage.yml",
        "name: catalog-stage",
        "name: catalog-staging",
    ))));
    assert_ne!(base, head);
    let scratch = Scratch::new();
    scratch.write(
        "config.toml",
        format!(
            "[graphql]\nserver = {:?}\ntoken = \"Basic abc\"\n[sandbox]\ndirectory = \"sandbox\"\n",
            server.url()
        ),
    );
    let peer = |words: &[&str]| {
        let all = [&["peer", "reconcile", "--config", "config.toml", "--runs", "runs"], words].concat();
        command::qontract(scratch.path(), &all)
    };
    let printed = |output: &std::process::Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    // The same bundle: nothing to do.
    let same = peer(&["--dry-run", "--early-exit-compare-sha", &head, "openshift-namespaces"]);
    assert!(same.status.success() && printed(&same).contains("no change between"), "{}", printed(&same));
    let words = [
        "--dry-run",
        "--early-exit-compare-sha",
        &base,
        "--check-only-affected-shards",
        "openshift-namespaces",
    ];
    let affected = peer(&words);
    assert!(affected.status.success(), "{}", printed(&affected));
    let plan = String::from_utf8_lossy(&affected.stdout).into_owned();
    assert!(
        plan.starts_with(
            "+ create Namespace `catalog-staging` (cluster=cliffs-stage)\n    --> data/services/catalog/namespaces/catalog-stage.yml\n1 to add"
        ),
        "{plan}"
    );
    // Without the flag, all shards run.
    let all = peer(
        &words.iter().copied().filter(|word| *word != "--check-only-affected-shards").collect::<Vec<_>>(),
    );
    assert!(String::from_utf8_lossy(&all.stdout).contains("10 to add"), "{}", printed(&all));
    // A base that the server does not have: logged, and all shards run.
    let unknown = "0".repeat(64);
    let unknown = peer(&["--dry-run", "--early-exit-compare-sha", &unknown, "openshift-namespaces"]);
    assert!(
        unknown.status.success() && printed(&unknown).contains("all shards run"),
        "{}",
        printed(&unknown)
    );
    // A forbidden schema: the server reports which schemas were read.
    scratch.write(
        "wrong.toml",
        format!(
            "[graphql]\nserver = {:?}\ntoken = \"Basic xyz\"\n[sandbox]\ndirectory = \"sandbox\"\n",
            server.url()
        ),
    );
    let denied = command::qontract(
        scratch.path(),
        &["peer", "reconcile", "--config", "wrong.toml", "--dry-run", "openshift-namespaces"],
    );
    assert_eq!(denied.status.code(), Some(1), "{}", printed(&denied));
    assert!(!printed(&denied).contains("xyz"), "{}", printed(&denied));
}

#[test]
fn a_run_uses_one_bundle_of_a_server_throughout() {
    let server = DataServer::start();
    let old = server.load(&bundle(None));
    let scratch = Scratch::new();
    scratch.write(
        "config.toml",
        format!("[graphql]\nserver = {:?}\n[sandbox]\ndirectory = \"sandbox\"\n", server.url()),
    );
    let words =
        ["peer", "reconcile", "--config", "config.toml", "--runs", "runs", "--dry-run", "query-validator"];
    let output = command::qontract(scratch.path(), &words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.requests("/sha256"), 1, "the latest is asked for once");
    assert_eq!(server.requests("/graphql"), 0, "every query names the bundle");
    assert!(server.requests(&format!("/graphqlsha/{old}")) > 2);
}

#[test]
fn the_binary_by_the_name_of_the_peer_behaves_as_the_peer() {
    let scratch = repo();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_qontract"), scratch.path().join("qontract-reconcile"))
        .unwrap();
    let output = std::process::Command::new(scratch.path().join("qontract-reconcile"))
        .current_dir(scratch.path())
        .args([
            "--data",
            ".",
            "--runs",
            "runs",
            "--sandbox",
            "sandbox",
            "--dry-run",
            "openshift-namespaces",
            "--cluster-name",
            "dunes-int",
        ])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 to add"), "{output:?}");
}

/// The exit code and the output of a command line with these environment variables.
fn run(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_qontract"));
    let output =
        command.current_dir(folder).args(arguments).envs(environment.iter().copied()).output().unwrap();
    let messages = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&messages).into_owned())
}

#[test]
fn an_inherited_environment_does_not_interfere() {
    let scratch = repo();
    let dry = reconcile(&["openshift-namespaces", "--dry-run"]);
    let empty = [
        "EARLY_EXIT_COMPARE_SHA",
        "SHARDS",
        "SHARD_ID",
        "QONTRACT_CONFIG",
        "CHECK_ONLY_AFFECTED_SHARDS",
        "QONTRACT_LOG_LEVEL",
    ];
    let (code, messages) = run(scratch.path(), &empty.map(|name| (name, "")), &dry);
    assert!(code == Some(0) && messages.contains("10 to add"), "{messages}");
    let based = [&dry[..], &["--base", "HEAD", "--all-shards"]].concat();
    let inherited = [("EARLY_EXIT_COMPARE_SHA", "abc"), ("CHECK_ONLY_AFFECTED_SHARDS", "true")];
    let (code, messages) = run(scratch.path(), &inherited, &based);
    assert!(code == Some(0) && messages.contains("no change between"), "{messages}");
    let (code, messages) = run(scratch.path(), &[("SHARDS", "many")], &dry);
    assert!(code == Some(2) && messages.contains("`SHARDS`"), "{messages}");
    let halves: usize = ["0", "1"]
        .map(|slot| {
            run(scratch.path(), &[("SHARDS", "2"), ("SHARD_ID", slot)], &dry).1.matches("+ create").count()
        })
        .iter()
        .sum();
    assert_eq!(halves, 10);
}

#[test]
fn of_two_contradicting_flags_the_safe_one_applies() {
    let scratch = repo();
    let file = "data/integrations/openshift-namespaces.yml";
    scratch.write(file, scratch.read(file).replace("- /openshift/cluster-1.yml\n", ""));
    let words = ["reconcile", "--no-validate-schemas", "openshift-namespaces", "--validate-schemas"];
    assert_eq!(run(scratch.path(), &[], &[&words[..], &HERE].concat()).0, Some(5));
    // A closed pipe does not make it a success.
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_qontract"));
    let piped = command
        .current_dir(scratch.path())
        .args(reconcile(&["openshift-namespaces"]))
        .stdout(std::process::Stdio::piped());
    let mut child = piped.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn removed_integrations_and_failed_starts_are_reported() {
    let scratch = repo();
    scratch.remove("data/integrations/openshift-namespaces.yml");
    let (code, messages) = run(scratch.path(), &[], &["affected", "HEAD", "."]);
    assert!(code == Some(1) && messages.contains("openshift-namespaces: affected"), "{messages}");
    scratch.write("config.toml", "[integrations.broken]\ncommand = [\"/nowhere/at-all\"]\n");
    let (code, messages) = run(scratch.path(), &[], &["integrations", "--config", "config.toml"]);
    assert!(
        code == Some(0)
            && messages.contains("query-validator")
            && messages.contains("cannot start integration `broken`"),
        "{messages}"
    );
}

#[test]
fn an_unavailable_server_is_a_transient_failure() {
    let scratch = Scratch::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    scratch.write(
        "config.toml",
        format!("[graphql]\nserver = \"http://{free}/graphql\"\n[sandbox]\ndirectory = \"sandbox\"\n"),
    );
    let (code, messages) = run(
        scratch.path(),
        &[],
        &["peer", "reconcile", "--config", "config.toml", "--dry-run", "openshift-namespaces"],
    );
    assert_eq!(code, Some(75), "{messages}");
}
