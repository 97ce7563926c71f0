//! A dry run notes that a cluster does not serve a kind, also if the cluster validates nothing.

use std::sync::Arc;

use crate::support::test_integration::{TestIntegration, TestObject};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_kubernetes::{
    ApiResource, Cluster, Kind, KubernetesError, Object, ObjectAddress, ObjectDraft, ObjectReader,
    ObjectVersion, ObjectWriter, Rehearsal, Sandbox, WorkloadRestart,
};
use qontract_inventory::Owner;
use qontract_testkit::Scratch;
use serde_json::json;

/// A cluster that does not serve `Route`, and does not validate writes.
struct WithoutRoutes(Sandbox);

type KubernetesFuture<'a, T> = BoxFuture<'a, Result<T, KubernetesError>>;

fn served<'a, T: Send + 'a>(kind: &Kind, answer: KubernetesFuture<'a, T>) -> KubernetesFuture<'a, T> {
    if kind.name != "Route" {
        return answer;
    }
    let (cluster, kind, instead) = ("c1".to_owned(), "`Route`".to_owned(), String::new());
    std::future::ready(Err(KubernetesError::Unserved { cluster, kind, instead })).boxed()
}

fn unsupported<'a, T: Send + 'a>() -> KubernetesFuture<'a, T> {
    let error = KubernetesError::Unsupported { what: "anything else".to_owned(), by: "this test" };
    std::future::ready(Err(error)).boxed()
}

impl ObjectReader for WithoutRoutes {
    fn api_resource<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
    ) -> KubernetesFuture<'a, ApiResource> {
        served(kind, self.0.api_resource(permit, cluster, kind))
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        cluster: &'a Cluster,
        kind: &'a Kind,
        namespace: Option<&'a str>,
    ) -> KubernetesFuture<'a, Vec<Object>> {
        served(kind, self.0.list(permit, cluster, kind, namespace))
    }

    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
    ) -> KubernetesFuture<'a, Option<Object>> {
        unsupported()
    }

    fn rehearse<'a>(
        &'a self,
        _: &'a ReadPermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, Rehearsal> {
        std::future::ready(Ok(Rehearsal::Disabled)).boxed()
    }
}

impl ObjectWriter for WithoutRoutes {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a str,
        _: &'a ObjectDraft,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn remove<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a ObjectAddress,
        _: &'a ObjectVersion,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }

    fn restart<'a>(
        &'a self,
        _: &'a WritePermit,
        _: &'a Cluster,
        _: &'a WorkloadRestart,
    ) -> KubernetesFuture<'a, ()> {
        unsupported()
    }
}

#[test]
fn a_dry_run_notes_a_kind_that_the_cluster_does_not_serve() {
    let scratch = Scratch::new();
    let kubernetes = Arc::new(WithoutRoutes(Sandbox::new(scratch.path())));
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
