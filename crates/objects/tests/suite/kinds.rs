//! Tests which kinds can be managed, and the order of kinds.

use qontract_access::Mode;
use qontract_inventory::Owner;
use qontract_runtime::RunOutcome;
use qontract_testkit::cluster::unique_name;
use serde_json::{Value, json};

use crate::support::test_integration::{TestIntegration, TestObject};
use crate::support::test_target::{RealCluster, SandboxTarget, TestTarget, with_marks};

fn integration(target: &dyn TestTarget, mode: Mode, kinds: &[&str]) -> TestIntegration {
    let owner = Owner::of("openshift-resources", None).unwrap();
    TestIntegration::new(target.kubernetes(mode), target.cluster(), owner, kinds)
}

fn report_lines(outcome: &RunOutcome) -> Vec<String> {
    let shard = outcome.shards.values().next().unwrap();
    let changes = shard.changes.iter().map(|change| format!("{} {}", change.what, change.object.name));
    changes.chain(shard.faults.iter().map(|fault| fault.text.clone())).collect()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}}})
}

#[test]
fn a_kind_that_is_listed_twice_is_an_error_and_nothing_is_removed() {
    let target = SandboxTarget::new();
    let namespace = target.namespace();
    let mut old = deployment();
    old["owner"] = "openshift_resources 1.9.3".into();
    target.create(&namespace, &[with_marks(old)]);
    let integration = integration(&target, Mode::Real, &["Deployment", "Deployment.apps"]);
    let outcome =
        integration.with_namespace(&namespace, vec![TestObject::for_object(deployment())]).run(Mode::Real);
    let report_lines = report_lines(&outcome);
    assert!(
        report_lines
            .iter()
            .all(|line| line.ends_with("`Deployment` and `Deployment.apps` are the same kind: list it once")),
        "{report_lines:?}"
    );
    assert_eq!(target.list(&namespace, &["Deployment"]).len(), 1);
}

#[test]
fn a_cluster_scoped_kind_needs_names_in_a_namespace() {
    let target = SandboxTarget::new();
    let namespace = target.namespace();
    let outcome = integration(&target, Mode::Real, &["ClusterRole"])
        .with_namespace(&namespace, Vec::new())
        .run(Mode::Real);
    let report_lines = report_lines(&outcome);
    assert!(
        report_lines[0]
            .ends_with("ClusterRole is cluster-scoped: list the names that this namespace manages"),
        "{report_lines:?}"
    );
}

/// A definition and an object of its kind are created in one run: the definition first, and the cluster takes
/// a moment to serve the kind.
fn defined_and_used_at_once(target: &dyn TestTarget) {
    let namespace = target.namespace();
    let word = unique_name("w").replace('-', "");
    let (plural, group) = (format!("{word}s"), format!("{word}.example.com"));
    let name = format!("{plural}.{group}");
    let kind = format!("W{}", &word[1..]);
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": word, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "one"}, "spec": {"a": 1}});
    let objects = || vec![TestObject::for_object(object.clone()), TestObject::for_object(definition.clone())];
    let integration = |mode| {
        integration(target, mode, &[&kind])
            .named("CustomResourceDefinition", &[&name])
            .with_namespace(&namespace, objects())
    };
    let real = integration(Mode::Real).run(Mode::Real);
    assert_eq!(
        report_lines(&real),
        [format!("create CustomResourceDefinition {name}"), format!("create {kind} one")]
    );
    assert_eq!(report_lines(&integration(Mode::DryRun).run(Mode::DryRun)), [""; 0]);
}

#[test]
fn a_definition_is_created_before_its_objects_on_the_sandbox() {
    defined_and_used_at_once(&SandboxTarget::new());
}

#[test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
fn a_definition_is_created_before_its_objects_on_a_real_cluster() {
    defined_and_used_at_once(&RealCluster::new());
}
