//! What every cluster has to do, shown on the sandbox.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use qontract_access::Mode;
use qontract_client_kubernetes::{Address, Cluster, Kind, KubernetesError, Object, Reader, Sandbox, Writer};
use qontract_testkit::{Scratch, permits};

fn cluster(name: &str) -> Cluster {
    Cluster { name: name.to_owned(), server: "https://api.example.com".to_owned(), token: None }
}

fn namespace(name: &str) -> Address {
    Address::of_cluster(Kind::Namespace, name)
}

#[tokio::test]
async fn what_is_created_is_listed_and_what_is_removed_is_gone() {
    let scratch = Scratch::new();
    let (sandbox, permits, cluster) = (Sandbox::new(scratch.path()), permits(Mode::Real), cluster("c1"));
    let (read, write) = (&permits.read, permits.write.as_ref().unwrap());
    assert!(sandbox.list(read, &cluster, Kind::Namespace, None).await.unwrap().is_empty());
    for name in ["b", "a"] {
        sandbox.create(write, &cluster, &Object::bare(namespace(name))).await.unwrap();
    }
    let names = |objects: Vec<Object>| objects.into_iter().map(|one| one.address.name).collect::<Vec<_>>();
    assert_eq!(names(sandbox.list(read, &cluster, Kind::Namespace, None).await.unwrap()), ["a", "b"]);
    scratch.write("clusters/c1/a/ConfigMap/x.yaml", "kind: ConfigMap\n");
    let a = sandbox.get(read, &cluster, &namespace("a")).await.unwrap().unwrap();
    sandbox.remove(write, &cluster, &a.address, &a.version).await.unwrap();
    assert!(!scratch.path().join("clusters/c1/a").exists(), "what is in a namespace goes with it");
    sandbox.remove(write, &cluster, &a.address, &a.version).await.unwrap();
    assert_eq!(names(sandbox.list(read, &cluster, Kind::Namespace, None).await.unwrap()), ["b"]);
}

#[tokio::test]
async fn writes_have_preconditions() {
    let scratch = Scratch::new();
    let (sandbox, permits, cluster) = (Sandbox::new(scratch.path()), permits(Mode::Real), cluster("c1"));
    let write = permits.write.as_ref().unwrap();
    let object = Object::bare(namespace("a"));
    sandbox.create(write, &cluster, &object).await.unwrap();
    let again = sandbox.create(write, &cluster, &object).await.unwrap_err();
    assert!(matches!(again, KubernetesError::Stale { .. }), "{again}");
    let read = sandbox.get(&permits.read, &cluster, &namespace("a")).await.unwrap().unwrap();
    scratch.write(
        "clusters/c1/_cluster/Namespace/a.yaml",
        "kind: Namespace\nmetadata: {name: a, labels: {x: y}}\n",
    );
    let stale = sandbox.remove(write, &cluster, &read.address, &read.version).await.unwrap_err();
    assert!(matches!(stale, KubernetesError::Stale { .. }) && stale.is_transient(), "{stale}");
    assert!(scratch.path().join("clusters/c1/_cluster/Namespace/a.yaml").exists());
}

#[tokio::test]
async fn no_name_leads_out_of_the_sandbox() {
    let scratch = Scratch::new();
    let sandbox = Sandbox::new(scratch.path().join("sandbox"));
    let permits = permits(Mode::Real);
    let write = permits.write.as_ref().unwrap();
    for name in
        ["..", ".", "", "a/b", "../../x", "/etc", "a\0b", ".hidden", "_cluster", "-a", &"x".repeat(300)]
    {
        let named = sandbox.create(write, &cluster("c1"), &Object::bare(namespace(name))).await.unwrap_err();
        assert!(matches!(named, KubernetesError::Name { .. }), "{name:?}: {named}");
        let clustered = sandbox.get(&permits.read, &cluster(name), &namespace("a")).await.unwrap_err();
        assert!(matches!(clustered, KubernetesError::Name { .. }), "{name:?}: {clustered}");
        let removed = sandbox.remove(write, &cluster("c1"), &namespace(name), "1").await.unwrap_err();
        assert!(matches!(removed, KubernetesError::Name { .. }), "{name:?}: {removed}");
    }
    assert!(!scratch.path().join("sandbox").exists());
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_an_error_not_an_absence() {
    let scratch = Scratch::new();
    scratch.write("clusters/c1/_cluster/Namespace/a.yaml", "a: [\n");
    let (sandbox, permits) = (Sandbox::new(scratch.path()), permits(Mode::DryRun));
    let error = sandbox.get(&permits.read, &cluster("c1"), &namespace("a")).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Malformed { .. }) && !error.is_transient(), "{error}");
    assert!(sandbox.list(&permits.read, &cluster("c1"), Kind::Namespace, None).await.is_err());
}
