//! Tests of waits through the binary: rollouts that take time, never end or fail, with faults from outside.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::clock::SteppedClock;
use crate::support::cluster::ClusterFixture;
use crate::support::operator::{operator_fixture, run_with, stderr};
use crate::support::records::run_ids;
use crate::support::running::{Running, get};
use qontract_testkit::{Scratch, eventually, example};
use rustix::process::Signal;

const NAMESPACE: &str = "repo/data/services/catalog/namespaces/catalog-stage.yml";
const FILE: &str = "sandbox/clusters/cliffs-stage/catalog-stage/Deployment/web.yaml";

/// The example with a Deployment in `catalog-stage`, whose rollout the sandbox simulates.
fn fixture(rollout: &str) -> Scratch {
    let scratch = operator_fixture();
    let text = std::fs::read_to_string(scratch.path().join(NAMESPACE)).unwrap();
    let text = text.replace("managedResourceTypes:\n", "managedResourceTypes:\n- Deployment\n").replace(
        "openshiftResources:\n",
        "openshiftResources:\n- provider: resource\n  path: /shop/catalog/web.yaml\n",
    );
    scratch.write(NAMESPACE, text);
    deployment(&scratch, rollout);
    let namespaces = reconcile(&scratch, "openshift-namespaces", &[]);
    assert_eq!(namespaces.0, 0, "{}", namespaces.1);
    scratch
}

/// Writes the Deployment; a new annotation starts a new rollout.
fn deployment(scratch: &Scratch, rollout: &str) {
    scratch.write("repo/resources/shop/catalog/web.yaml", manifest(rollout));
}

fn manifest(rollout: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  annotations: {{sandbox.qontract.dev/rollout: {rollout}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: web, image: example.com/web}}]}}\n"
    )
}

fn command(scratch: &Scratch, integration: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qontract"));
    command.current_dir(scratch.path()).env("HOME", scratch.path()).env("NO_COLOR", "1");
    command.args(["reconcile", integration, "--data", "repo", "--sandbox", "sandbox", "--runs", "runs"]);
    command.args(more);
    command
}

fn reconcile(scratch: &Scratch, integration: &str, more: &[&str]) -> (i32, String) {
    let output = command(scratch, integration, more).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    (output.status.code().unwrap(), text)
}

/// Runs `openshift-resources` in the namespace of the Deployment.
fn resources(scratch: &Scratch, more: &[&str]) -> (i32, String) {
    reconcile(scratch, "openshift-resources", &[&["--namespace-name", "catalog-stage"], more].concat())
}

