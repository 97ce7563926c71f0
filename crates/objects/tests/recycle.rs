//! Workloads that use what changed are restarted, once, and no crash loses a restart; on the sandbox and on a real
//! cluster.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod ground;
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod yard;
}

use qontract_access::Mode;
use qontract_inventory::{Callers, Owner};
use qontract_runtime::Outcome;
use serde_json::{Value, json};
use support::ground::{Folder, Ground, RealCluster, grown};
use support::yard::{Wish, Yard};

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

fn run(ground: &dyn Ground, namespace: &str, wanted: &[Value], mode: Mode) -> Outcome {
    yard(ground, namespace, wanted, mode).run(mode)
}

fn yard(ground: &dyn Ground, namespace: &str, wanted: &[Value], mode: Mode) -> Yard {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let yard =
        Yard::new(ground.kubernetes(mode), ground.cluster(), owner, &["ConfigMap"]).callers(Callers::Unknown);
    yard.plot(namespace, wanted.iter().cloned().map(Wish::for_object).collect())
}

/// Why a workload was restarted the last time.
fn cause(ground: &dyn Ground, namespace: &str, name: &str) -> Option<String> {
    let all = ground.harvest(namespace, &["Deployment"]);
    let one = all.iter().find(|object| object["metadata"]["name"] == name).unwrap();
    one["spec"]["template"]["metadata"]["annotations"][RECYCLED].as_str().map(str::to_owned)
}

fn is_pending(ground: &dyn Ground, namespace: &str) -> bool {
    let all = ground.harvest(namespace, &["ConfigMap"]);
    all.iter().any(|object| object["metadata"]["annotations"][PENDING].is_string())
}

fn shown(outcome: &Outcome) -> Vec<String> {
    let shard = outcome.shards.values().next().unwrap();
    assert!(shard.faults.is_empty(), "{:?}", shard.faults);
    let changes = shard.changes.iter().map(|change| format!("{} {}", change.what, change.thing.name));
    changes.chain(shard.waits.iter().map(|wait| wait.text.clone())).collect()
}

fn marked(value: &str) -> Value {
    let mut object = settings("settings", value);
    object["owner"] = "openshift_resources 1.9.3".into();
    grown(object)
}

fn restarted_once(ground: &dyn Ground) {
    let namespace = ground.namespace();
    ground.plant(&namespace, &[marked("1"), deployment("user", "settings"), deployment("other", "else")]);
    let wanted = [settings("settings", "2")];
    let dry = run(ground, &namespace, &wanted, Mode::DryRun);
    let told = format!(
        "Deployment.apps `user` in `{namespace}` is restarted once ConfigMap `settings` in `{namespace}` has changed"
    );
    assert_eq!(shown(&dry), ["change ConfigMap settings".to_owned(), told]);
    assert_eq!(cause(ground, &namespace, "user"), None);

    let real = run(ground, &namespace, &wanted, Mode::Real);
    assert_eq!(
        shown(&real),
        ["change ConfigMap settings", "restart Deployment user", "note the restarts for ConfigMap settings"]
    );
    let why = cause(ground, &namespace, "user").unwrap();
    assert!(why.starts_with("ConfigMap/settings@"), "{why}");
    assert_eq!((cause(ground, &namespace, "other"), is_pending(ground, &namespace)), (None, false));

    assert!(shown(&run(ground, &namespace, &wanted, Mode::Real)).is_empty());
    assert_eq!(cause(ground, &namespace, "user"), Some(why));
}

fn not_for_labels(ground: &dyn Ground) {
    let namespace = ground.namespace();
    ground.plant(&namespace, &[marked("1"), deployment("user", "settings")]);
    let mut labelled = settings("settings", "1");
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let real = run(ground, &namespace, &[labelled], Mode::Real);
    assert_eq!(shown(&real), ["change ConfigMap settings"]);
    assert_eq!(cause(ground, &namespace, "user"), None);
}

/// The run ends after the write: what is left is the note.
fn after_a_crash(ground: &dyn Ground) {
    let namespace = ground.namespace();
    ground.plant(&namespace, &[marked("1"), deployment("user", "settings")]);
    let wanted = [settings("settings", "2")];
    yard(ground, &namespace, &wanted, Mode::Real).rounds(1).run(Mode::Real);
    assert_eq!((cause(ground, &namespace, "user"), is_pending(ground, &namespace)), (None, true));
    let real = run(ground, &namespace, &wanted, Mode::Real);
    assert_eq!(shown(&real), ["restart Deployment user", "note the restarts for ConfigMap settings"]);
    assert!(cause(ground, &namespace, "user").is_some() && !is_pending(ground, &namespace));
}

