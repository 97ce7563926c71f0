//! Tests of replays through the binary: the same plan digest on another machine, without targets, secrets and
//! data, or the first input that differs.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::cluster::ClusterFixture;
use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::running::Running;
use qontract_testkit::{Scratch, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// Runs `reconcile` on the sandbox; returns its exit code and its record.
fn reconcile(scratch: &Scratch, integration: &str, more: &[&str]) -> (i32, Value) {
    reconcile_with(scratch, integration, &[], more)
}

fn reconcile_with(
    scratch: &Scratch,
    integration: &str,
    variables: &[(&str, &str)],
    more: &[&str],
) -> (i32, Value) {
    let words = ["reconcile", integration, "--data", "repo", "--sandbox", "sandbox", "--runs", "runs"];
    let output = run_with(scratch.path(), variables, &[&words[..], &["-o", "json"], more].concat());
    let record = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code().unwrap_or(-1), record)
}

fn replay(folder: &Path, run: &str, more: &[&str]) -> Output {
    run_with(folder, &[], &[&["runs", "replay", run, "--runs", "runs"][..], more].concat())
}

fn text(record: &Value, field: &str) -> String {
    record[field].as_str().unwrap_or_default().to_owned()
}

/// Another machine: it has the run records and nothing else.
fn other_machine(scratch: &Scratch) -> Scratch {
    let other = Scratch::new();
    other.copy(&scratch.path().join("runs"), "runs");
    other
}

/// Checks that the run has the digest of its record on another machine.
#[track_caller]
fn check_same(scratch: &Scratch, record: &Value) {
    let (run, digest) = (text(record, "run"), text(record, "plan_digest"));
    assert_eq!(digest.len(), 64, "{record}");
    let output = replay(other_machine(scratch).path(), &run, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{digest}\n"));
}

/// Checks that a replay names this difference.
#[track_caller]
fn check_differs(folder: &Path, run: &str, more: &[&str], expect: &str) {
    let output = replay(folder, run, more);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{}", stderr(&output));
    assert!(stderr(&output).contains(expect), "{}", stderr(&output));
}

/// The recordings of a directory of run records, decompressed.
fn recordings(scratch: &Scratch) -> Vec<(PathBuf, String)> {
    let files = fs::read_dir(scratch.path().join("runs/inputs")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "zst"));
    let recordings = files.map(|path| {
        let bytes = fs::read(&path).unwrap();
        let start = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        (path, String::from_utf8(zstd::decode_all(&bytes[start..]).unwrap()).unwrap())
    });
    recordings.collect()
}

/// The example, in which two secrets have values that occur nowhere else.
fn with_canaries() -> (Scratch, [&'static str; 2]) {
    let scratch = operator_fixture();
    let canaries = ["canary-of-the-bank-81723", "canary-of-the-payments-55121"];
    let secrets = scratch.read("repo/sandbox/secrets.toml");
    let secrets = secrets
        .replace("client_secret = \"made-up\"", &format!("client_secret = \"{}\"", canaries[0]))
        .replace("token = \"made-up\"", &format!("token = \"{}\"", canaries[1]));
    assert!(canaries.iter().all(|canary| secrets.contains(canary)));
    scratch.write("repo/sandbox/secrets.toml", secrets);
    // A template with one of them, whose value also decides how many fields the object has.
    let bank = "vault('shop/production/billing/bank', 'client_secret')";
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: with-secret}}\ndata:\n  url: x/{{{{ {bank} }}}}\n{{% if {bank} == '{}' %}}  only-with-this-secret: field\n{{% endif %}}\n",
        canaries[0]
    );
    scratch.write("repo/resources/with-secret.yaml.j2", template);
    let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    let entry =
        "openshiftResources:\n- {provider: resource-template, type: jinja2, path: /with-secret.yaml.j2}\n";
    scratch.write(namespace, scratch.read(namespace).replace("openshiftResources:\n", entry));
    (scratch, canaries)
}

