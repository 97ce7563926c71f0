//! Tests of runs that print the desired state, through the binary.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::{Command, Output, Stdio};

use crate::support::operator::{operator_fixture, run_with, stderr};
use qontract_testkit::vault::{ROOT, TestVault, VaultFault};
use qontract_testkit::{BodyFraming, Loopback, Reply, Scratch, eventually};
use serde_json::{Value, json};

const SANDBOX: [&str; 6] = ["--data", "repo", "--sandbox", "sandbox", "--runs", "runs"];

fn objects(scratch: &Scratch, integration: &str, more: &[&str]) -> Output {
    run_with(scratch.path(), &[], &[&["reconcile", integration][..], &SANDBOX, more].concat())
}

fn records(scratch: &Scratch) -> usize {
    let listed = run_with(scratch.path(), &[], &["runs", "list", "--runs", "runs", "-o", "json", "--all"]);
    serde_json::from_slice::<Vec<Value>>(&listed.stdout).unwrap().len()
}

/// The documents of a stream.
fn documents(stdout: &str) -> Vec<Value> {
    let documents = stdout.split("---\n").skip(1);
    documents.map(|text| qontract_yaml::json::read(text.as_bytes()).unwrap()).collect()
}

#[test]
fn the_objects_of_a_cluster_are_printed_as_they_would_be_applied_and_nothing_is_written() {
    let scratch = operator_fixture();
    let words = ["--print-only", "--cluster-name", "cliffs-stage"];
    let output = objects(&scratch, "openshift-namespaces", &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let printed = documents(&stdout);
    assert!(!printed.is_empty() && stdout.starts_with("# cluster=cliffs-stage"), "{stdout}");
    for object in &printed {
        assert_eq!(object["kind"], "Namespace", "{stdout}");
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["qontract.integration"], "openshift-namespaces", "{stdout}");
        assert!(annotations["qontract.sha256sum"].is_string() && annotations["qontract.update"].is_null());
    }
    assert!(!scratch.path().join("sandbox/clusters").exists(), "nothing is written");
    assert_eq!(records(&scratch), 0, "a run that prints has no record");
    // The same data gives the same bytes.
    let again = objects(&scratch, "openshift-namespaces", &words);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), stdout);

    // The written objects have the same marks, and then nothing is left to do.
    assert!(objects(&scratch, "openshift-namespaces", &[]).status.success());
    let name = printed[0]["metadata"]["name"].as_str().unwrap();
    let file = format!("sandbox/clusters/cliffs-stage/_cluster/Namespace/{name}.yaml");
    let written: Value = qontract_yaml::json::read(scratch.read(&file).as_bytes()).unwrap();
    let mark = |object: &Value| object["metadata"]["annotations"]["qontract.sha256sum"].clone();
    assert_eq!(mark(&written), mark(&printed[0]));
    let last = objects(&scratch, "openshift-namespaces", &[]);
    assert!(stderr(&last).contains("nothing to change"), "{}", stderr(&last));
}

#[test]
fn an_object_with_secrets_is_only_named() {
    let scratch = operator_fixture();
    let output = objects(&scratch, "openshift-vault-secrets", &["--print-only"]);
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", stderr(&output));
    assert!(stdout.contains("is not printed: it contains secrets"), "{stdout}");
    assert!(documents(&stdout).iter().all(|object| object["kind"] != "Secret"), "{stdout}");
}

#[test]
fn an_unresolved_object_is_named_and_the_exit_code_is_not_zero() {
    let scratch = operator_fixture();
    // Without the secret store, what needs a secret is unresolved.
    scratch.write("repo/sandbox/secrets.toml", "");
    let output = objects(&scratch, "openshift-vault-secrets", &["--print-only"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("is not printed"), "{}", stderr(&output));
}

#[test]
fn printing_is_not_combined_with_other_output_or_a_loop() {
    let scratch = operator_fixture();
    let check = |more: &[&str], expect: &str| {
        let output = objects(&scratch, "openshift-namespaces", &[&["--print-only"][..], more].concat());
        let text = stderr(&output);
        assert_eq!((output.status.code(), text.contains(expect)), (Some(2), true), "{text}");
        assert!(output.stdout.is_empty());
    };
    check(&["-o", "json"], "cannot be combined with `--wait` or `--output`");
    check(&["--every", "1m"], "a loop cannot print the desired state");
}

/// A program that prints its shard, and its secret if there is a file `leak`.
const PROGRAM: &str = r#"
case $1 in
describe) echo '{"name": "service-dependencies", "description": "prints", "sandbox": true,
    "flags": [{"name": "print-only", "print": true, "help": "Print the cards"}]}' ;;
declare) echo '{"shards": [{"key": [["app", "a"]], "state": 1}, {"key": [["app", "b"]], "state": 2}]}' ;;
print)
    app=$(sed 's/.*\["app","\([a-z]*\)"\].*/\1/')
    if [ "$app" = b ] && [ -e leak ]; then printf '{"text": "password: %s\\n"}' "$READ_TOKEN"; exit; fi
    if [ "$app" = b ] && [ -e broken ]; then
        echo '{"wants": [{"thing": {"scope": [["app", "b"]], "kind": "card", "name": "x"}, "unresolved": "no such ref"}]}'; exit; fi
    printf '{"text": "card of %s\\n"}' "$app" ;;
