//! Who owns which fields, and what becomes of them.

use qontract_client_kubernetes::{Fields, KubernetesError, Onto};
use serde_json::json;

use crate::world::World;

pub async fn what_is_no_longer_declared_goes_and_what_others_set_stays(world: &World) {
    let address = world.config_map("a");
    let body = json!({"data": {"a": "1", "b": "2"}, "metadata": {"labels": {"x": "y"}}});
    world.put(&address, body.clone(), Onto::Nothing).await.unwrap();
    world.apply(&address, body).await.unwrap();
    world.apply_as("helm", &address, json!({"data": {"h": "3"}, "metadata": {"labels": {"h": "i"}}})).await;
    world.apply(&address, json!({"data": {"a": "0"}})).await.unwrap();
    let live = world.get(&address).await;
    assert_eq!(live.body["data"], json!({"a": "0", "h": "3"}));
    assert_eq!(live.body["metadata"]["labels"], json!({"h": "i"}));
    assert_eq!(live.fields, Fields::Settled);
}

pub async fn what_we_created_is_ours_when_we_apply(world: &World) {
    let address = world.config_map("a");
    world.put(&address, json!({"data": {"a": "1", "b": "2"}}), Onto::Nothing).await.unwrap();
    world.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "1"}));
}

pub async fn fields_of_another_manager_are_not_taken(world: &World) {
    let address = world.config_map("a");
    world.put_as("helm", &address, json!({"data": {"a": "1", "b": "2"}}), Onto::Nothing).await.unwrap();
    let error = world.apply(&address, json!({"data": {"a": "0", "c": "3"}})).await.unwrap_err();
    let KubernetesError::Conflict { contenders, .. } = &error else { panic!("{error}") };
    assert!(!error.is_transient());
    assert_eq!(contenders.len(), 1);
    assert_eq!(
        (contenders[0].manager.as_str(), contenders[0].fields.as_slice()),
        ("helm", &["`data.a`".to_owned()][..])
    );
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "1", "b": "2"}), "nothing is half done");
    world.apply(&address, json!({"data": {"a": "1", "c": "3"}})).await.unwrap();
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "1", "b": "2", "c": "3"}));
}

pub async fn what_was_applied_on_the_client_s_side_is_taken_over(world: &World) {
    let address = world.config_map("a");
    world.kubectl_apply("a", &json!({"data": {"a": "1", "b": "2"}}));
    let before = world.get(&address).await;
    assert_eq!(before.fields, Fields::ToBeMoved);
    world
        .apply(&address, json!({"data": {"a": "0"}, "metadata": {"annotations": {"mine": "yes"}}}))
        .await
        .unwrap();
    let live = world.get(&address).await;
    assert_eq!(live.body["data"], json!({"a": "0"}));
    assert_eq!(live.body["metadata"]["annotations"], json!({"mine": "yes"}));
    assert_eq!(live.fields, Fields::Settled);
}

pub async fn what_was_changed_by_hand_is_put_right(world: &World) {
    let address = world.config_map("a");
    world.put(&address, json!({"data": {"a": "1"}}), Onto::Nothing).await.unwrap();
    world.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    // Somebody who is not overruled sets one field, somebody who is sets another.
    world.apply_as("helm", &address, json!({"data": {"h": "1"}})).await;
    let live = world.get(&address).await;
    let onto = Onto::Version(live.version, Fields::Settled);
    let by_hand = json!({"data": {"b": "2", "c": "3"}});
    world.put_as("kubectl-edit", &address, by_hand, onto).await.unwrap();
    world.apply(&address, json!({"data": {"a": "1", "b": "0"}})).await.unwrap();
    let expect = json!({"a": "1", "b": "0", "c": "3", "h": "1"});
    assert_eq!(world.get(&address).await.body["data"], expect);
}

pub async fn nobody_is_overruled_if_somebody_else_stands_against_it(world: &World) {
    let address = world.config_map("a");
    world.put_as("helm", &address, json!({"data": {"a": "1"}}), Onto::Nothing).await.unwrap();
    world.apply_as("kubectl-edit", &address, json!({"data": {"b": "2"}})).await;
    let error = world.apply(&address, json!({"data": {"a": "0", "b": "0"}})).await.unwrap_err();
    let KubernetesError::Conflict { contenders, .. } = &error else { panic!("{error}") };
    assert!(contenders.iter().any(|contender| contender.manager == "helm"), "{error}");
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "1", "b": "2"}));
}

pub async fn texts_of_secrets_go_when_they_are_not_declared(world: &World) {
    let address = world.address("Secret", "a");
    world.put(&address, json!({"stringData": {"a": "1", "b": "2"}}), Onto::Nothing).await.unwrap();
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "MQ==", "b": "Mg=="}));
    world.apply(&address, json!({"stringData": {"a": "1"}})).await.unwrap();
    world.apply(&address, json!({"stringData": {"a": "3"}})).await.unwrap();
    assert_eq!(world.get(&address).await.body["data"], json!({"a": "Mw=="}));
}