#[test]
fn templates_and_secrets_have_the_same_plan_on_another_machine() {
    let (scratch, canaries) = with_canaries();
    let (code, record) = reconcile(&scratch, "openshift-namespaces", &[]);
    assert_eq!(code, 0, "{record}");
    check_same(&scratch, &record);
    let rendered = "sandbox/clusters/cliffs-stage/catalog-stage/ConfigMap/with-secret.yaml";
    for integration in ["openshift-resources", "openshift-vault-secrets", "openshift-namespace-labels"] {
        let (code, record) = reconcile(&scratch, integration, &[]);
        assert!([0, 1].contains(&code), "{record}");
        check_same(&scratch, &record);
        // The live objects are those that the first run wrote.
        let (_, record) = reconcile(&scratch, integration, &["--dry-run"]);
        check_same(&scratch, &record);
    }
    assert!(scratch.read(rendered).contains(canaries[0]), "the template is rendered with the secret");
    // A changed secret is a change of the plan, and so is a changed live object.
    let secrets = scratch.read("repo/sandbox/secrets.toml");
    scratch.write("repo/sandbox/secrets.toml", secrets.replace(canaries[0], "canary-that-is-new-9120"));
    drop(fs::remove_file(scratch.path().join("sandbox/secrets.toml")));
    for integration in ["openshift-resources", "openshift-vault-secrets"] {
        let (_, record) = reconcile(&scratch, integration, &["--dry-run"]);
        let changes = record["shards"].as_object().unwrap().values();
        let count: usize = changes.map(|shard| shard["changes"].as_array().map_or(0, Vec::len)).sum();
        assert!(count > 0, "the secret changed: {record}");
        check_same(&scratch, &record);
    }

    let encoded = canaries.map(base64);
    let recordings = recordings(&scratch);
    assert!(recordings.len() > 7, "{}", recordings.len());
    for (path, text) in recordings {
        for secret in canaries.iter().map(|canary| (*canary).to_owned()).chain(encoded.clone()) {
            assert!(!text.contains(&secret), "{} contains `{secret}`", path.display());
        }
        assert!(
            !text.contains("only-with-this-secret"),
            "{}: the structure depends on a secret",
            path.display()
        );
        assert!(!text.contains("canary-that-is-new"), "{}", path.display());
    }
    let key = fs::metadata(scratch.path().join("runs/inputs/key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_killed_run_can_be_replayed_and_the_next_runs_converge() {
    let (scratch, _) = with_canaries();
    reconcile(&scratch, "openshift-namespaces", &[]);
    let killed = [("QONTRACT_SANDBOX_KILL_AFTER", "3")];
    let (code, _) = reconcile_with(&scratch, "openshift-resources", &killed, &[]);
    assert_eq!(code, -1, "the process was killed");
    let of_resources = |(path, _): &(PathBuf, String)| path.to_string_lossy().contains("openshift-resources");
    let recorded: Vec<_> = recordings(&scratch).into_iter().filter(of_resources).collect();
    let [(path, recording)] = recorded.as_slice() else { panic!("one recording") };
    let recording: Value = serde_json::from_str(recording).unwrap();
    let run = path.file_stem().unwrap().to_str().unwrap();
    let output = replay(other_machine(&scratch).path(), run, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}\n", text(&recording, "plan_digest")));

    let (_, record) = reconcile(&scratch, "openshift-resources", &[]);
    check_same(&scratch, &record);
    let (code, record) = reconcile(&scratch, "openshift-resources", &[]);
    let changes = record["shards"].as_object().unwrap().values();
    assert!(changes.map(|shard| shard["changes"].as_array().map_or(0, Vec::len)).all(|count| count == 0));
    assert!([0, 1].contains(&code), "{record}");
    check_same(&scratch, &record);
}

/// A program that keeps a card, and says its token.
const PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "keeps a card", "sandbox": true}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}]}' ;;
plan)
    if [ -e card ]; then echo '{"scopes": [{"scope": [["app", "a"]], "count": 1}]}'; exit; fi
    echo '{"scopes": [{"scope": [["app", "a"]]}], "groups": [{"steps": [{"action": "'$READ_IT'", "changes": [
        {"kind": "add", "thing": {"scope": [["app", "a"]], "kind": "card", "name": "one"}, "what": "write card",
         "diff": ["with '$READ_IT'"]}]}]}]}' ;;
apply) echo > card; echo '{}' ;;
esac
"#;

