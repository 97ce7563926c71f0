//! Tests that concern only the sandbox, which is a directory.

use std::fs;

use qontract_access::Mode;
use qontract_client_kubernetes::{
    Cluster, FieldOwnership, Kind, KubernetesError, MANAGER, ObjectAddress, ObjectDraft, ObjectReader as _,
    ObjectVersion, ObjectWriter as _, Sandbox, WritePrecondition,
};
use qontract_testkit::{Scratch, permits};
use serde_json::{Value, json};

use crate::fixture::ContractFixture;

fn cluster(name: &str) -> Cluster {
    Cluster { name: name.to_owned(), server: "https://api.example.com".to_owned(), token: None }
}

fn namespace(name: &str) -> ObjectDraft {
    let address = ObjectAddress::cluster_scoped(Kind::namespace(), name);
    ObjectDraft { address, body: json!({}), precondition: WritePrecondition::Absent, is_sensitive: false }
}

#[tokio::test]
async fn a_file_is_the_declared_object_followed_by_its_managed_fields() {
    let fixture = ContractFixture::sandbox().await;
    let address = fixture.config_map("a");
    fixture.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    let file = format!("clusters/c1/{}/ConfigMap/a.yaml", fixture.namespace);
    let scratch = fixture.scratch.as_ref().unwrap();
    let expect = "---\napiVersion: v1\ndata:\n  a: \"1\"\nkind: ConfigMap\nmetadata:\n  name: a\n\
                  # managed: {\"fieldsV1\":{\"f:data\":{\"f:a\":{}}},\"manager\":\"qontract\",\"operation\":\"Apply\"}\n";
    assert_eq!(scratch.read(&file), expect);
    let folder = scratch.path().join("clusters/c1/_cluster/Namespace");
    let names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [format!("{}.yaml", fixture.namespace).as_str()], "no other files");
    let namespace = scratch.read(&format!("clusters/c1/_cluster/Namespace/{}.yaml", fixture.namespace));
    assert_eq!(
        namespace,
        format!("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n", fixture.namespace)
    );
}

#[tokio::test]
async fn a_file_that_was_edited_by_hand_is_read() {
    let fixture = ContractFixture::sandbox().await;
    let (address, scratch) = (fixture.config_map("a"), fixture.scratch.as_ref().unwrap());
    let file = format!("clusters/c1/{}/ConfigMap/a.yaml", fixture.namespace);
    scratch.write(&file, "data: {a: '1', b: '2'}\n");
    let live = fixture.get(&address).await;
    assert_eq!(live.field_ownership, FieldOwnership::Ours);
    assert_eq!(live.body["kind"], "ConfigMap");
    scratch.write(&file, "data: {a: '1', b: '3'}\n");
    let stale = fixture
        .put(&address, json!({}), WritePrecondition::Version(live.version, live.field_ownership))
        .await
        .unwrap_err();
    assert!(matches!(stale, KubernetesError::Stale { .. }), "{stale}");
    fixture.apply(&address, json!({"data": {"a": "0"}})).await.unwrap();
    assert_eq!(
        fixture.get(&address).await.body["data"],
        json!({"a": "0", "b": "3"}),
        "fields that were not applied have no owner"
    );
}

#[tokio::test]
async fn objects_are_removed_with_their_namespace() {
    let fixture = ContractFixture::sandbox().await;
    fixture.put(&fixture.config_map("a"), json!({}), WritePrecondition::Absent).await.unwrap();
    fixture.clean().await;
    assert!(!fixture.scratch.as_ref().unwrap().path().join("clusters/c1").join(&fixture.namespace).exists());
}

#[tokio::test]
async fn no_name_leads_out_of_the_sandbox() {
    let scratch = Scratch::new();
    let sandbox = Sandbox::new(scratch.path().join("sandbox"));
    let permits = permits(Mode::Real);
    let (read, write) = (&permits.read, permits.write.as_ref().unwrap());
    let named = |error: KubernetesError, name: &str| {
        assert!(matches!(error, KubernetesError::Name { .. }), "{name:?}: {error}");
    };
    for name in
        ["..", ".", "", "a/b", "../../x", "/etc", "a\0b", ".hidden", "_cluster", "-a", &"x".repeat(300)]
    {
        let draft = namespace(name);
        named(sandbox.put(write, &cluster("c1"), MANAGER, &draft).await.unwrap_err(), name);
        named(sandbox.get(read, &cluster(name), &namespace("a").address).await.unwrap_err(), name);
        let version = ObjectVersion { uid: None, resource_version: "1".to_owned() };
        named(sandbox.remove(write, &cluster("c1"), &draft.address, &version).await.unwrap_err(), name);
        let inside = ObjectAddress::in_namespace(Kind::named("ConfigMap"), name, "a");
        named(sandbox.get(read, &cluster("c1"), &inside).await.unwrap_err(), name);
    }
    assert!(!scratch.path().join("sandbox").exists());
}

