//! Which kinds can be looked after, and in which order they come.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod ground;
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod yard;
}

use qontract_access::Mode;
use qontract_inventory::Owner;
use qontract_runtime::Outcome;
use qontract_testkit::cluster::unique_name;
use serde_json::{Value, json};
use support::ground::{Folder, Ground, RealCluster, grown};
use support::yard::{Wish, Yard};

fn yard(ground: &dyn Ground, mode: Mode, kinds: &[&str]) -> Yard {
    let owner = Owner::of("openshift-resources", None).unwrap();
    Yard::new(ground.kubernetes(mode), ground.cluster(), owner, kinds)
}

fn told(outcome: &Outcome) -> Vec<String> {
    let shard = outcome.shards.values().next().unwrap();
    let changes = shard.changes.iter().map(|change| format!("{} {}", change.what, change.thing.name));
    changes.chain(shard.faults.iter().map(|fault| fault.text.clone())).collect()
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}}})
}

#[test]
fn a_kind_that_is_named_twice_is_an_error_and_nothing_of_it_is_removed() {
    let ground = Folder::new();
    let namespace = ground.namespace();
    let mut old = deployment();
    old["owner"] = "openshift_resources 1.9.3".into();
    ground.plant(&namespace, &[grown(old)]);
    let yard = yard(&ground, Mode::Real, &["Deployment", "Deployment.apps"]);
    let outcome = yard.plot(&namespace, vec![Wish::for_object(deployment())]).run(Mode::Real);
    let told = told(&outcome);
    assert!(
        told.iter()
            .all(|line| line.ends_with("`Deployment` and `Deployment.apps` are the same kind: name it once")),
        "{told:?}"
    );
    assert_eq!(ground.harvest(&namespace, &["Deployment"]).len(), 1);
}

#[test]
fn what_is_in_no_namespace_is_looked_after_from_one_only_by_name() {
    let ground = Folder::new();
    let namespace = ground.namespace();
    let outcome = yard(&ground, Mode::Real, &["ClusterRole"]).plot(&namespace, Vec::new()).run(Mode::Real);
    let told = told(&outcome);
    assert!(
        told[0].ends_with("ClusterRole is not in namespaces: name those that are looked after from this one"),
        "{told:?}"
    );
}

/// A definition and what is of it come in one run: the definition first, and the cluster takes a moment to know it.
fn defined_and_used_at_once(ground: &dyn Ground) {
    let namespace = ground.namespace();
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
    let wishes = || vec![Wish::for_object(object.clone()), Wish::for_object(definition.clone())];
    let yard = |mode| {
        yard(ground, mode, &[&kind]).named("CustomResourceDefinition", &[&name]).plot(&namespace, wishes())
    };
    let real = yard(Mode::Real).run(Mode::Real);
    assert_eq!(
        told(&real),
        [format!("create CustomResourceDefinition {name}"), format!("create {kind} one")]
    );
    assert_eq!(told(&yard(Mode::DryRun).run(Mode::DryRun)), [""; 0]);
}

#[test]
fn a_definition_comes_before_what_is_of_it_on_the_sandbox() {
    defined_and_used_at_once(&Folder::new());
}

#[test]
fn a_definition_comes_before_what_is_of_it_on_a_real_cluster() {
    defined_and_used_at_once(&RealCluster::new());
}
