//! Tests field ownership.

use qontract_client_kubernetes::{
    FieldOwnership, KubernetesError, MANAGER, ObjectAddress, WritePrecondition,
};
use serde_json::{Value, json};

use crate::fixture::ContractFixture;
use crate::kinds::define_widget;

pub async fn undeclared_fields_are_removed_and_fields_of_others_stay(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    let body = json!({"data": {"a": "1", "b": "2"}, "metadata": {"labels": {"x": "y"}}});
    fixture.put(&address, body.clone(), WritePrecondition::Absent).await.unwrap();
    fixture.apply(&address, body).await.unwrap();
    fixture.apply_as("helm", &address, json!({"data": {"h": "3"}, "metadata": {"labels": {"h": "i"}}})).await;
    fixture.apply(&address, json!({"data": {"a": "0"}})).await.unwrap();
    let live = fixture.get(&address).await;
    assert_eq!(live.body["data"], json!({"a": "0", "h": "3"}));
    assert_eq!(live.body["metadata"]["labels"], json!({"h": "i"}));
    assert_eq!(live.field_ownership, FieldOwnership::Ours);
}

pub async fn fields_that_we_created_are_ours(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    fixture.put(&address, json!({"data": {"a": "1", "b": "2"}}), WritePrecondition::Absent).await.unwrap();
    fixture.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "1"}));
}

pub async fn fields_of_another_manager_are_not_taken(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    fixture
        .put_as("helm", &address, json!({"data": {"a": "1", "b": "2"}}), WritePrecondition::Absent)
        .await
        .unwrap();
    let error = fixture.apply(&address, json!({"data": {"a": "0", "c": "3"}})).await.unwrap_err();
    let KubernetesError::Conflict { conflicts: contenders, .. } = &error else { panic!("{error}") };
    assert!(!error.is_transient());
    assert_eq!(contenders.len(), 1);
    assert_eq!(
        (contenders[0].manager.as_str(), contenders[0].fields.as_slice()),
        ("helm", &["`data.a`".to_owned()][..])
    );
    assert_eq!(
        fixture.get(&address).await.body["data"],
        json!({"a": "1", "b": "2"}),
        "nothing is written partially"
    );
    fixture.apply(&address, json!({"data": {"a": "1", "c": "3"}})).await.unwrap();
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "1", "b": "2", "c": "3"}));
}

pub async fn client_side_applied_fields_are_taken_over(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    fixture.kubectl_apply("a", &json!({"data": {"a": "1", "b": "2"}}));
    let before = fixture.get(&address).await;
    assert_eq!(before.field_ownership, FieldOwnership::ClientSideApplied);
    fixture
        .apply(&address, json!({"data": {"a": "0"}, "metadata": {"annotations": {"mine": "yes"}}}))
        .await
        .unwrap();
    let live = fixture.get(&address).await;
    assert_eq!(live.body["data"], json!({"a": "0"}));
    assert_eq!(live.body["metadata"]["annotations"], json!({"mine": "yes"}));
    assert_eq!(live.field_ownership, FieldOwnership::Ours);
}

pub async fn manual_changes_of_declared_fields_are_reverted(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    fixture.put(&address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    fixture.apply(&address, json!({"data": {"a": "1"}})).await.unwrap();
    // A manager that is not overruled sets one field, a manager that is overruled sets another.
    fixture.apply_as("helm", &address, json!({"data": {"h": "1"}})).await;
    let live = fixture.get(&address).await;
    let onto = WritePrecondition::Version(live.version, FieldOwnership::Ours);
    let by_hand = json!({"data": {"b": "2", "c": "3"}});
    fixture.put_as("kubectl-edit", &address, by_hand, onto).await.unwrap();
    fixture.apply(&address, json!({"data": {"a": "1", "b": "0"}})).await.unwrap();
    let expect = json!({"a": "1", "b": "0", "c": "3", "h": "1"});
    assert_eq!(fixture.get(&address).await.body["data"], expect);
}

pub async fn no_manager_is_overruled_if_another_one_conflicts(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    fixture.put_as("helm", &address, json!({"data": {"a": "1"}}), WritePrecondition::Absent).await.unwrap();
    fixture.apply_as("kubectl-edit", &address, json!({"data": {"b": "2"}})).await;
    let error = fixture.apply(&address, json!({"data": {"a": "0", "b": "0"}})).await.unwrap_err();
    let KubernetesError::Conflict { conflicts: contenders, .. } = &error else { panic!("{error}") };
    assert!(contenders.iter().any(|contender| contender.manager == "helm"), "{error}");
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "1", "b": "2"}));
}

pub async fn undeclared_string_data_is_removed(fixture: &ContractFixture) {
    let address = fixture.address("Secret", "a");
    fixture
        .put(&address, json!({"stringData": {"a": "1", "b": "2"}}), WritePrecondition::Absent)
        .await
        .unwrap();
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "MQ==", "b": "Mg=="}));
    fixture.apply(&address, json!({"stringData": {"a": "1"}})).await.unwrap();
    fixture.apply(&address, json!({"stringData": {"a": "3"}})).await.unwrap();
    assert_eq!(fixture.get(&address).await.body["data"], json!({"a": "Mw=="}));
}