fn state_of_last_run(scratch: &Scratch) -> String {
    let listed = run_with(scratch.path(), &[], &["runs", "show", "last", "--runs", "runs", "-o", "json"]);
    let record: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    record["ended"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_waits_for_a_roll_out_on_request() {
    let scratch = fixture("4s");
    let (code, text) = resources(&scratch, &["--wait=1s"]);
    assert_eq!(code, 75, "{text}");
    assert!(text.contains("waits: Deployment `web`") && text.contains("0 of 2 replicas updated"), "{text}");
    assert_eq!(state_of_last_run(&scratch), "waiting");
    // Without the flag, the run reports the rollout and does not wait.
    let (code, text) = resources(&scratch, &[]);
    assert!(code == 0 && text.contains("rolling out: Deployment `web`"), "{text}");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
    // A dry run never waits.
    let (code, text) = resources(&scratch, &["--wait", "--dry-run"]);
    assert_eq!(code, 2, "{text}");
}

#[test]
fn a_failed_roll_out_is_degraded_and_fails_a_run_that_waits() {
    let scratch = fixture("fails");
    assert_eq!(resources(&scratch, &[]).0, 0);
    let (code, text) = resources(&scratch, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("degraded: rollout of Deployment `web`"), "{text}");
    assert_eq!(state_of_last_run(&scratch), "degraded");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert!(code == 1 && text.contains("error: rollout of Deployment `web`"), "{text}");

    // A loop shows it in its log, its metrics and its records, never as ok.
    let words = ["--every", "60s", "--listen", "127.0.0.1:0"];
    let mut running = Running::of(&mut command(&scratch, "openshift-resources", &words));
    let listening = running.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    running.until("WARNING degraded: rollout of Deployment `web`");
    running.until("run ended: degraded");
    eventually("the metric counts it", || {
        let metrics = get(&address, "/metrics");
        let degraded = metrics.lines().find(|line| line.starts_with("qontract_reconcile_degraded{"))?;
        degraded.ends_with(" 1").then_some(())
    });
    assert_eq!(state_of_last_run(&scratch), "degraded");
    // A loop that is killed and started again is still degraded, and records that only once.
    let records = number_of_records(&scratch);
    running.signal(Signal::KILL);
    running.wait();
    let mut running = Running::of(&mut command(&scratch, "openshift-resources", &words));
    running.until("run ended: degraded");
    running.signal(Signal::TERM);
    running.wait();
    assert_eq!(number_of_records(&scratch), records);
    assert_eq!(state_of_last_run(&scratch), "degraded");

    // Once it is repaired, a run is ok again, and then nothing is left to do.
    deployment(&scratch, "1s");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(state_of_last_run(&scratch), "ok");
    let (code, text) = resources(&scratch, &[]);
    assert!(code == 0 && text.contains("nothing to change") && !text.contains("degraded"), "{text}");
    assert_eq!(state_of_last_run(&scratch), "ok");
}

/// Number of run records, without the counters of runs that have none.
fn number_of_records(scratch: &Scratch) -> usize {
    run_ids(&scratch.path().join("runs")).len()
}

#[test]
fn a_run_that_is_killed_or_stopped_while_it_waits_is_continued_by_the_next_one() {
    let scratch = fixture("never");
    for (signal, code) in [(Signal::KILL, None), (Signal::TERM, Some(143))] {
        let words = ["--namespace-name", "catalog-stage", "--wait=5m"];
        let running = Running::of(&mut command(&scratch, "openshift-resources", &words));
        eventually("the Deployment is written", || scratch.path().join(FILE).exists().then_some(()));
        std::thread::sleep(Duration::from_millis(1500));
        let stopped = Instant::now();
        running.signal(signal);
        assert_eq!(running.wait().code(), code);
        assert!(stopped.elapsed() < Duration::from_secs(5), "a wait ends at once");
    }
    assert_eq!(state_of_last_run(&scratch), "interrupted");
    // SIGSTOP for longer than the interval between two observations, and a step of the wall clock by the files.
    deployment(&scratch, "3s");
    let words = ["--namespace-name", "catalog-stage", "--wait=1m"];
    let running = Running::of(&mut command(&scratch, "openshift-resources", &words));
    std::thread::sleep(Duration::from_secs(1));
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    running.signal(Signal::CONT);
    assert_eq!(running.wait().code(), Some(0));
    let (code, text) = resources(&scratch, &["--wait"]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

/// The clock is stepped from outside: the patience of a run does not depend on it.
#[test]
#[ignore = "needs QONTRACT_FAKETIME; run by `cargo xtask test`"]
fn a_step_of_the_clock_neither_ends_nor_extends_a_wait() {
    let scratch = fixture("never");
    let clock = SteppedClock::new(&scratch);
    let words = ["--namespace-name", "catalog-stage", "--wait=4s"];
    let begun = Instant::now();
    let mut running = Running::of(clock.apply(&mut command(&scratch, "openshift-resources", &words)));
    eventually("the Deployment is written", || scratch.path().join(FILE).exists().then_some(()));
    clock.step("+2d");
    let is_over = |running: &mut Running| running.child.try_wait().unwrap();
    eventually("it still waits", || (begun.elapsed() > Duration::from_secs(2)).then_some(()));
    assert_eq!(is_over(&mut running), None, "a step forward does not end the wait");
    clock.step("-2d");
    assert_eq!(running.wait().code(), Some(75));
    assert!(begun.elapsed() < Duration::from_secs(20), "a step back does not extend the wait");
    deployment(&scratch, "1s");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = resources(&scratch, &["--wait"]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn a_loop_that_waits_follows_newer_data_and_comes_back_soon() {
    let scratch = operator_fixture();
    assert_eq!(reconcile(&scratch, "openshift-namespaces", &[]).0, 0);
    // The namespace is being removed in the target, and stays so.
    let file = "sandbox/clusters/cliffs-stage/_cluster/Namespace/catalog-stage.yaml";
    let text = std::fs::read_to_string(scratch.path().join(file)).unwrap();
    let marked =
        text.replacen("metadata:\n", "metadata:\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1);
    assert_ne!(text, marked, "{text}");
    scratch.write(file, marked);
    let mut running = Running::of(&mut command(&scratch, "openshift-namespaces", &["--every", "10m"]));
    running.until("real run");
    std::thread::sleep(Duration::from_secs(1));
    // Newer data ends the wait: the run ends as waiting, and the next one starts at once with the new data.
    scratch.write(
        NAMESPACE,
        std::fs::read_to_string(scratch.path().join(NAMESPACE))
            .unwrap()
            .replace("catalog before", "catalog long before"),
    );
    let begun = Instant::now();
    let ended = running.until("run ended: waiting");
    assert!(begun.elapsed() < Duration::from_secs(6), "{ended}");
    let ended = running.until("run ended: waiting");
    let next = ended.split("next_in=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(next.ends_with('s') && !next.contains('m'), "the first back-off, not ten minutes: {ended}");
    // Once the namespace is gone, the loop creates it again, and then nothing is left to do.
    scratch.remove(file);
    running.until("run ended: ok");
    assert_eq!(exists(&scratch, file), Some(()));
    running.signal(Signal::TERM);
    running.wait();
    let (code, text) = reconcile(&scratch, "openshift-namespaces", &[]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

/// An object program with one Deployment, in the namespace and with the caller that the file `target` names.
const PROGRAM: &str = r#"
import json, sys
json.load(sys.stdin)
if sys.argv[1] == "describe":
    print(json.dumps({"name": "service-dependencies", "description": "deploys", "form": "objects"}))
else:
    namespace, caller = open("target").read().split()
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "example.com/web"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    shard = {"cluster": "c1", "namespace": namespace, "caller": caller, "kinds": ["Deployment.apps"], "objects": [web]}
    print(json.dumps({"shards": [shard]}))
"#;

/// A real API server: without a controller, the status never describes the new generation. A caller that is
/// renamed takes over its objects there, too.
#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_rollout_is_judged_by_the_observed_generation_real_cluster() {
    let stage = ClusterFixture::new();
    let own = "data/integrations/service-dependencies.yml";
    let cluster = "- /openshift/cluster-1.yml\n";
    let more = format!("{cluster}- /openshift/cluster-integrations-1.yml\n");
    stage.write(own, &std::fs::read_to_string(example().join(own)).unwrap().replace(cluster, &more));
    stage.configure(&format!(
        "[creds.admin]\ntoken = {:?}\n[integrations.service-dependencies]\ncommand = [\"python3\", \"program.py\"]\n",
        stage.api.token
    ));
    std::fs::write(stage.path().join("program.py"), PROGRAM).unwrap();
    let namespace = stage.name("rollout");
    stage.declare(&namespace, "");
    assert_eq!(stage.reconcile(&[]).0, 0);
    let caller =
        |name: &str| std::fs::write(stage.path().join("target"), format!("{namespace} {name}")).unwrap();
    caller("old");
    let (code, plan) = stage.run("service-dependencies", &["--wait=3s"]);
    assert_eq!(code, 75, "{plan}");
    assert!(plan.contains("✓ + create Deployment `web`") && plan.contains("waits: Deployment"), "{plan}");
    caller("new");
    let (code, plan) = stage.run("service-dependencies", &[]);
    assert!(code == 0 && plan.contains("✓ ~ take over Deployment `web`"), "{plan}");
    let (code, plan) = stage.run("service-dependencies", &[]);
    assert!(code == 0 && plan.contains("rolling out: Deployment"), "{plan}");
    assert!(plan.contains("0 to add, 0 to change, 0 to remove"), "{plan}");
}

/// A program that deploys, waits until there is a file `complete`, and then writes a record. Each applied step is
/// a line of `log`. A file `hold-STEP` stops the step after it has begun, and after a deployment has started.
const DEPLOY_PROGRAM: &str = r#"
hold() { if [ -e "hold-$1" ]; then echo > "held-$1"; sleep 600; fi; }
step() { echo '{"scopes": [{"scope": []}], "groups": [{"steps": [{"action": "'$1'", "changes": [
    {"kind": "add", "thing": {"scope": [], "kind": "'$1'", "name": "web"}, "what": "'$1'"}]}]}]}'; }
case $1 in
describe) echo '{"name": "service-dependencies", "description": "deploys", "sandbox": true, "patience": {"every": 1, "total": 60}}' ;;
declare) echo '{"shards": [{"state": 1}]}' ;;
plan)
    if ! [ -e deployed ]; then step deploy
    elif ! [ -e complete ]; then echo >> waits; echo '{"scopes": [{"scope": []}], "waits": ["rollout of web"]}'
    elif ! [ -e recorded ]; then step record
    else echo '{"scopes": [{"scope": [], "count": 1}]}'; fi ;;
apply)
    if grep -q '"action":"deploy"'; then echo deploy >> log; echo > deployed; hold deploy
    else hold record; if ! [ -e complete ]; then echo early >> log; fi; echo record >> log; echo > recorded; fi
    echo '{}' ;;