/// Somebody else's key is no reason to restart again and again.
fn beside_a_key_of_others(ground: &dyn Ground) {
    let namespace = ground.namespace();
    ground.plant(&namespace, &[marked("1"), deployment("user", "settings")]);
    ground.edit(&namespace, "ConfigMap", "settings", &json!({"data": {"injected": "by others"}}));
    let wanted = [settings("settings", "2")];
    run(ground, &namespace, &wanted, Mode::Real);
    assert!(cause(ground, &namespace, "user").is_some() && !is_pending(ground, &namespace));
    assert!(shown(&run(ground, &namespace, &wanted, Mode::Real)).is_empty());
}

/// What is put right is a change each time.
fn each_time_it_is_put_right(ground: &dyn Ground) {
    let namespace = ground.namespace();
    ground.plant(&namespace, &[marked("1"), deployment("user", "settings")]);
    let wanted = [settings("settings", "1")];
    let mut causes = std::collections::BTreeSet::new();
    for value in ["x", "y"] {
        ground.edit(&namespace, "ConfigMap", "settings", &json!({"data": {"x": value}}));
        run(ground, &namespace, &wanted, Mode::Real);
        causes.insert(cause(ground, &namespace, "user").unwrap());
    }
    assert_eq!(causes.len(), 2, "{causes:?}");
}

/// Two things change, and the run ends after each round: the workload is restarted once.
fn two_at_once(ground: &dyn Ground) {
    let namespace = ground.namespace();
    let (mut first, mut second) = (marked("1"), marked("1"));
    first["metadata"]["name"] = "first".into();
    second["metadata"]["name"] = "second".into();
    let mut user = deployment("user", "first");
    let both = json!([{"configMapRef": {"name": "first"}}, {"configMapRef": {"name": "second"}}]);
    user["spec"]["template"]["spec"]["containers"][0]["envFrom"] = both;
    ground.plant(&namespace, &[first, second, user]);
    let wanted = [settings("first", "2"), settings("second", "2")];
    let mut causes = std::collections::BTreeSet::new();
    for _ in 0..4 {
        yard(ground, &namespace, &wanted, Mode::Real).rounds(1).run(Mode::Real);
        causes.extend(cause(ground, &namespace, "user"));
    }
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert!(!is_pending(ground, &namespace));
}

#[test]
fn a_key_of_others_restarts_nothing_for_ever_on_the_sandbox() {
    beside_a_key_of_others(&Folder::new());
}

#[test]
fn a_key_of_others_restarts_nothing_for_ever_on_a_real_cluster() {
    beside_a_key_of_others(&RealCluster::new());
}

#[test]
fn it_is_restarted_each_time_that_something_is_put_right_on_the_sandbox() {
    each_time_it_is_put_right(&Folder::new());
}

#[test]
fn it_is_restarted_each_time_that_something_is_put_right_on_a_real_cluster() {
    each_time_it_is_put_right(&RealCluster::new());
}

#[test]
fn two_changes_restart_once_on_the_sandbox() {
    two_at_once(&Folder::new());
}

#[test]
fn two_changes_restart_once_on_a_real_cluster() {
    two_at_once(&RealCluster::new());
}

#[test]
fn what_is_made_anew_after_its_users_restarts_them_on_a_real_cluster() {
    let ground = RealCluster::new();
    let namespace = ground.namespace();
    ground.plant(&namespace, &[deployment("user", "settings")]);
    // Times of creation are of whole seconds.
    qontract_testkit::eventually("the workload is older", || {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let all = ground.harvest(&namespace, &["Deployment"]);
        (all[0]["metadata"]["creationTimestamp"].as_str().unwrap() < now.as_str()).then_some(())
    });
    run(&ground, &namespace, &[settings("settings", "1")], Mode::Real);
    assert!(cause(&ground, &namespace, "user").is_some() && !is_pending(&ground, &namespace));
}

#[test]
fn what_uses_it_is_restarted_once_on_the_sandbox() {
    restarted_once(&Folder::new());
}

#[test]
fn what_uses_it_is_restarted_once_on_a_real_cluster() {
    restarted_once(&RealCluster::new());
}

#[test]
fn other_changes_restart_nothing_on_the_sandbox() {
    not_for_labels(&Folder::new());
}

#[test]
fn other_changes_restart_nothing_on_a_real_cluster() {
    not_for_labels(&RealCluster::new());
}

#[test]
fn a_crash_loses_no_restart_on_the_sandbox() {
    after_a_crash(&Folder::new());
}

#[test]
fn a_crash_loses_no_restart_on_a_real_cluster() {
    after_a_crash(&RealCluster::new());
}