/// Writes `declared` over the live object, and compares the result with the preview.
async fn check_preview(fixture: &ContractFixture, address: &ObjectAddress, declared: Value) -> Value {
    loop {
        let live = fixture.get(address).await;
        let mut whole = declared.clone();
        for field in ["apiVersion", "kind"] {
            whole[field] = live.body[field].clone();
        }
        let preview = live.managed_fields.preview(&live.body, MANAGER, live.field_ownership, &whole);
        let onto = preview.precondition(live.version, live.field_ownership);
        match fixture.put(address, declared.clone(), onto).await {
            // The controllers of a real cluster write to it as well.
            Err(KubernetesError::Stale { .. }) => continue,
            other => other.unwrap(),
        }
        let after = fixture.get(address).await.body;
        let empty_as_absent = |value: &Value| match value {
            Value::Object(map) if map.is_empty() => Value::Null,
            other => other.clone(),
        };
        for field in ["data", "spec", "subjects", "rules"] {
            assert_eq!(
                empty_as_absent(&after[field]),
                empty_as_absent(&preview.after[field]),
                "{field} of {address}"
            );
        }
        for field in ["labels", "annotations"] {
            let side = |object: &Value| {
                let mut value = object["metadata"][field].clone();
                // A controller writes it to workloads of a real cluster.
                value.as_object_mut().map(|map| map.remove("deployment.kubernetes.io/revision"));
                empty_as_absent(&value)
            };
            assert_eq!(side(&after), side(&preview.after), "metadata.{field} of {address}");
        }
        return after;
    }
}

pub async fn a_preview_equals_the_written_keys(fixture: &ContractFixture) {
    let address = fixture.config_map("a");
    let body = json!({"data": {"a": "1", "b": "2", "c": "3"}, "metadata": {"labels": {"x": "y", "z": "1"}}});
    fixture.put(&address, body, WritePrecondition::Absent).await.unwrap();
    fixture.apply_as("helm", &address, json!({"data": {"h": "3"}})).await;
    let after = check_preview(
        fixture,
        &address,
        json!({"data": {"a": "0", "d": "4"}, "metadata": {"labels": {"z": "1"}}}),
    )
    .await;
    assert_eq!(after["data"], json!({"a": "0", "d": "4", "h": "3"}));
    let after =
        check_preview(fixture, &address, json!({"metadata": {"annotations": {"only": "this"}}})).await;
    assert_eq!(after["data"], json!({"h": "3"}));

    let address = fixture.config_map("applied-by-kubectl");
    fixture.kubectl_apply("applied-by-kubectl", &json!({"data": {"a": "1", "b": "2"}}));
    let after = check_preview(fixture, &address, json!({"data": {"a": "0"}})).await;
    assert_eq!(after["data"], json!({"a": "0"}));

    let address = fixture.address("Secret", "a");
    fixture
        .put(&address, json!({"stringData": {"a": "1", "b": "2"}}), WritePrecondition::Absent)
        .await
        .unwrap();
    let after = check_preview(fixture, &address, json!({"stringData": {"b": "3"}})).await;
    assert_eq!(after["data"], json!({"b": "Mw=="}));

    let address = fixture.address("ResourceQuota", "a");
    let hard = |hard: Value| json!({"spec": {"hard": hard}});
    fixture
        .put(&address, hard(json!({"limits.memory": "8Gi", "pods": "5"})), WritePrecondition::Absent)
        .await
        .unwrap();
    let after = check_preview(fixture, &address, hard(json!({"pods": "5"}))).await;
    assert_eq!(after["spec"]["hard"], json!({"pods": "5"}));
}

pub async fn a_preview_equals_the_written_lists(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    let deployment = |containers: Value| {
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}}})
    };
    let first = json!([
        {"name": "web", "image": "example.com/i:1", "args": ["a", "b"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "more"}]},
        {"name": "side", "image": "example.com/i:2"}]);
    fixture.put(&address, deployment(first), WritePrecondition::Absent).await.unwrap();
    let second = json!([{"name": "web", "image": "example.com/i:3", "args": ["b"], "env": [{"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80}]}]);
    let after = check_preview(fixture, &address, deployment(second)).await;
    let containers = &after["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    assert_eq!(containers[0]["env"], json!([{"name": "B", "value": "2"}]));
    assert_eq!(containers[0]["ports"].as_array().map(Vec::len), Some(1));
    assert_eq!(containers[0]["args"], json!(["b"]));
    let third = json!([{"name": "web", "image": "example.com/i:3"}]);
    let after = check_preview(fixture, &address, deployment(third)).await;
    let web = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&web["args"], &web["env"], &web["ports"]), (&Value::Null, &Value::Null, &Value::Null));

    let address = fixture.address("Role", "a");
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]}]);
    fixture.put(&address, json!({"rules": rules}), WritePrecondition::Absent).await.unwrap();
    let after = check_preview(fixture, &address, json!({"rules": [rules[1]]})).await;
    assert_eq!(after["rules"], json!([rules[1]]));
}

