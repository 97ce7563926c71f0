//! Workloads that use a changed object are restarted once, and a crash loses no restart; on the sandbox and
//! on a real cluster.

use qontract_access::Mode;
use qontract_inventory::{Callers, Owner};
use qontract_runtime::RunOutcome;
use serde_json::{Value, json};

use crate::support::test_integration::{TestIntegration, TestObject};
use crate::support::test_target::{RealCluster, SandboxTarget, TestTarget, with_marks};

const RECYCLED: &str = "qontract.recycled";
const PENDING: &str = "qontract.recycle_pending";

fn settings(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": value},
        "metadata": {"name": name, "annotations": {"qontract.recycle": "true"}}})
}

fn deployment(name: &str, config_map: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
            {"name": "web", "image": "web", "envFrom": [{"configMapRef": {"name": config_map}}]}]}}}})
}

fn run(target: &dyn TestTarget, namespace: &str, wanted: &[Value], mode: Mode) -> RunOutcome {
    integration(target, namespace, wanted, mode).run(mode)
}

fn integration(target: &dyn TestTarget, namespace: &str, wanted: &[Value], mode: Mode) -> TestIntegration {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let integration = TestIntegration::new(target.kubernetes(mode), target.cluster(), owner, &["ConfigMap"])
        .callers(Callers::Unknown);
    integration.with_namespace(namespace, wanted.iter().cloned().map(TestObject::for_object).collect())
}

/// The cause of a workload's last restart.
fn cause(target: &dyn TestTarget, namespace: &str, name: &str) -> Option<String> {
    let all = target.list(namespace, &["Deployment"]);
    let one = all.iter().find(|object| object["metadata"]["name"] == name).unwrap();
    one["spec"]["template"]["metadata"]["annotations"][RECYCLED].as_str().map(str::to_owned)
}

fn is_pending(target: &dyn TestTarget, namespace: &str) -> bool {
    let all = target.list(namespace, &["ConfigMap"]);
    all.iter().any(|object| object["metadata"]["annotations"][PENDING].is_string())
}

fn shown(outcome: &RunOutcome) -> Vec<String> {
    let shard = outcome.shards.values().next().unwrap();
    assert!(shard.faults.is_empty(), "{:?}", shard.faults);
    let changes = shard.changes.iter().map(|change| format!("{} {}", change.what, change.object.name));
    changes.chain(shard.waits.iter().map(|wait| wait.text.clone())).collect()
}

fn marked(value: &str) -> Value {
    let mut object = settings("settings", value);
    object["owner"] = "openshift_resources 1.9.3".into();
    with_marks(object)
}

fn restarted_once(target: &dyn TestTarget) {
    let namespace = target.namespace();
    target.create(&namespace, &[marked("1"), deployment("user", "settings"), deployment("other", "else")]);
    let wanted = [settings("settings", "2")];
    let dry = run(target, &namespace, &wanted, Mode::DryRun);
    let wait = format!(
        "Deployment.apps `user` in `{namespace}` will be restarted after ConfigMap `settings` in `{namespace}` changes"
    );
    assert_eq!(shown(&dry), ["change ConfigMap settings".to_owned(), wait]);
    assert_eq!(cause(target, &namespace, "user"), None);

    let real = run(target, &namespace, &wanted, Mode::Real);
    assert_eq!(
        shown(&real),
        [
            "change ConfigMap settings",
            "restart Deployment user",
            "clear the restart note of ConfigMap settings"
        ]
    );
    let why = cause(target, &namespace, "user").unwrap();
    assert!(why.starts_with("ConfigMap/settings@"), "{why}");
    assert_eq!((cause(target, &namespace, "other"), is_pending(target, &namespace)), (None, false));

    assert!(shown(&run(target, &namespace, &wanted, Mode::Real)).is_empty());
    assert_eq!(cause(target, &namespace, "user"), Some(why));
}

fn not_for_labels(target: &dyn TestTarget) {
    let namespace = target.namespace();
    target.create(&namespace, &[marked("1"), deployment("user", "settings")]);
    let mut labelled = settings("settings", "1");
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let real = run(target, &namespace, &[labelled], Mode::Real);
    assert_eq!(shown(&real), ["change ConfigMap settings"]);
    assert_eq!(cause(target, &namespace, "user"), None);
}

