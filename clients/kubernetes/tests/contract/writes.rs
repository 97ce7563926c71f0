//! Tests refused, replaced, restarted and rehearsed writes.

use qontract_client_kubernetes::{
    FieldOwnership, KubernetesError, MANAGER, ObjectDraft, Rehearsal, WorkloadRestart, WritePrecondition,
};
use serde_json::{Value, json};

use crate::fixture::ContractFixture;

pub async fn immutable_fields_are_reported_and_can_be_replaced(fixture: &ContractFixture) {
    let address = fixture.address("Secret", "a");
    fixture
        .put(&address, json!({"type": "example.com/a", "data": {"a": "MQ=="}}), WritePrecondition::Absent)
        .await
        .unwrap();
    let changed = json!({"type": "example.com/b", "data": {"b": "Mg=="}});
    let error = fixture.apply(&address, changed.clone()).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Invalid { .. }) && !error.is_transient(), "{error}");
    assert!(error.to_string().contains("`type`") && error.to_string().contains("immutable"), "{error}");
    let live = fixture.get(&address).await;
    fixture.put(&address, changed.clone(), WritePrecondition::Replace(live.version.clone())).await.unwrap();
    let now = fixture.get(&address).await;
    assert_eq!((&now.body["type"], &now.body["data"]), (&changed["type"], &changed["data"]));
    let again = fixture.put(&address, changed, WritePrecondition::Replace(live.version)).await.unwrap_err();
    assert!(matches!(again, KubernetesError::Stale { .. }), "{again}");
}

fn deployment() -> Value {
    json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "web", "image": "example.com/i:1"}]}}}})
}

pub async fn a_workload_restarts_once_for_a_cause(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    fixture.put(&address, deployment(), WritePrecondition::Absent).await.unwrap();
    let restart = async |cause: &str| {
        // The controllers of a real cluster write to it as well, so the restart may have to be retried.
        loop {
            let live = fixture.get(&address).await;
            let restart =
                WorkloadRestart { address: address.clone(), version: live.version, cause: cause.to_owned() };
            match fixture
                .kubernetes
                .restart(fixture.permits.write.as_ref().unwrap(), &fixture.cluster, &restart)
                .await
            {
                Err(KubernetesError::Stale { .. }) => {}
                other => return other.unwrap(),
            }
        }
    };
    let template = async || fixture.get(&address).await.body["spec"]["template"].clone();
    restart("secret a").await;
    assert_eq!(fixture.get(&address).await.restart_cause(), Some("secret a"));
    let once = template().await;
    restart("secret a").await;
    assert_eq!(template().await, once);
    restart("secret b").await;
    assert_eq!(fixture.get(&address).await.restart_cause(), Some("secret b"));
    loop {
        match fixture.apply(&address, deployment()).await {
            Err(KubernetesError::Stale { .. }) => {}
            other => break other.unwrap(),
        }
    }
    assert_eq!(
        fixture.get(&address).await.restart_cause(),
        Some("secret b"),
        "an apply does not restart again"
    );
}

pub async fn a_rehearsal_predicts_the_result_and_writes_nothing(fixture: &ContractFixture) {
    let attempt = async |kind: &str, body: Value, onto: WritePrecondition| {
        let draft = ObjectDraft {
            address: fixture.address(kind, "a"),
            body,
            precondition: onto,
            is_sensitive: false,
        };
        fixture.kubernetes.rehearse(&fixture.permits.read, &fixture.cluster, MANAGER, &draft).await
    };
    let rehearse =
        async |kind: &str, body: Value, onto: WritePrecondition| attempt(kind, body, onto).await.unwrap();
    let rejection = async |rehearsal: Rehearsal| match rehearsal {
        Rehearsal::Rejected(why) => why,
        other => panic!("{other:?}"),
    };
    let (address, body) = (fixture.address("Secret", "a"), json!({"type": "example.com/a"}));
    assert_eq!(rehearse("Secret", body.clone(), WritePrecondition::Absent).await, Rehearsal::Accepted);
    assert_eq!(fixture.find(&address).await, None);
    fixture.put(&address, body, WritePrecondition::Absent).await.unwrap();
    let live = fixture.get(&address).await;
    let onto = || WritePrecondition::Version(live.version.clone(), FieldOwnership::Ours);
    let refused = rejection(rehearse("Secret", json!({"type": "example.com/b"}), onto()).await).await;
    assert!(refused.contains("`type`"), "{refused}");
    let taken = json!({"type": "example.com/a", "data": {"a": "MQ=="}});
    assert_eq!(rehearse("Secret", taken.clone(), onto()).await, Rehearsal::Accepted);
    let replaced = rehearse("Secret", taken, WritePrecondition::Replace(live.version.clone())).await;
    assert!(matches!(replaced, Rehearsal::Undetermined(_)), "{replaced:?}");
    assert_eq!(fixture.get(&address).await, live, "nothing is written");
    let unserved = rehearse("Nonsense.example.com", json!({}), WritePrecondition::Absent).await;
    assert!(matches!(unserved, Rehearsal::Undetermined(_)), "{unserved:?}");
    fixture
        .put_as("helm", &fixture.config_map("a"), json!({"data": {"a": "1"}}), WritePrecondition::Absent)
        .await
        .unwrap();
    let live = fixture.get(&fixture.config_map("a")).await;
    let onto = WritePrecondition::Version(live.version.clone(), live.field_ownership);
    // The same error as that of the write.
    let refused = attempt("ConfigMap", json!({"data": {"a": "2"}}), onto).await.unwrap_err().to_string();
    assert!(refused.contains("`helm` owns `data.a`"), "{refused}");
}

pub async fn an_error_about_a_secret_has_no_values(fixture: &ContractFixture) {
    let address = fixture.address("Secret", "a");
    let body = json!({"immutable": true, "data": {"a": "aHVudGVyMg=="}});
    fixture.put(&address, body, WritePrecondition::Absent).await.unwrap();
    let changed = json!({"immutable": true, "data": {"a": "aHVudGVyMw=="}});
    let error = fixture.apply(&address, changed).await.unwrap_err().full_message();
    assert!(error.contains("`data`") && !error.contains("aHVud") && !error.contains("hunter"), "{error}");
}
