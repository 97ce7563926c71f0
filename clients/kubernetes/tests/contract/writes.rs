//! Tests refused, replaced, restarted and rehearsed writes.

use qontract_client_kubernetes::{Draft, Fields, KubernetesError, MANAGER, Onto, Rehearsal, Restart};
use serde_json::{Value, json};

use crate::world::World;

pub async fn immutable_fields_are_reported_and_can_be_replaced(world: &World) {
    let address = world.address("Secret", "a");
    world
        .put(&address, json!({"type": "example.com/a", "data": {"a": "MQ=="}}), Onto::Nothing)
        .await
        .unwrap();
    let changed = json!({"type": "example.com/b", "data": {"b": "Mg=="}});
    let error = world.apply(&address, changed.clone()).await.unwrap_err();
    assert!(matches!(error, KubernetesError::Invalid { .. }) && !error.is_transient(), "{error}");
    assert!(error.to_string().contains("`type`") && error.to_string().contains("immutable"), "{error}");
    let live = world.get(&address).await;
    world.put(&address, changed.clone(), Onto::Replaced(live.version.clone())).await.unwrap();
    let now = world.get(&address).await;
    assert_eq!((&now.body["type"], &now.body["data"]), (&changed["type"], &changed["data"]));
    let again = world.put(&address, changed, Onto::Replaced(live.version)).await.unwrap_err();
    assert!(matches!(again, KubernetesError::Stale { .. }), "{again}");
}

fn deployment() -> Value {
    json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "web", "image": "example.com/i:1"}]}}}})
}

pub async fn a_workload_restarts_once_for_a_cause(world: &World) {
    let address = world.address("Deployment", "a");
    world.put(&address, deployment(), Onto::Nothing).await.unwrap();
    let restart = async |cause: &str| {
        // The controllers of a real cluster write to it as well, so the restart may have to be retried.
        loop {
            let live = world.get(&address).await;
            let restart =
                Restart { address: address.clone(), version: live.version, cause: cause.to_owned() };
            match world
                .kubernetes
                .restart(world.permits.write.as_ref().unwrap(), &world.cluster, &restart)
                .await
            {
                Err(KubernetesError::Stale { .. }) => {}
                other => return other.unwrap(),
            }
        }
    };
    let template = async || world.get(&address).await.body["spec"]["template"].clone();
    restart("secret a").await;
    assert_eq!(world.get(&address).await.cause(), Some("secret a"));
    let once = template().await;
    restart("secret a").await;
    assert_eq!(template().await, once);
    restart("secret b").await;
    assert_eq!(world.get(&address).await.cause(), Some("secret b"));
    loop {
        match world.apply(&address, deployment()).await {
            Err(KubernetesError::Stale { .. }) => {}
            other => break other.unwrap(),
        }
    }
    assert_eq!(world.get(&address).await.cause(), Some("secret b"), "an apply does not restart again");
}

pub async fn a_rehearsal_predicts_the_result_and_writes_nothing(world: &World) {
    let rehearse = async |kind: &str, body: Value, onto: Onto| {
        let draft = Draft { address: world.address(kind, "a"), body, onto, is_sensitive: false };
        world.kubernetes.rehearse(&world.permits.read, &world.cluster, MANAGER, &draft).await.unwrap()
    };
    let rejection = async |rehearsal: Rehearsal| match rehearsal {
        Rehearsal::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let (address, body) = (world.address("Secret", "a"), json!({"type": "example.com/a"}));
    assert_eq!(rehearse("Secret", body.clone(), Onto::Nothing).await, Rehearsal::Taken);
    assert_eq!(world.find(&address).await, None);
    world.put(&address, body, Onto::Nothing).await.unwrap();
    let live = world.get(&address).await;
    let onto = || Onto::Version(live.version.clone(), Fields::Settled);
    let refused = rejection(rehearse("Secret", json!({"type": "example.com/b"}), onto()).await).await;
    assert!(refused.contains("`type`"), "{refused}");
    let taken = json!({"type": "example.com/a", "data": {"a": "MQ=="}});
    assert_eq!(rehearse("Secret", taken.clone(), onto()).await, Rehearsal::Taken);
    let replaced = rehearse("Secret", taken, Onto::Replaced(live.version.clone())).await;
    assert!(matches!(replaced, Rehearsal::NotYet(_)), "{replaced:?}");
    assert_eq!(world.get(&address).await, live, "nothing is written");
    let unserved = rehearse("Nonsense.example.com", json!({}), Onto::Nothing).await;
    assert!(matches!(unserved, Rehearsal::NotYet(_)), "{unserved:?}");
    world.put_as("helm", &world.config_map("a"), json!({"data": {"a": "1"}}), Onto::Nothing).await.unwrap();
    let live = world.get(&world.config_map("a")).await;
    let onto = Onto::Version(live.version.clone(), live.fields);
    let refused = rejection(rehearse("ConfigMap", json!({"data": {"a": "2"}}), onto).await).await;
    assert!(refused.contains("`helm` owns `data.a`"), "{refused}");
}

pub async fn an_error_about_a_secret_has_no_values(world: &World) {
    let address = world.address("Secret", "a");
    let body = json!({"immutable": true, "data": {"a": "aHVudGVyMg=="}});
    world.put(&address, body, Onto::Nothing).await.unwrap();
    let changed = json!({"immutable": true, "data": {"a": "aHVudGVyMw=="}});
    let error = world.apply(&address, changed).await.unwrap_err().told();
    assert!(error.contains("`data`") && !error.contains("aHVud") && !error.contains("hunter"), "{error}");
}