#[tokio::test]
async fn links_are_refused() {
    for link in
        ["clusters", "clusters/c1", "clusters/c1/_cluster/Namespace", "clusters/c1/_cluster/Namespace/a.yaml"]
    {
        let scratch = Scratch::new();
        scratch.write("elsewhere/c1/_cluster/Namespace/a.yaml", "kind: Namespace\n");
        let target = format!("elsewhere{}", link.strip_prefix("clusters").unwrap());
        let depth = link.matches('/').count();
        let inside = scratch.path().join("sandbox").join(link);
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        scratch.link(&format!("sandbox/{link}"), &format!("{}{target}", "../".repeat(depth + 1)));
        assert!(inside.exists(), "the link leads somewhere");
        let (sandbox, permits) = (Sandbox::new(scratch.path().join("sandbox")), permits(Mode::Real));
        let write = permits.write.as_ref().unwrap();
        let refused = |error: KubernetesError| {
            assert!(
                error.full_message().ends_with("it is a symbolic link"),
                "{link}: {}",
                error.full_message()
            );
        };
        let draft = namespace("a");
        refused(sandbox.get(&permits.read, &cluster("c1"), &draft.address).await.unwrap_err());
        refused(sandbox.put(write, &cluster("c1"), MANAGER, &draft).await.unwrap_err());
        let version = ObjectVersion { uid: None, resource_version: "1".to_owned() };
        refused(sandbox.remove(write, &cluster("c1"), &draft.address, &version).await.unwrap_err());
        assert_eq!(scratch.read("elsewhere/c1/_cluster/Namespace/a.yaml"), "kind: Namespace\n");
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_an_error_not_an_absence() {
    let scratch = Scratch::new();
    scratch.write("clusters/c1/_cluster/Namespace/a.yaml", "a: [\n");
    let (sandbox, read) = (Sandbox::new(scratch.path()), permits(Mode::DryRun).read);
    let error = sandbox.get(&read, &cluster("c1"), &namespace("a").address).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Malformed { .. }) && !error.is_transient(), "{error}");
    assert!(sandbox.list(&read, &cluster("c1"), &Kind::namespace(), None).await.is_err());
}

#[tokio::test]
async fn the_rollout_status_is_not_in_the_file() {
    let fixture = ContractFixture::sandbox().await;
    let address = fixture.address("Deployment", "a");
    let rollout = |how: &str| json!({"metadata": {"annotations": {"sandbox.qontract.dev/rollout": how}}, "spec": {"replicas": 2}});
    fixture.put(&address, rollout("never"), WritePrecondition::Absent).await.unwrap();
    let ready = async || fixture.get(&address).await.body["status"]["readyReplicas"].clone();
    assert_eq!(ready().await, 0);
    fixture.apply(&address, rollout("0s")).await.unwrap();
    assert_eq!(ready().await, 2);
    let file = format!("clusters/c1/{}/Deployment/a.yaml", fixture.namespace);
    assert!(!fixture.scratch.as_ref().unwrap().read(&file).contains("status"));
}

#[tokio::test]
async fn kinds_of_one_name_have_separate_directories() {
    let fixture = ContractFixture::sandbox().await;
    let folder = fixture.scratch.as_ref().unwrap().path().join("clusters/c1").join(&fixture.namespace);
    for (kind, expect) in [
        ("Event", "Event"),
        ("Event.events.k8s.io", "Event.events.k8s.io"),
        ("Route.route.openshift.io", "Route"),
        ("PrometheusRule", "PrometheusRule"),
    ] {
        fixture.put(&fixture.address(kind, "a"), json!({}), WritePrecondition::Absent).await.unwrap();
        assert!(folder.join(expect).join("a.yaml").exists(), "{kind}");
    }
}

#[test]
fn concurrent_changes_are_not_lost() {
    let scratch = Scratch::new();
    let (sandbox, permits) = (Sandbox::new(scratch.path()), permits(Mode::Real));
    let write = permits.write.as_ref().unwrap();
    let address = namespace("a").address;
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(sandbox.put(write, &cluster("c1"), MANAGER, &namespace("a"))).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (sandbox, address, read) = (&sandbox, &address, &permits.read);
            scope.spawn(move || runtime().block_on(add(sandbox, read, write, address, number)));
        }
    });
    let live = runtime().block_on(sandbox.get(&permits.read, &cluster("c1"), &address)).unwrap().unwrap();
    assert_eq!(live.body["metadata"]["labels"].as_object().map(serde_json::Map::len), Some(8));
}

/// Adds a label of its own, and retries until it succeeds.
async fn add(
    sandbox: &Sandbox,
    read: &qontract_access::ReadPermit,
    write: &qontract_access::WritePermit,
    address: &ObjectAddress,
    number: usize,
) {
    let body: Value = json!({"metadata": {"labels": {format!("l{number}"): "x"}}});
    loop {
        let live = sandbox.get(read, &cluster("c1"), address).await.unwrap().unwrap();
        let onto = WritePrecondition::Version(live.version, FieldOwnership::Ours);
        let draft = ObjectDraft {
            address: address.clone(),
            body: body.clone(),
            precondition: onto,
            is_sensitive: false,
        };
        match sandbox.put(write, &cluster("c1"), &format!("m{number}"), &draft).await {
            Err(KubernetesError::Stale { .. }) => {}
            other => return other.unwrap(),
        }
    }
}
