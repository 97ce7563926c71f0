//! Tests creating, listing, reading, changing and removing objects.

use qontract_client_kubernetes::{
    FieldOwnership, Kind, KubernetesError, Object, ObjectAddress, ObjectVersion, Rehearsal, WritePrecondition,
};
use qontract_client_kubernetes::{MANAGER, ObjectDraft};
use serde_json::json;

use crate::world::{ContractFixture, unique};

fn names(objects: &[Object]) -> Vec<&str> {
    objects.iter().map(|object| object.address.name.as_str()).collect()
}

pub async fn created_objects_are_listed_and_removed_ones_are_not(world: &ContractFixture) {
    let ours = async || {
        let mut listed = world.list("Secret", &world.namespace).await;
        // A real cluster adds objects of its own.
        listed.retain(|object| object.address.name.len() == 1);
        listed
    };
    assert!(ours().await.is_empty());
    for name in ["b", "a"] {
        let body = json!({"data": {"x": "eQ=="}, "metadata": {"labels": {"l": name}}});
        world.put(&world.address("Secret", name), body, WritePrecondition::Absent).await.unwrap();
    }
    let listed = ours().await;
    assert_eq!(names(&listed), ["a", "b"]);
    let a = world.get(&world.address("Secret", "a")).await;
    assert_eq!(listed[0], a, "a list equals a read of each object");
    assert_eq!((&a.body["apiVersion"], &a.body["kind"]), (&json!("v1"), &json!("Secret")));
    assert_eq!(a.body["data"], json!({"x": "eQ=="}));
    assert_eq!(a.body["metadata"]["namespace"], world.namespace);
    assert!(a.body["metadata"]["managedFields"].is_null());
    world.remove(&a).await.unwrap();
    assert_eq!(names(&ours().await), ["b"]);
    assert_eq!(world.find(&a.address).await, None);
    world.remove(&a).await.unwrap();
}

pub async fn writes_have_preconditions(world: &ContractFixture) {
    let address = world.config_map("a");
    let stale = |done: Result<(), KubernetesError>| {
        let error = done.unwrap_err();
        assert!(matches!(error, KubernetesError::Stale { .. }) && error.is_transient(), "{error}");
    };
    let onto = |version: &ObjectVersion| WritePrecondition::Version(version.clone(), FieldOwnership::Ours);
    stale(
        world
            .put(
                &address,
                json!({"data": {"a": "1"}}),
                onto(&ObjectVersion { uid: None, resource_version: "1".to_owned() }),
            )
            .await,
    );
    assert_eq!(world.find(&address).await, None, "an update does not create");
    world.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    stale(world.put(&address, json!({"data": {"a": "2"}}), WritePrecondition::Absent).await);
    let first = world.get(&address).await;
    world.apply(&address, json!({"data": {"a": "3"}})).await.unwrap();
    stale(world.put(&address, json!({"data": {"a": "4"}}), onto(&first.version)).await);
    stale(
        world
            .put(
                &address,
                json!({"data": {"a": "4"}}),
                WritePrecondition::Version(first.version.clone(), FieldOwnership::ClientSideApplied),
            )
            .await,
    );
    stale(
        world
            .put(&address, json!({"data": {"a": "4"}}), WritePrecondition::Replace(first.version.clone()))
            .await,
    );
    stale(world.remove(&first).await);
    let last = world.get(&address).await;
    assert_eq!(last.body["data"], json!({"a": "3"}));
    world.remove(&last).await.unwrap();
    stale(world.put(&address, json!({"data": {"a": "4"}}), onto(&last.version)).await);
    assert_eq!(world.find(&address).await, None, "a removed object is not created again");
}

pub async fn a_missing_namespace_is_empty_and_rejects_writes(world: &ContractFixture) {
    let nowhere = unique("nowhere");
    assert!(world.list("ConfigMap", &nowhere).await.is_empty());
    let address = ObjectAddress::in_namespace(Kind::named("ConfigMap"), nowhere, "a");
    assert_eq!(world.find(&address).await, None);
    let error = world.put(&address, json!({}), WritePrecondition::Absent).await.unwrap_err();
    assert!(matches!(error, KubernetesError::NamespaceMissing { .. }) && error.is_transient(), "{error}");
    let draft = ObjectDraft {
        address,
        body: json!({}),
        precondition: WritePrecondition::Absent,
        is_sensitive: false,
    };
    let rehearsal =
        world.kubernetes.rehearse(&world.permits.read, &world.cluster, MANAGER, &draft).await.unwrap();
    assert!(matches!(rehearsal, Rehearsal::Undetermined(_)), "{rehearsal:?}");
}

pub async fn cluster_scoped_objects_have_no_namespace(world: &ContractFixture) {
    let name = unique("role");
    let address = ObjectAddress::cluster_scoped(Kind::named("ClusterRole"), name.clone());
    let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []});
    world.put(&address, body, WritePrecondition::Absent).await.unwrap();
    let listed = world.list("ClusterRole.rbac.authorization.k8s.io", &world.namespace).await;
    assert!(names(&listed).contains(&name.as_str()));
    world.remove(&world.get(&address).await).await.unwrap();
    assert_eq!(world.find(&address).await, None);
}

pub async fn lists_of_several_pages_are_complete(world: &ContractFixture) {
    let put = async |number: usize| {
        let address = world.config_map(&format!("m{number:04}"));
        world.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    };
    futures_util::future::join_all((0..501).map(put)).await;
    let listed = world.list("ConfigMap", &world.namespace).await;
    let ours: Vec<_> = names(&listed).into_iter().filter(|name| name.starts_with('m')).collect();
    assert_eq!(ours.len(), 501);
    assert!(ours.is_sorted());
}