#[test]
fn a_program_is_not_started_by_a_replay() {
    let scratch = operator_fixture();
    scratch.write("program.sh", PROGRAM);
    let config = "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\nsecret_environment = [\"READ_IT\"]\n";
    scratch.write("config.toml", config);
    let run = || {
        let words = ["reconcile", "service-dependencies", "--data", "repo", "--config", "config.toml"];
        let secret = [("READ_IT", "token-of-the-program-7512")];
        let output =
            run_with(scratch.path(), &secret, &[&words[..], &["--runs", "runs", "-o", "json"]].concat());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let first = run();
    assert_eq!(first["exit"], 0, "{first}");
    check_same(&scratch, &first);
    let second = run();
    assert_eq!(second["shards"]["app=a"]["changes"], serde_json::json!([]), "{second}");
    check_same(&scratch, &second);
    for (path, text) in recordings(&scratch) {
        assert!(!text.contains("token-of-the-program"), "{}", path.display());
    }
}

/// The process is killed from outside while it applies a step: the inputs were recorded before it.
#[test]
fn a_run_that_is_killed_from_outside_can_be_replayed() {
    let scratch = operator_fixture();
    let held = "apply) if [ -e hold ]; then echo > held; sleep 600; fi; echo > card";
    scratch.write("program.sh", PROGRAM.replace("apply) echo > card", held));
    scratch.write("hold", "");
    scratch.write(
        "config.toml",
        "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\nsecret_environment = [\"READ_IT\"]\n",
    );
    let words = ["reconcile", "service-dependencies", "--data", "repo", "--config", "config.toml"];
    let secret = [("READ_IT", "token-of-the-program-7512")];
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).envs(secret);
    let running = Running::of(command.args(words).args(["--runs", "runs"]));
    eventually("the step begins", || scratch.path().join("held").exists().then_some(()));
    running.signal(Signal::KILL);
    running.wait();
    let recorded = recordings(&scratch);
    let [(path, recording)] = recorded.as_slice() else { panic!("one recording") };
    let recording: Value = serde_json::from_str(recording).unwrap();
    let run = path.file_stem().unwrap().to_str().unwrap();
    let output = replay(other_machine(&scratch).path(), run, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}\n", text(&recording, "plan_digest")));

    scratch.remove("hold");
    for expect in ["1 step done", "nothing to change"] {
        let output = run_with(scratch.path(), &secret, &[&words[..], &["--runs", "runs"]].concat());
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(output.status.success() && text.contains(expect), "{expect}: {text}");
    }
}

#[test]
fn a_run_that_cleans_up_a_removed_shard_has_the_same_plan_on_another_machine() {
    let scratch = operator_fixture();
    for integration in ["openshift-namespaces", "openshift-limitranges"] {
        assert_eq!(reconcile(&scratch, integration, &[]).0, 0);
    }
    scratch.copy(&scratch.path().join("repo"), "base");
    let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    scratch.write(namespace, scratch.read(namespace).replace("name: catalog-stage", "name: catalog-staging"));
    assert_eq!(reconcile(&scratch, "openshift-namespaces", &[]).0, 0);
    let limits = scratch.path().join("sandbox/clusters/cliffs-stage/catalog-stage/LimitRange");
    assert_eq!(fs::read_dir(&limits).unwrap().count(), 1);
    let base = ["--base", "base"];
    let (_, record) = reconcile(&scratch, "openshift-limitranges", &[&base[..], &["--dry-run"]].concat());
    check_same(&scratch, &record);
    let (code, record) = reconcile(&scratch, "openshift-limitranges", &base);
    assert_eq!(code, 0, "{record}");
    assert_eq!(fs::read_dir(&limits).map_or(0, Iterator::count), 0, "{record}");
    check_same(&scratch, &record);
    let (code, record) = reconcile(&scratch, "openshift-limitranges", &base);
    let changes = record["shards"].as_object().unwrap().values();
    assert!(changes.map(|shard| shard["changes"].as_array().map_or(0, Vec::len)).all(|count| count == 0));
    assert_eq!(code, 0, "{record}");
}

