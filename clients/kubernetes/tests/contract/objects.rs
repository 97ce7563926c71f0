//! Tests creating, listing, reading, changing and removing objects.

use qontract_client_kubernetes::{
    FieldOwnership, Kind, KubernetesError, Object, ObjectAddress, ObjectVersion, Rehearsal, WritePrecondition,
};
use qontract_client_kubernetes::{MANAGER, ObjectDraft};
use serde_json::json;

use crate::fixture::{ContractFixture, unique};

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(|object| object.address.name.as_str()).collect()
}

pub async fn created_objects_are_listed_and_removed_ones_are_not(fixture: &ContractFixture) {
    let ours = async || {
        let mut listed = fixture.list("Secret", &fixture.namespace).await;
        // A real cluster adds objects of its own.
        listed.retain(|object| object.address.name.len() == 1);
        listed
    };
    assert!(ours().await.is_empty());
    for name in ["b", "a"] {
        let body = json!({"data": {"x": "eQ=="}, "metadata": {"labels": {"l": name}}});
        fixture.put(&fixture.address("Secret", name), body, WritePrecondition::Absent).await.unwrap();
    }
    let listed = ours().await;
    assert_eq!(names(&listed), ["a", "b"]);
    let a = fixture.get(&fixture.address("Secret", "a")).await;
    assert_eq!(listed[0], a, "a list equals a read of each object");
    assert_eq!((&a.body["apiVersion"], &a.body["kind"]), (&json!("v1"), &json!("Secret")));
    assert_eq!(a.body["data"], json!({"x": "eQ=="}));
    assert_eq!(a.body["metadata"]["namespace"], fixture.namespace);
    assert!(a.body["metadata"]["managedFields"].is_null());
    fixture.remove(&a).await.unwrap();
    assert_eq!(names(&ours().await), ["b"]);
    assert_eq!(fixture.find(&a.address).await, None);
    fixture.remove(&a).await.unwrap();
}

pub async fn writes_have_preconditions(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    let stale = |done: Result<(), KubernetesError>| {
        let error = done.unwrap_err();
        assert!(matches!(error, KubernetesError::Stale { .. }) && error.is_transient(), "{error}");
    };
    let onto = |version: &ObjectVersion| WritePrecondition::Version(version.clone(), FieldOwnership::Ours);
    stale(
        fixture
            .put(
                &address,
                json!({"data": {"a": "1"}}),
                onto(&ObjectVersion { uid: None, resource_version: "1".to_owned() }),
            )
            .await,
    );
    assert_eq!(fixture.find(&address).await, None, "an update does not create");
    fixture.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    stale(fixture.put(&address, json!({"data": {"a": "2"}}), WritePrecondition::Absent).await);
    let first = fixture.get(&address).await;
    fixture.apply(&address, json!({"data": {"a": "3"}})).await.unwrap();
    stale(fixture.put(&address, json!({"data": {"a": "4"}}), onto(&first.version)).await);
    stale(
        fixture
            .put(
                &address,
                json!({"data": {"a": "4"}}),
                WritePrecondition::Version(first.version.clone(), FieldOwnership::ClientSideApplied),
            )
            .await,
    );
    stale(
        fixture
            .put(&address, json!({"data": {"a": "4"}}), WritePrecondition::Replace(first.version.clone()))
            .await,
    );
    stale(fixture.remove(&first).await);
    let last = fixture.get(&address).await;
    assert_eq!(last.body["data"], json!({"a": "3"}));
    fixture.remove(&last).await.unwrap();
    stale(fixture.put(&address, json!({"data": {"a": "4"}}), onto(&last.version)).await);
    assert_eq!(fixture.find(&address).await, None, "a removed object is not created again");
}

pub async fn a_missing_namespace_is_empty_and_rejects_writes(fixture: &ContractFixture) {
    let nowhere = unique("nowhere");
    assert!(fixture.list("ConfigMap", &nowhere).await.is_empty());
    let address = ObjectAddress::in_namespace(Kind::named("ConfigMap"), nowhere, "a");
    assert_eq!(fixture.find(&address).await, None);
    let error = fixture.put(&address, json!({}), WritePrecondition::Absent).await.unwrap_err();
    assert!(matches!(error, KubernetesError::NamespaceMissing { .. }) && error.is_transient(), "{error}");
    let draft = ObjectDraft {
        address,
        body: json!({}),
        precondition: WritePrecondition::Absent,
        is_sensitive: false,
    };
    let rehearsal =
        fixture.kubernetes.rehearse(&fixture.permits.read, &fixture.cluster, MANAGER, &draft).await.unwrap();
    assert!(matches!(rehearsal, Rehearsal::Undetermined(_)), "{rehearsal:?}");
}

pub async fn cluster_scoped_objects_have_no_namespace(fixture: &ContractFixture) {
    let name = unique("role");
    let address = ObjectAddress::cluster_scoped(Kind::named("ClusterRole"), name.clone());
    let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []});
    fixture.put(&address, body, WritePrecondition::Absent).await.unwrap();
    let listed = fixture.list("ClusterRole.rbac.authorization.k8s.io", &fixture.namespace).await;
    assert!(names(&listed).contains(&name.as_str()));
    fixture.remove(&fixture.get(&address).await).await.unwrap();
    assert_eq!(fixture.find(&address).await, None);
}

pub async fn lists_of_several_pages_are_complete(fixture: &ContractFixture) {
    let put = async |number: usize| {
        let address = fixture.config_map(&format!("m{number:04}"));
        fixture.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    };
    futures_util::future::join_all((0..501).map(put)).await;
    let listed = fixture.list("ConfigMap", &fixture.namespace).await;
    let ours: Vec<_> = names(&listed).into_iter().filter(|name| name.starts_with('m')).collect();
    assert_eq!(ours.len(), 501);
    assert!(ours.is_sorted());
}