/// The run ends after the write: only the note is left.
fn after_a_crash(target: &dyn TestTarget) {
    let namespace = target.namespace();
    target.create(&namespace, &[marked("1"), deployment("user", "settings")]);
    let wanted = [settings("settings", "2")];
    integration(target, &namespace, &wanted, Mode::Real).rounds(1).run(Mode::Real);
    assert_eq!((cause(target, &namespace, "user"), is_pending(target, &namespace)), (None, true));
    let real = run(target, &namespace, &wanted, Mode::Real);
    assert_eq!(shown(&real), ["restart Deployment user", "clear the restart note of ConfigMap settings"]);
    assert!(cause(target, &namespace, "user").is_some() && !is_pending(target, &namespace));
}

/// A key of another manager does not cause repeated restarts.
fn with_a_key_of_others(target: &dyn TestTarget) {
    let namespace = target.namespace();
    target.create(&namespace, &[marked("1"), deployment("user", "settings")]);
    target.edit(&namespace, "ConfigMap", "settings", &json!({"data": {"injected": "by others"}}));
    let wanted = [settings("settings", "2")];
    run(target, &namespace, &wanted, Mode::Real);
    assert!(cause(target, &namespace, "user").is_some() && !is_pending(target, &namespace));
    assert!(shown(&run(target, &namespace, &wanted, Mode::Real)).is_empty());
}

/// Each repair of a manual change is a change of its own.
fn each_repair(target: &dyn TestTarget) {
    let namespace = target.namespace();
    target.create(&namespace, &[marked("1"), deployment("user", "settings")]);
    let wanted = [settings("settings", "1")];
    let mut causes = std::collections::BTreeSet::new();
    for value in ["x", "y"] {
        target.edit(&namespace, "ConfigMap", "settings", &json!({"data": {"x": value}}));
        run(target, &namespace, &wanted, Mode::Real);
        causes.insert(cause(target, &namespace, "user").unwrap());
    }
    assert_eq!(causes.len(), 2, "{causes:?}");
}

/// Two objects change, and the run ends after each round: the workload is restarted once.
fn two_at_once(target: &dyn TestTarget) {
    let namespace = target.namespace();
    let (mut first, mut second) = (marked("1"), marked("1"));
    first["metadata"]["name"] = "first".into();
    second["metadata"]["name"] = "second".into();
    let mut user = deployment("user", "first");
    let both = json!([{"configMapRef": {"name": "first"}}, {"configMapRef": {"name": "second"}}]);
    user["spec"]["template"]["spec"]["containers"][0]["envFrom"] = both;
    target.create(&namespace, &[first, second, user]);
    let wanted = [settings("first", "2"), settings("second", "2")];
    let mut causes = std::collections::BTreeSet::new();
    for _ in 0..4 {
        integration(target, &namespace, &wanted, Mode::Real).rounds(1).run(Mode::Real);
        causes.extend(cause(target, &namespace, "user"));
    }
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(!is_pending(target, &namespace));
}

#[test]
fn a_key_of_others_does_not_cause_repeated_restarts_on_the_sandbox() {
    with_a_key_of_others(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_key_of_others_does_not_cause_repeated_restarts_on_a_real_cluster() {
    with_a_key_of_others(&RealCluster::new());
}

#[test]
fn each_repair_restarts_on_the_sandbox() {
    each_repair(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn each_repair_restarts_on_a_real_cluster() {
    each_repair(&RealCluster::new());
}

#[test]
fn two_changes_restart_once_on_the_sandbox() {
    two_at_once(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn two_changes_restart_once_on_a_real_cluster() {
    two_at_once(&RealCluster::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_object_that_is_created_after_its_users_restarts_them_on_a_real_cluster() {
    let target = RealCluster::new();
    let namespace = target.namespace();
    target.create(&namespace, &[deployment("user", "settings")]);
    // Creation times have a resolution of one second.
    qontract_testkit::eventually("the workload is older", || {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let all = target.list(&namespace, &["Deployment"]);
        (all[0]["metadata"]["creationTimestamp"].as_str().unwrap() < now.as_str()).then_some(())
    });
    run(&target, &namespace, &[settings("settings", "1")], Mode::Real);
    assert!(cause(&target, &namespace, "user").is_some() && !is_pending(&target, &namespace));
}

#[test]
fn users_are_restarted_once_on_the_sandbox() {
    restarted_once(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn users_are_restarted_once_on_a_real_cluster() {
    restarted_once(&RealCluster::new());
}

#[test]
fn other_changes_restart_nothing_on_the_sandbox() {
    not_for_labels(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn other_changes_restart_nothing_on_a_real_cluster() {
    not_for_labels(&RealCluster::new());
}

#[test]
fn a_crash_loses_no_restart_on_the_sandbox() {
    after_a_crash(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_crash_loses_no_restart_on_a_real_cluster() {
    after_a_crash(&RealCluster::new());
}
