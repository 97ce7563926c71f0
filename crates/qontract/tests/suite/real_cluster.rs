//! Tests of namespaces and their labels on a real API server.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::time::Duration;

use crate::support::cluster::{ClusterFixture, phase};
use qontract_testkit::eventually;
use qontract_testkit::{SeededRng, chaos_count};
use serde_json::json;

/// The integration that owns the labels of namespaces.
const LABELS: &str = "openshift-namespace-labels";

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn namespaces_are_created_marked_labelled_and_removed() {
    let stage = ClusterFixture::new();
    let (kept, gone) = (stage.name("kept"), stage.name("gone"));
    stage.declare(&kept, "labels: {team: shop}");
    stage.declare(&gone, "");
    let (code, plan) = stage.reconcile(&["--dry-run"]);
    let lines: Vec<&str> = plan.lines().filter(|line| line.starts_with('+')).collect();
    let line = |name: &str| format!("+ create Namespace `{name}` (cluster=c1)");
    assert_eq!((code, lines), (0, vec![line(&gone).as_str(), line(&kept).as_str()]), "{plan}");
    assert_eq!(stage.namespace(&kept), None, "a dry run makes nothing");

    assert_eq!(stage.reconcile(&[]).0, 0);
    assert_eq!(stage.run(LABELS, &[]).0, 0);
    let made = stage.namespace(&kept).unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "shop");
    assert_eq!(made["metadata"]["annotations"]["qontract.integration"], "openshift-namespaces");
    for integration in ["openshift-namespaces", LABELS] {
        let (code, plan) = stage.run(integration, &[]);
        assert_eq!((code, plan.as_str()), (0, ""), "the second run of {integration} has nothing to do");
    }
    assert_eq!(
        stage.namespace(&kept).unwrap()["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );

    stage.api.kubectl(&["label", "namespace", &kept, "team=books", "mine=stays", "--overwrite"], "").text();
    stage.declare(&kept, "labels: {team: shop, tier: one}");
    stage.declare(&gone, "delete: true");
    // A namespace whose removal takes long: the run that has started it waits for it.
    let finalizers = |list: &str| {
        let patch = format!(r#"{{"metadata": {{"finalizers": {list}}}}}"#);
        stage.api.kubectl(&["patch", "namespace", &gone, "--type", "merge", "--patch", &patch], "").text();
    };
    finalizers(r#"["example.com/slow"]"#);
    let (code, plan) = stage.run("openshift-namespaces", &[]);
    assert!(code == 75 && plan.contains("is being removed"), "{code}: {plan}");
    finalizers("[]");
    let (code, plan) = stage.run(LABELS, &[]);
    assert_eq!(code, 0, "{plan}");
    let labels = &stage.namespace(&kept).unwrap()["metadata"]["labels"];
    assert_eq!(
        (&labels["team"], &labels["tier"], &labels["mine"]),
        (&"shop".into(), &"one".into(), &"stays".into())
    );
    eventually("the namespace is gone", || stage.namespace(&gone).is_none().then_some(()));
    let (code, plan) = stage.run("openshift-namespaces", &[]);
    assert_eq!((code, plan.as_str()), (0, ""), "nothing is left to wait for");
    stage.declare(&kept, "labels: {tier: one}");
    assert_eq!(stage.run(LABELS, &[]).0, 0);
    let labels = &stage.namespace(&kept).unwrap()["metadata"]["labels"];
    assert_eq!(
        (labels.get("team"), labels["mine"].as_str()),
        (None, Some("stays")),
        "what is not declared goes"
    );
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_namespace_that_kubectl_applied_is_adopted_and_keeps_its_labels() {
    let stage = ClusterFixture::new();
    let name = stage.name("applied");
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"old": "field", "team": "shop"}}});
    stage.api.kubectl(&["apply", "--filename", "-"], &object.to_string()).text();
    stage.declare(&name, "labels: {team: shop}");
    let (code, plan) = stage.reconcile(&[]);
    assert_eq!(code, 0, "{plan}");
    assert!(plan.contains(&format!("~ adopt Namespace `{name}`")), "{plan}");
    let (code, plan) = stage.run(LABELS, &[]);
    assert!(code == 0 && plan.contains(&format!("~ record the labels of Namespace `{name}`")), "{plan}");
    let labels = &stage.namespace(&name).unwrap()["metadata"]["labels"];
    assert_eq!((&labels["old"], &labels["team"]), (&"field".into(), &"shop".into()));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_label_that_a_program_manages_is_a_conflict() {
    let stage = ClusterFixture::new();
    let (name, other) = (stage.name("contended"), stage.name("other"));
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"team": "books"}}});
    let words = ["apply", "--server-side", "--field-manager", "some-operator", "--filename", "-"];
    stage.api.kubectl(&words, &object.to_string()).text();
    stage.declare(&name, "labels: {team: shop, tier: one}");
    stage.declare(&other, "labels: {team: shop}");
    assert_eq!(stage.reconcile(&[]).0, 0);
    let (code, plan) = stage.run(LABELS, &[]);
    assert_eq!(code, 1, "{plan}");
    assert!(plan.contains("is `books`, set by another owner"), "{plan}");
    let labels = |name: &str| stage.namespace(name).unwrap()["metadata"]["labels"].clone();
    assert_eq!((&labels(&name)["team"], &labels(&name)["tier"]), (&"books".into(), &"one".into()));
    assert_eq!(labels(&other)["team"], "shop", "the rest goes on");
    // The cluster reports that another manager owns a field that qontract owned before.
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": other, "labels": {"team": "books"}}});
    let words = [&words[..], &["--force-conflicts"]].concat();
    stage.api.kubectl(&words, &object.to_string()).text();
    let secrets = format!("[creds.admin]\ntoken = {:?}\n", stage.api.token);
    for validates in [true, false] {
        stage.configure(&secrets);
        if !validates {
            stage.write_config(&format!("[kubernetes]\nca = \"{}\"\n\n{secrets}", stage.api.ca.display()));
        }
        for more in [&["--dry-run"][..], &[]] {
            let (code, plan) = stage.run(LABELS, &[&["--namespace-name", &other], more].concat());
            assert!(code == 1 && plan.contains("`some-operator` owns"), "{validates} {more:?}: {plan}");
        }
    }
    assert_eq!(labels(&other)["team"], "books");
}