pub async fn server_defaults_have_no_owner(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "a");
    let deployment = |container: Value| {
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}}})
    };
    let tty = json!({"name": "web", "image": "example.com/i:1", "tty": true});
    fixture.put(&address, deployment(tty), WritePrecondition::Absent).await.unwrap();
    let live = fixture.get(&address).await;
    assert_eq!(live.field_ownership, FieldOwnership::Ours, "created fields need no migration");
    let after =
        check_preview(fixture, &address, deployment(json!({"name": "web", "image": "example.com/i:1"})))
            .await;
    assert_eq!(after["spec"]["template"]["spec"]["containers"][0].get("tty"), None);
}

pub async fn server_defaults_of_another_tool_stay(fixture: &ContractFixture) {
    let address = fixture.address("Deployment", "by-kubectl");
    let body = json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": {
        "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "web", "image": "example.com/i:1", "tty": true}]}}}});
    fixture.kubectl_apply_kind("apps/v1", "Deployment", "by-kubectl", &body);
    let mut declared = body.clone();
    declared["spec"]["template"]["spec"]["containers"] = json!([{"name": "web", "image": "example.com/i:2"}]);
    let before = fixture.get(&address).await;
    let after = check_preview(fixture, &address, declared).await;
    let container = |object: &Value| {
        let mut container = object["spec"]["template"]["spec"]["containers"][0].clone();
        container.as_object_mut().unwrap().remove("tty");
        container["image"] = Value::Null;
        container
    };
    assert_eq!(container(&after), container(&before.body), "only declared fields are removed");
    assert_eq!(after["spec"]["template"]["spec"]["containers"][0].get("tty"), None);
}

pub async fn a_preview_equals_the_written_selectors(fixture: &ContractFixture) {
    let labels = |labels: Value| json!({"matchLabels": labels});
    let both = || labels(json!({"a": "1", "b": "2"}));
    let policy = |selector: Value| json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"]}});
    let address = fixture.address("NetworkPolicy", "a");
    fixture.put(&address, policy(both()), WritePrecondition::Absent).await.unwrap();
    let after = check_preview(fixture, &address, policy(labels(json!({"a": "1"})))).await;
    assert_eq!(after["spec"]["podSelector"], labels(json!({"a": "1"})));
    let expressions = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
    let after = check_preview(fixture, &address, policy(expressions.clone())).await;
    assert_eq!(after["spec"]["podSelector"], expressions);
    fixture.apply_as("kubectl-edit", &address, json!({"spec": {"policyTypes": ["Ingress"]}})).await;
    check_preview(fixture, &address, policy(both())).await;
    check_preview(fixture, &address, json!({"spec": {"policyTypes": ["Ingress"], "podSelector": {}}})).await;

    let budget = |selector: Value| json!({"spec": {"minAvailable": 1, "selector": selector}});
    let address = fixture.address("PodDisruptionBudget", "a");
    fixture.put(&address, budget(both()), WritePrecondition::Absent).await.unwrap();
    let after = check_preview(fixture, &address, budget(labels(json!({"b": "2"})))).await;
    assert_eq!(after["spec"]["selector"], labels(json!({"b": "2"})));
}

pub async fn a_preview_equals_the_written_untyped_maps(fixture: &ContractFixture) {
    let untyped = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let feature = json!({"type": "object", "properties": {
        "enabled": {"type": "boolean", "default": true}, "level": {"type": "integer"}}});
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let [definition, address] =
        define_widget(fixture, &json!({"untyped": untyped, "any": any, "feature": feature})).await;
    let map = || json!({"a": 1, "b": {"c": 2, "d": 3}, "e": 4});
    let spec = |map: Value, feature: Value| json!({"spec": {"untyped": map, "any": map, "feature": feature}});
    fixture.put(&address, spec(map(), json!({})), WritePrecondition::Absent).await.unwrap();
    let smaller = || json!({"a": 1, "b": {"c": 2}});
    let after = check_preview(fixture, &address, spec(smaller(), json!({}))).await;
    assert_eq!([&after["spec"]["untyped"], &after["spec"]["any"]], [&smaller(), &smaller()]);
    // The defaults of a map that was declared as empty stay.
    let enabled = after["spec"]["feature"]["enabled"].clone();
    let after = check_preview(fixture, &address, spec(smaller(), json!({"level": 2}))).await;
    assert_eq!(after["spec"]["feature"]["enabled"], enabled);
    let after = check_preview(fixture, &address, json!({"spec": {"feature": {"level": 2}}})).await;
    assert_eq!([after["spec"].get("untyped"), after["spec"].get("any")], [None, None]);
    fixture.remove(&fixture.get(&definition).await).await.unwrap();
}
