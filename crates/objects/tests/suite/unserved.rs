//! A dry run notes that a cluster does not serve a kind, also if the cluster validates nothing.

use std::sync::Arc;

use qontract_access::Mode;
use qontract_client_kubernetes::{Cluster, Kind, KubernetesError, Sandbox};
use qontract_inventory::Owner;
use qontract_testkit::Scratch;
use serde_json::json;

use crate::support::refusing_sandbox::RefusingSandbox;
use crate::support::test_integration::{TestIntegration, TestObject};

/// A cluster that does not serve `Route`.
fn unserved(cluster: &Cluster, kind: &Kind) -> Option<KubernetesError> {
    (kind.name == "Route").then(|| KubernetesError::Unserved {
        cluster: cluster.name.clone(),
        kind: "`Route`".to_owned(),
        instead: String::new(),
    })
}

#[test]
fn a_dry_run_notes_a_kind_that_the_cluster_does_not_serve() {
    let scratch = Scratch::new();
    let kubernetes = Arc::new(RefusingSandbox { sandbox: Sandbox::new(scratch.path()), refusal: unserved });
    let cluster = Cluster { name: "c1".to_owned(), server: "https://c1.example.com".to_owned(), token: None };
    let owner = Owner::of("openshift-resources", None).unwrap();
    let object = |kind: &str, version: &str| {
        TestObject::for_object(json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}))
    };
    let objects = vec![object("ConfigMap", "v1"), object("Route", "route.openshift.io/v1")];
    let outcome = TestIntegration::new(kubernetes, cluster, owner, &["ConfigMap", "Route"])
        .with_namespace("ns", objects)
        .run(Mode::DryRun);
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!(shard.changes.len(), 2, "{:?}", shard.faults);
    let [note] = shard.notes.as_slice() else { panic!("one note: {:?}", shard.notes) };
    assert!(note.starts_with("not validated: + create Route `a`"), "{note}");
    assert!(note.ends_with("the cluster `c1` does not serve `Route`"), "{note}");
}