/// Plans and runs quotas with and without validation on the cluster, while another manager owns a field.
#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_dry_run_shows_the_field_managers_that_the_real_run_meets() {
    let stage = ClusterFixture::new();
    let name = stage.name("managed");
    let quota = "$schema: /openshift/quota-1.yml\nname: q\nquotas:\n- name: compute\n  resources: {limits: {cpu: \"1\"}}\n";
    stage.write("data/quota.yml", quota);
    stage.declare(&name, "quota: {$ref: /quota.yml}");
    let quotas = |more: &[&str]| stage.run("openshift-resourcequotas", more);
    assert_eq!((stage.reconcile(&[]).0, quotas(&[]).0), (0, 0));
    let set = |manager: &str, cpu: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": "compute", "namespace": name}, "spec": {"hard": {"limits.cpu": cpu}}});
        let words =
            ["apply", "--server-side", "--force-conflicts", "--field-manager", manager, "--filename", "-"];
        stage.api.kubectl(&words, &object.to_string()).text();
    };
    let cpu = || {
        let words = ["get", "resourcequota", "compute", "--namespace", &name, "--output", "json"];
        let live: serde_json::Value = serde_json::from_str(&stage.api.kubectl(&words, "").text()).unwrap();
        live["spec"]["hard"]["limits.cpu"].as_str().unwrap_or_default().to_owned()
    };
    let without_validation = || {
        let ca = stage.api.ca.display();
        stage.write_config(&format!(
            "[kubernetes]\nca = \"{ca}\"\n\n[creds.admin]\ntoken = {:?}\n",
            stage.api.token
        ));
    };
    let with_validation = || stage.configure(&format!("[creds.admin]\ntoken = {:?}\n", stage.api.token));

    set("quota-operator", "2");
    with_validation();
    let validated = quotas(&["--dry-run"]);
    without_validation();
    let predicted = quotas(&["--dry-run"]);
    for (code, plan) in [&validated, &predicted, &quotas(&[])] {
        assert_eq!(*code, 1, "{plan}");
        assert!(plan.contains("conflicts with other managers: `quota-operator` owns"), "{plan}");
        assert!(
            plan.contains("hint: remove these fields from the data, or from the other manager"),
            "{plan}"
        );
        assert!(!plan.contains("overrules"), "{plan}");
    }
    assert_eq!(cpu(), "2", "the write is refused");

    // The fields of a person are taken, and the plan says so.
    stage.api.kubectl(&["delete", "resourcequota", "compute", "--namespace", &name], "").text();
    assert_eq!(quotas(&[]).0, 0);
    set("kubectl-edit", "3");
    let note = "overrules the field manager `kubectl-edit`, which set `spec.hard[\"limits.cpu\"]`";
    for more in [&["--dry-run"][..], &[]] {
        let (code, plan) = quotas(more);
        assert!(code == 0 && plan.contains(note), "{plan}");
    }
    assert_eq!(cpu(), "1");
    assert_eq!(quotas(&[]), (0, String::new()), "the second run has nothing to do");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_unreachable_cluster_is_reported_and_the_others_are_processed() {
    let stage = ClusterFixture::new();
    let name = stage.name("reached");
    stage.declare(&name, "");
    stage.write("data/clusters/c2.yml", &ClusterFixture::cluster("c2", "https://127.0.0.1:9"));
    stage.write(
        "data/away.yml",
        "$schema: /openshift/namespace-1.yml\nname: away\ncluster: {$ref: /clusters/c2.yml}\ndelete: true\n",
    );
    let (code, plan) = stage.reconcile(&[]);
    assert_eq!(code, 75, "{plan}");
    assert!(plan.contains("error: cannot read `cluster=c2`: cannot reach cluster `c2`"), "{plan}");
    assert!(stage.namespace(&name).is_some());
    let (code, plan) = stage.reconcile(&["--cluster-name", "c1"]);
    assert_eq!((code, plan.as_str()), (0, ""));
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_dry_run_validates_objects_in_the_cluster() {
    let stage = ClusterFixture::new();
    let name = stage.name("refused");
    let quota = |cpu: &str| {
        let text = "$schema: /openshift/quota-1.yml\nname: q\nquotas:\n- name: compute\n  resources: {limits: {cpu: CPU}}\n";
        stage.write("data/quota.yml", &text.replace("CPU", cpu));
        stage.declare(&name, "quota: {$ref: /quota.yml}");
    };
    let quotas = |more: &[&str]| stage.run("openshift-resourcequotas", more);
    // A quantity, which only the cluster refuses.
    quota("\"-1\"");
    assert_eq!(stage.reconcile(&[]).0, 0);
    let (code, plan) = quotas(&["--dry-run"]);
    assert_eq!(code, 1, "{plan}");
    assert!(
        plan.contains("+ create ResourceQuota")
            && plan.contains("    error: ")
            && plan.contains("greater than or equal to 0"),
        "{plan}"
    );
    // A change of an object that qontract manages is not a conflict.
    quota("\"1\"");
    assert_eq!(quotas(&[]).0, 0);
    assert_eq!(quotas(&[]), (0, String::new()), "what the cluster makes of it is what was declared");
    quota("\"2\"");
    let (code, plan) = quotas(&["--dry-run"]);
    assert_eq!(code, 0, "{plan}");
    assert!(plan.contains("~ change ResourceQuota `compute`"), "{plan}");
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn an_object_that_a_cluster_defaults_equals_its_declaration() {
    let stage = ClusterFixture::new();
    let (name, other) = (stage.name("all"), stage.name("let-in"));
    let role = stage.name("role");
    for (file, text) in [
        ("quota", "$schema: /openshift/quota-1.yml\nname: q\nquotas:\n- name: jobs\n  resources: {limits: {cpu: '1'}, pods: 3}\n  scopes: [Terminating]\n- name: objects\n  resources: {pods: 1000}\n".to_owned()),
        ("limits", "$schema: /openshift/limitrange-1.yml\nname: l\nlimits:\n- type: Container\n  default: {memory: 1024Mi}\n  max: {cpu: 1000m}\n".to_owned()),
        ("role", format!("$schema: /access/role-1.yml\nname: r\naccess:\n- namespace: {{$ref: /{name}.yml}}\n  role: view\n- cluster: {{$ref: /clusters/c1.yml}}\n  clusterRole: {role}\n")),
        ("ann", "$schema: /access/user-1.yml\nname: ann\norg_username: ann\ngithub_username: ann\nroles: [{$ref: /role.yml}]\n".to_owned()),
        ("bot", "$schema: /access/bot-1.yml\nname: ci\nopenshift_serviceaccount: pipelines/ci\nroles: [{$ref: /role.yml}]\n".to_owned()),
    ] {
        stage.write(&format!("data/{file}.yml"), &text);
    }
    let allow = format!("networkPoliciesAllow: [{{$ref: /{other}.yml}}]");
    let all = format!(
        "managedRoles: true\nquota: {{$ref: /quota.yml}}\nlimitRanges: {{$ref: /limits.yml}}\n{allow}"
    );
    stage.declare(&name, &all);
    stage.declare(&other, "");
    let server = ClusterFixture::cluster("c1", &stage.api.url);
    stage.write("data/clusters/c1.yml", &format!("{server}managedClusterRoles: true\n"));
    assert_eq!(stage.reconcile(&[]).0, 0);
    let integrations =
        ["limitranges", "network-policies", "resourcequotas", "rolebindings", "clusterrolebindings"];
    for integration in integrations.map(|integration| format!("openshift-{integration}")) {
        let (code, plan) = stage.run(&integration, &[]);
        assert!(code == 0 && plan.contains("+ create"), "{integration}: {plan}");
        let again = stage.run(&integration, &[]);
        assert_eq!(again, (0, String::new()), "{integration}");
    }
    // Cluster-scoped objects are not left to others.
    for who in ["ann", "pipelines-ci"] {
        stage.api.kubectl(&["delete", "clusterrolebinding", &format!("{role}-{who}")], "").text();
    }
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn errors_of_the_operator_are_reported_as_such() {
    let stage = ClusterFixture::new();
    stage.declare(&stage.name("never"), "");
    for (config, expect) in [
        ("[creds.admin]\ntoken = \"wrong\"\n", "the credentials are not accepted"),
        ("[creds.admin]\ntoken = \"a\\nb\"\n", "its token or address cannot be used in an HTTP request"),
        (
            "[creds.admin]\ntoken = \"x\"\nserver = \"https://elsewhere.example.com\"\n",
            "its credentials are for the server `https://elsewhere.example.com`",
        ),
        ("[creds.other]\ntoken = \"x\"\n", "creds/admin"),
    ] {
        stage.configure(config);
        let (code, plan) = stage.reconcile(&["--dry-run"]);
        assert!(code == 1 && plan.contains(expect) && plan.contains("hint: "), "{code}: {plan}");
    }
    stage.write("data/clusters/c1.yml", &ClusterFixture::cluster("c1", "https://ann:hunter2@127.0.0.1:9"));
    let (code, plan) = stage.reconcile(&["--dry-run"]);
    assert!(
        code == 1 && plan.contains("has a user name or password") && !plan.contains("hunter2"),
        "{code}: {plan}"
    );
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn slots_split_the_namespaces() {
    let stage = ClusterFixture::new();
    let names: Vec<String> = (0..6).map(|number| stage.name(&format!("slot{number}"))).collect();
    for name in &names {
        stage.declare(name, "");
    }
    for id in ["0", "1", "2"] {
        let before = names.iter().filter(|name| stage.namespace(name).is_some()).count();
        let (code, plan) = stage.reconcile_with(&[], &[("SHARDS", "3"), ("SHARD_ID", id)]);
        assert_eq!(code, 0, "{plan}");
        let after = names.iter().filter(|name| stage.namespace(name).is_some()).count();
        assert_eq!(plan.lines().filter(|line| line.starts_with("✓ +")).count(), after - before);
    }
    assert!(names.iter().all(|name| stage.namespace(name).is_some()));
}

/// Kills the process at random points while it writes 200 objects. The next run finishes, and other objects
/// are untouched.
#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_run_that_is_killed_at_any_point_converges() {
    let rounds = chaos_count(6);
    let stage = ClusterFixture::new();
    let foreign = stage.name("foreign");
    stage.api.kubectl(&["create", "namespace", &foreign], "").text();
    let untouched = stage.namespace(&foreign).unwrap();
    let names: Vec<String> = (0..200).map(|number| stage.name(&format!("kill{number}"))).collect();
    let mut chance = SeededRng::new(7);
    let (mut killed, mut half) = (0, 0);
    // Each round writes a label to all of them.
    for name in &names {
        stage.declare(name, "");
    }
    assert_eq!(stage.reconcile(&[]).0, 0);
    for round in 0..rounds {
        for name in &names {
            stage.declare(name, &format!("labels: {{round: r{round}}}"));
        }
        let patience = Duration::from_millis(300 + chance.below(2500) as u64);
        killed += usize::from(stage.kill_after(LABELS, patience));
        let done = stage.count(&format!("round=r{round}"));
        half += usize::from(done > 0 && done < names.len());
        let (code, plan) = stage.run(LABELS, &[]);
        assert_eq!(code, 0, "round {round}: {plan}");
        assert_eq!(stage.count(&format!("round=r{round}")), names.len(), "round {round}");
        let (code, plan) = stage.run(LABELS, &["--dry-run"]);
        assert_eq!((code, plan.as_str()), (0, ""), "round {round}: the second plan is empty");
    }
    assert!(
        killed > 0 && half > 0,
        "{killed} of {rounds} were killed, {half} of them while writing: too few"
    );
    let now = stage.namespace(&foreign).unwrap();
    assert_eq!(now["metadata"]["resourceVersion"], untouched["metadata"]["resourceVersion"]);
    assert_eq!(phase(&now), "Active");
}