#[test]
fn the_first_input_that_differs_is_named() {
    let scratch = operator_fixture();
    reconcile(&scratch, "openshift-namespaces", &[]);
    let (_, record) = reconcile(&scratch, "openshift-vault-secrets", &["--dry-run"]);
    let (run, head) = (text(&record, "run"), text(&record["head"], "sha"));
    let recording = format!("runs/inputs/{run}.zst");
    let changed = |change: &dyn Fn(&Path)| {
        let other = other_machine(&scratch);
        change(other.path());
        other
    };
    let truncated = changed(&|folder| {
        let path = folder.join(&recording);
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
    });
    check_differs(truncated.path(), &run, &[], "is damaged");
    let bundle = format!("runs/inputs/bundles/{head}.json.zst");
    let without_bundle = changed(&|folder| fs::remove_file(folder.join(&bundle)).unwrap());
    check_differs(without_bundle.path(), &run, &[], &format!("the bundle {head} is not in"));
    let repo = scratch.path().join("repo").display().to_string();
    let output = replay(without_bundle.path(), &run, &["--data", &repo]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let damaged_bundle = changed(&|folder| fs::write(folder.join(&bundle), "x").unwrap());
    check_differs(damaged_bundle.path(), &run, &[], "is damaged");
    let without_inputs = changed(&|folder| fs::remove_file(folder.join(&recording)).unwrap());
    check_differs(without_inputs.path(), &run, &[], &format!("the inputs of the run {run} are not recorded"));
    let other_binary = changed(&|folder| {
        let path = folder.join(&recording);
        let bytes = fs::read(&path).unwrap();
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let mut header: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        header["binary"] = "0.0.1".into();
        fs::write(path, [header.to_string().as_bytes(), &bytes[end..]].concat()).unwrap();
        fs::remove_file(folder.join(&bundle)).unwrap();
    });
    check_differs(other_binary.path(), &run, &[], "the binary: version 0.0.1 recorded the run");
    // The secrets of a sandbox are compared only on request.
    check_differs(scratch.path(), &run, &["--sandbox", "sandbox"], "is not available");
    scratch.write("sandbox/secrets.toml", scratch.read("repo/sandbox/secrets.toml"));
    let output = replay(scratch.path(), &run, &["--sandbox", "sandbox"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let secrets = scratch.read("sandbox/secrets.toml").replace("\"made-up too\"", "\"another\"");
    scratch.write("sandbox/secrets.toml", secrets);
    check_differs(scratch.path(), &run, &["--sandbox", "sandbox"], "has another value");
    fs::write(scratch.path().join("runs/inputs/key"), [7; 32]).unwrap();
    check_differs(scratch.path(), &run, &["--sandbox", "sandbox"], "is not that of the run");
    let output = replay(scratch.path(), "no-such-run", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn without_recording_a_replay_says_so() {
    let scratch = operator_fixture();
    let off = [("QONTRACT_RECORD_INPUTS", "off")];
    let (code, record) = reconcile_with(&scratch, "openshift-namespaces", &off, &[]);
    assert_eq!(code, 0, "{record}");
    check_differs(scratch.path(), &text(&record, "run"), &[], "are not recorded");
    assert!(!scratch.path().join("runs/inputs").exists());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn objects_have_the_same_plan_on_another_machine_real_cluster() {
    let fixture = ClusterFixture::new();
    let (one, two) = (fixture.name("one"), fixture.name("two"));
    fixture.declare(&one, "labels: {team: a}");
    let runs = Scratch::new();
    let check = |integration: &str, more: &[&str]| {
        let (_, shown) = fixture.run(integration, &[&["-o", "json"], more].concat());
        let record: Value = serde_json::from_str(&shown).unwrap();
        drop(fs::remove_dir_all(runs.path().join("runs")));
        runs.copy(&fixture.path().join("runs"), "runs");
        check_same(&runs, &record);
        record
    };
    check("openshift-namespaces", &[]);
    check("openshift-namespace-labels", &[]);
    fixture.declare(&two, "labels: {team: b}");
    fixture.declare(&one, "labels: {team: c}");
    check("openshift-namespaces", &["--dry-run"]);
    check("openshift-namespaces", &[]);
    check("openshift-namespace-labels", &[]);
    let record = check("openshift-namespaces", &[]);
    assert_eq!(record["exit"], 0, "nothing to do: {record}");
}