*) echo 'only `print` is expected' >&2; exit 1 ;;
esac
"#;

#[test]
fn a_program_prints_in_a_phase_of_its_own_and_never_a_secret() {
    let scratch = operator_fixture();
    scratch.write("program.sh", PROGRAM);
    scratch.write(
        "config.toml",
        "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\nsecret_environment = [\"READ_TOKEN\"]\n",
    );
    let run = || {
        let words = ["reconcile", "service-dependencies", "--print-only", "--data", "repo", "--runs", "runs"];
        let output = run_with(
            scratch.path(),
            &[("READ_TOKEN", "hush-hush-hush")],
            &[&words[..], &["--config", "config.toml"]].concat(),
        );
        let text = stderr(&output);
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), text)
    };
    let (code, stdout, text) = run();
    assert_eq!((code, stdout.as_str()), (0, "card of a\ncard of b\n"), "{text}");
    scratch.write("broken", "");
    let (code, stdout, text) = run();
    assert_eq!((code, stdout.as_str()), (75, "card of a\n"), "{text}");
    assert!(text.contains("no such ref; card `x` (app=b) is not printed"), "{text}");
    scratch.write("leak", "");
    let (code, stdout, text) = run();
    assert_eq!((code, stdout.as_str()), (1, "card of a\n"), "{text}");
    assert!(text.contains("`app=b` is not printed: its text contains a secret"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    assert_eq!(records(&scratch), 0);
}

/// The example, in which an object of `catalog-stage` is rendered with a secret from this Vault.
fn with_vault(url: &str) -> Scratch {
    let scratch = operator_fixture();
    let namespace = "repo/data/services/catalog/namespaces/catalog-stage.yml";
    let entry =
        "openshiftResources:\n- {provider: resource-template, type: jinja2, path: /with-secret.yaml.j2}\n";
    scratch.write(namespace, scratch.read(namespace).replace("openshiftResources:\n", entry));
    scratch.write(
        "repo/resources/with-secret.yaml.j2",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: with-secret}\ndata:\n  user: {{ vault('secret/search', 'user') }}\n",
    );
    scratch.write("config.toml", format!("[vault]\nserver = {url:?}\ntoken = {ROOT:?}\n"));
    scratch
}

const PRINT: [&str; 5] = ["--print-only", "--config", "config.toml", "--namespace-name", "catalog-stage"];

/// Checks that a print fails, and that its output consists of whole documents without the secret.
#[track_caller]
fn check_failed_print(scratch: &Scratch, whole: &str) {
    let output = objects(scratch, "openshift-resources", &PRINT);
    let (stdout, text) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
    assert!(matches!(output.status.code(), Some(1 | 75)), "{text}");
    assert!(text.contains("`with-secret`") || text.contains("with-secret.yaml.j2"), "{text}");
    let whole = documents(whole);
    assert!(documents(&stdout).iter().all(|object| whole.contains(object)), "{stdout}");
    assert!(!stdout.contains("with-secret") && !stdout.contains("ann-of-the-vault"), "{stdout}");
}

#[test]
fn a_print_without_the_secret_store_fails_and_prints_only_whole_objects() {
    let vault = TestVault::start();
    vault.put("search", &json!({"user": "ann-of-the-vault"}));
    let scratch = with_vault(&vault.url());
    let whole = objects(&scratch, "openshift-resources", &PRINT);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let whole = String::from_utf8(whole.stdout).unwrap();
    assert!(
        !documents(&whole).is_empty() && whole.contains("is not printed: it contains secrets"),
        "{whole}"
    );
    // A response that ends in the middle.
    let body = json!({"data": {"user": "ann-of-the-vault", "other": "x".repeat(100)}}).to_string();
    let truncated = Loopback::start(move |_| Reply::Half("200 OK", body.clone(), BodyFraming::Length));
    let half = with_vault(truncated.url());
    vault.fail(Some(VaultFault::Status(503)));
    // Concurrently, because each run repeats the request for some seconds.
    std::thread::scope(|scope| {
        let whole = whole.as_str();
        for scratch in [&scratch, &half] {
            scope.spawn(move || check_failed_print(scratch, whole));
        }
    });
    vault.fail(None);

    // A run that is killed while it reads a secret has printed nothing.
    let (held, before) = (vault.hold(), vault.requests(""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path());
    command.args(["reconcile", "openshift-resources"]).args(SANDBOX).args(PRINT);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the store is read", || (vault.requests("") > before).then_some(()));
    child.kill().unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"");
    drop(held);
    let again = objects(&scratch, "openshift-resources", &PRINT);
    assert_eq!((again.status.code(), String::from_utf8(again.stdout).unwrap()), (Some(0), whole));
    assert_eq!(records(&scratch), 0);
}
