//! Tests that concern only real clusters: unreachable servers, rejected credentials, blocked removals.

use std::collections::BTreeMap;
use std::sync::Arc;

use qontract_access::Mode;
use qontract_client_http::Secret;
use qontract_client_kubernetes::{
    Cluster, ClusterToken, Clusters, Kind, KubernetesError, MANAGER, Object, ObjectAddress, ObjectDraft,
    ObjectReader as _, ObjectVersion, ObjectWriter as _, Rehearsal, WritePrecondition,
};
use qontract_testkit::permits;
use serde_json::json;

use crate::fixture::{ContractFixture, FixedToken, RealApiServer, http, unique};

async fn namespaces(clusters: &Clusters, cluster: &Cluster) -> Result<Vec<Object>, KubernetesError> {
    clusters.list(&permits(Mode::DryRun).read, cluster, &Kind::namespace(), None).await
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn an_unreachable_real_cluster_does_not_affect_others() {
    let api = RealApiServer::shared();
    let clusters = api.clusters(&permits(Mode::DryRun).read, &api.token);
    let token = ClusterToken { secret: Secret::new(api.token.as_str()), server: None };
    let others =
        Clusters::new(&permits(Mode::DryRun).read, http(), Arc::new(FixedToken(token)), BTreeMap::new());
    let closed = Cluster { name: "closed".to_owned(), server: "https://127.0.0.1:1".to_owned(), token: None };
    // Its certificate is not trusted.
    let strange = Cluster { name: "strange".to_owned(), ..api.cluster() };
    // A server may come back; a certificate does not become trusted.
    for (cluster, may_pass) in [(closed, true), (strange, false)] {
        let error = namespaces(&others, &cluster).await.unwrap_err();
        let is_expected =
            matches!(error, KubernetesError::Unreachable { .. }) && error.is_transient() == may_pass;
        assert!(is_expected, "{}", error.full_message());
        assert!(!error.full_message().contains(&api.token));
    }
    assert!(!namespaces(&clusters, &api.cluster()).await.unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn a_real_cluster_rejects_wrong_credentials() {
    let api = RealApiServer::shared();
    let plain = api.clusters(&permits(Mode::DryRun).read, &api.plain_token);
    let error = namespaces(&plain, &api.cluster()).await.unwrap_err();
    assert!(
        matches!(error, KubernetesError::Denied { .. }) && !error.is_transient(),
        "{}",
        error.full_message()
    );
    let wrong = api.clusters(&permits(Mode::DryRun).read, "no-such-token");
    let error = namespaces(&wrong, &api.cluster()).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Credentials { .. }), "{}", error.full_message());
    assert!(
        !error.full_message().contains("no-such-token")
            && !format!("{wrong:?}{error:?}").contains("no-such-token")
    );
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn the_token_of_a_real_cluster_is_not_sent_to_another() {
    let api = RealApiServer::shared();
    let token =
        ClusterToken { secret: Secret::new("t0ken"), server: Some("https://other.example.com".to_owned()) };
    let settings = BTreeMap::from([("real".to_owned(), api.settings())]);
    let clusters = Clusters::new(&permits(Mode::DryRun).read, http(), Arc::new(FixedToken(token)), settings);
    let error = namespaces(&clusters, &api.cluster()).await.unwrap_err();
    let expect =
        format!("its credentials are for the server `https://other.example.com`, not for `{}`", api.url);
    assert!(error.to_string().ends_with(&expect), "{error}");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn a_dry_run_writes_nothing_to_a_real_cluster() {
    let api = RealApiServer::shared();
    let (dry, stolen) = (permits(Mode::DryRun).read, permits(Mode::Real).write.unwrap());
    // Not even with the connections of a real run.
    let clusters = api.clusters(&permits(Mode::Real).read, &api.token).for_run(&dry);
    let address = ObjectAddress::cluster_scoped(Kind::namespace(), unique("dry"));
    let draft = ObjectDraft {
        address: address.clone(),
        body: json!({}),
        precondition: WritePrecondition::Absent,
        is_sensitive: false,
    };
    let refused = |done: Result<(), KubernetesError>| {
        let error = done.unwrap_err().full_message();
        assert!(error.contains("is refused: this is a dry run"), "{error}");
    };
    refused(clusters.put(&stolen, &api.cluster(), MANAGER, &draft).await);
    refused(
        clusters
            .remove(
                &stolen,
                &api.cluster(),
                &address,
                &ObjectVersion { uid: Some("uid".to_owned()), resource_version: "1".to_owned() },
            )
            .await,
    );
    let rehearsed = clusters.rehearse(&dry, &api.cluster(), MANAGER, &draft).await.unwrap();
    assert_eq!(rehearsed, Rehearsal::Accepted, "a rehearsal is sent");
    assert_eq!(clusters.get(&dry, &api.cluster(), &address).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn a_real_cluster_that_did_not_opt_in_gets_no_rehearsal() {
    let api = RealApiServer::shared();
    let (read, token) = (permits(Mode::DryRun).read, ClusterToken { secret: Secret::new("t"), server: None });
    let clusters = Clusters::new(&read, http(), Arc::new(FixedToken(token)), BTreeMap::new());
    let address = ObjectAddress::cluster_scoped(Kind::namespace(), "a");
    let draft = ObjectDraft {
        address,
        body: json!({}),
        precondition: WritePrecondition::Absent,
        is_sensitive: false,
    };
    let rehearsal = clusters.rehearse(&read, &api.cluster(), MANAGER, &draft).await.unwrap();
    assert_eq!(rehearsal, Rehearsal::Disabled);
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn waiting_for_a_finalizer_on_a_real_cluster_times_out() {
    let fixture = ContractFixture::real_cluster().await;
    let address = fixture.config_map("held");
    let body = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    fixture.put(&address, body, WritePrecondition::Absent).await.unwrap();
    let live = fixture.get(&address).await;
    let error = fixture.put(&address, json!({}), WritePrecondition::Replace(live.version)).await.unwrap_err();
    assert!(matches!(error, KubernetesError::RemovalPending { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains("`example.com/hold`"), "{error}");
    assert!(fixture.get(&address).await.is_terminating());
    let free = json!({"metadata": {"finalizers": null}}).to_string();
    let patch = ["patch", "configmap", "held", "-n", &fixture.namespace, "--type=merge", "-p", &free];
    let terminating = fixture.get(&address).await;
    RealApiServer::shared().kubectl(&patch, &json!(null));
    // The next write continues where the first one gave up.
    let removing = WritePrecondition::Removing(terminating.version.clone());
    fixture.put(&address, json!({"data": {"a": "1"}}), removing.clone()).await.unwrap();
    let live = fixture.get(&address).await;
    assert!(live.version.uid != terminating.version.uid && live.body["data"]["a"] == "1");
    let error = fixture.put(&address, json!({}), removing).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Stale { .. }), "another object has the name: {error}");
    fixture.clean().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server; run by `cargo xtask test`"]
async fn kubectl_changes_on_a_real_cluster_stay_unless_declared() {
    let fixture = ContractFixture::real_cluster().await;
    let address = fixture.config_map("a");
    fixture.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    fixture.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    let change = json!({"data": {"a": "2", "b": "3"}}).to_string();
    let patch = ["patch", "configmap", "a", "-n", &fixture.namespace, "--type=merge", "-p", &change];
    RealApiServer::shared().kubectl(&patch, &json!(null));
    fixture.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "1", "b": "3"}));
    fixture.clean().await;
}