esac
"#;

/// The example with the program that deploys.
fn deploy_fixture(program: &str) -> Scratch {
    let scratch = operator_fixture();
    scratch.write("program.sh", program);
    scratch.write("config.toml", "[integrations.service-dependencies]\ncommand = [\"sh\", \"program.sh\"]\n");
    scratch
}

/// Whether there is a file.
fn exists(scratch: &Scratch, name: &str) -> Option<()> {
    scratch.path().join(name).exists().then_some(())
}

/// The number of observations in which the program has seen the rollout in progress.
fn observations(scratch: &Scratch) -> usize {
    std::fs::read_to_string(scratch.path().join("waits")).unwrap_or_default().lines().count()
}

/// Runs the program that deploys to its end, and checks that a second run has nothing to do.
fn finish_deployment(scratch: &Scratch) {
    let words = ["--config", "config.toml"];
    let is_complete = exists(scratch, "complete").is_some();
    let before = observations(scratch);
    let running = Running::of(&mut command(scratch, "service-dependencies", &words));
    if !is_complete {
        eventually("the run waits", || (observations(scratch) > before).then_some(()));
        assert_eq!(exists(scratch, "recorded"), None);
        scratch.write("complete", "");
    }
    assert_eq!(running.wait().code(), Some(0));
    assert_eq!(scratch.read("log"), "deploy\nrecord\n", "each step once, and the record after the rollout");
    let (code, text) = reconcile(scratch, "service-dependencies", &words);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn a_program_waits_for_what_its_own_step_has_started_before_it_records_it() {
    let scratch = deploy_fixture(DEPLOY_PROGRAM);
    finish_deployment(&scratch);
}

#[test]
fn a_program_that_is_killed_in_any_phase_of_a_wait_records_nothing_false() {
    for (hold, reached) in [("hold-deploy", "held-deploy"), ("", "waits"), ("hold-record", "held-record")] {
        let scratch = deploy_fixture(DEPLOY_PROGRAM);
        if !hold.is_empty() {
            scratch.write(hold, "");
        }
        let words = ["--config", "config.toml"];
        let running = Running::of(&mut command(&scratch, "service-dependencies", &words));
        if hold == "hold-record" {
            eventually("the run waits", || exists(&scratch, "waits"));
            scratch.write("complete", "");
        }
        eventually(reached, || exists(&scratch, reached));
        running.signal(Signal::KILL);
        running.wait();
        assert_eq!(scratch.read("log"), "deploy\n", "{reached}");
        if !hold.is_empty() {
            scratch.remove(hold);
        }
        finish_deployment(&scratch);
    }
}

#[test]
fn a_pause_between_two_observations_that_exceeds_the_stall_timeout_is_not_a_stall() {
    let scratch = deploy_fixture(&DEPLOY_PROGRAM.replace("\"every\": 1", "\"every\": 3"));
    let words = ["--config", "config.toml", "--every", "1h", "--listen", "127.0.0.1:0"];
    let mut looping = command(&scratch, "service-dependencies", &words);
    let mut running = Running::of(looping.env("QONTRACT_STALL_SECONDS", "2"));
    let listening = running.until("listening on http://");
    let address = listening.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    eventually("a pause has passed", || (observations(&scratch) > 1).then_some(()));
    scratch.write("complete", "");
    running.until("run ended: ok");
    let metrics = get(&address, "/metrics");
    let is_zero = |line: &str| line.starts_with("qontract_reconcile_stuck_total{") && line.ends_with(" 0");
    assert!(metrics.lines().any(is_zero), "{metrics}");
    running.signal(Signal::TERM);
    running.wait();
    let (code, text) = reconcile(&scratch, "service-dependencies", &words[..2]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}
