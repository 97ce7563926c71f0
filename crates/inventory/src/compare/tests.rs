//! Tests the comparison of declared and live objects.

use serde_json::{Value, json};

use super::{ObjectComparison, compare};
use crate::difference::{Disclosure, FieldDifference};
use crate::mark::Owner;
use crate::object::{DesiredBody, LiveBody};
use crate::restart::to_write;

fn object(kind: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}});
    let Value::Object(more) = more else { panic!("a map is merged into the object") };
    object.as_object_mut().unwrap().extend(more);
    object
}

fn lines(differences: &[FieldDifference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

/// The printed differences if `live` overrides fields of the written `declared` object, including its hash.
fn differences(kind: &str, declared: Value, live: Value, disclosure: Disclosure<'_>) -> Vec<String> {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let desired = DesiredBody::new(object(kind, declared)).unwrap();
    let mut found = to_write(&desired, None, &owner, "2024-05-01T12:00:00");
    let Value::Object(live) = live else { panic!("a map is merged into the object") };
    found.as_object_mut().unwrap().extend(live);
    lines(&compare(&desired, &LiveBody::new(found), disclosure).differences())
}

fn check(kind: &str, declared: Value, live: Value, expect: &[&str]) {
    assert_eq!(differences(kind, declared, live, Disclosure::Everything), expect);
}

/// Checks differences in the spec of an object of an unknown kind.
fn check_spec(declared: Value, live: Value, expect: &[&str]) {
    let [declared, live] =
        [declared, live].map(|spec| Value::Object([("spec".to_owned(), spec)].into_iter().collect()));
    check("Widget", declared, live, expect);
}

#[test]
fn declared_fields_must_hold() {
    check("ConfigMap", json!({"data": {"x": "1"}}), json!({"data": {"x": "2"}}), &["data.x: \"2\" → \"1\""]);
    check_spec(json!({"replicas": 3}), json!({"replicas": 2}), &["spec.replicas: 2 → 3"]);
    check_spec(json!({"a": {"b": true}}), json!({}), &["spec.a: absent → {\"b\":true}"]);
    check_spec(json!({"a": 1}), json!({"a": [1]}), &["spec.a: [1] → 1"]);
    check(
        "ConfigMap",
        json!({"data": {"a.b": "1"}}),
        json!({"data": {"c": ""}}),
        &["data[\"a.b\"]: absent → \"1\""],
    );
}

#[test]
fn a_renamed_key_is_noticed() {
    let declared = json!({"data": {"x": "1", "y": "2"}});
    check("ConfigMap", declared, json!({"data": {"x": "1", "w": "2"}}), &["data.y: absent → \"2\""]);
}

#[test]
fn fields_that_only_the_cluster_has_are_tolerated() {
    check_spec(json!({"a": 1}), json!({"a": 1, "b": {"c": []}}), &[]);
    check("Widget", json!({}), json!({"status": {"phase": "Ready"}, "data": {}}), &[]);
}

#[test]
fn empty_values_equal_absent_fields() {
    for nothing in [json!(null), json!({}), json!([]), json!({"a": {"b": null}})] {
        check_spec(json!({"a": nothing, "b": 1}), json!({"b": 1}), &[]);
        check_spec(json!({"b": 1}), json!({"a": nothing, "b": 1}), &[]);
    }
    check_spec(json!({"a": ""}), json!({"b": 1}), &["spec.a: absent → \"\""]);
    check_spec(json!({"a": false}), json!({"b": 1}), &["spec.a: absent → false"]);
}

#[test]
fn an_empty_item_is_an_item() {
    check_spec(json!({"ingress": [{}]}), json!({"ingress": [{}]}), &[]);
    check_spec(json!({"ingress": [{}]}), json!({"ingress": []}), &["spec.ingress: absent → [{}]"]);
    check_spec(json!({"ingress": [1, {}]}), json!({"ingress": [1]}), &["spec.ingress[1]: absent → {}"]);
}

#[test]
fn numbers_are_equal_by_value_and_differ_from_texts() {
    check_spec(json!({"a": 1}), json!({"a": 1.0}), &[]);
    check_spec(json!({"a": 0.5}), json!({"a": 0.5}), &[]);
    check_spec(json!({"a": 1}), json!({"a": "1"}), &["spec.a: \"1\" → 1"]);
    check_spec(json!({"a": true}), json!({"a": "true"}), &["spec.a: \"true\" → true"]);
    check_spec(
        json!({"a": u64::MAX}),
        json!({"a": u64::MAX - 1}),
        &["spec.a: 18446744073709551614 → 18446744073709551615"],
    );
}

#[test]
fn quantities_are_equal_by_value_in_quantity_fields() {
    let resources = |cpu: Value, memory: &str| json!({"resources": {"requests": {"cpu": cpu}, "limits": {"memory": memory}}});
    check_spec(resources(json!(0.5), "1024Mi"), resources(json!("500m"), "1Gi"), &[]);
    check_spec(
        resources(json!(1), "1Gi"),
        resources(json!("1"), "1G"),
        &["spec.resources.limits.memory: \"1G\" → \"1Gi\""],
    );
    check(
        "ResourceQuota",
        json!({"spec": {"hard": {"pods": 10}}}),
        json!({"spec": {"hard": {"pods": "10"}}}),
        &[],
    );
    let range = |cpu: &str| json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": cpu}}]}});
    check("LimitRange", range("1000m"), range("1"), &[]);
    let volume = |size: &str| json!({"volumes": [{"name": "a", "emptyDir": {"sizeLimit": size}}]});
    check_spec(volume("1024Ki"), volume("1Mi"), &[]);
    check_spec(
        json!({"max": {"cpu": "1"}}),
        json!({"max": {"cpu": "1000m"}}),
        &["spec.max.cpu: \"1000m\" → \"1\""],
    );
    check(
        "ConfigMap",
        json!({"data": {"sizeLimit": "1"}}),
        json!({"data": {"sizeLimit": "1000m"}}),
        &["data.sizeLimit: \"1000m\" → \"1\""],
    );
}

#[test]
fn named_items_are_found_by_name() {
    let two = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]});
    let more = json!({"containers": [{"name": "proxy"}, {"name": "b", "image": "2"}, {"name": "a", "image": "3", "x": 1}]});
    check_spec(two.clone(), more, &["spec.containers[a].image: \"3\" → \"1\""]);
    let one = json!({"containers": [{"name": "a", "image": "1"}]});
    check_spec(two, one, &["spec.containers[b]: absent → {\"image\":\"2\",\"name\":\"b\"}"]);
    let twice = json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]});
    check_spec(json!({"env": [{"name": "A", "value": "1"}]}), twice, &["spec.env[A].value: \"2\" → \"1\""]);
}

#[test]
fn ports_without_names_are_found_by_number_and_protocol() {
    let declared = json!({"ports": [{"port": 80, "targetPort": 8080}, {"port": 53, "protocol": "UDP"}]});
    let live =
        json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "targetPort": 1}]});
    check_spec(declared, live, &["spec.ports[80/TCP].targetPort: 1 → 8080"]);
}

#[test]
fn other_lists_are_compared_by_position_and_may_be_longer() {
    check_spec(json!({"args": ["a", "b"]}), json!({"args": ["a", "b", "c"]}), &[]);
    check_spec(
        json!({"args": ["a", "b"]}),
        json!({"args": ["b", "a"]}),
        &["spec.args[0]: \"b\" → \"a\"", "spec.args[1]: \"a\" → \"b\""],
    );
    check_spec(json!({"args": ["a", "b"]}), json!({"args": ["a"]}), &["spec.args[1]: absent → \"b\""]);
}

#[test]
fn the_order_of_init_containers_is_compared() {
    let steps = |names: &[&str]| json!({"initContainers": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
    check_spec(steps(&["a", "b"]), steps(&["a", "x", "b"]), &[]);
    check_spec(
        steps(&["a", "b"]),
        steps(&["b", "a"]),
        &["spec.initContainers: [\"b\",\"a\"] → [\"a\",\"b\"]"],
    );
}

#[test]
fn a_variable_without_a_value_has_an_empty_one() {
    let env = |variable: Value| json!({"env": [variable]});
    let (bare, empty) = (json!({"name": "A"}), json!({"name": "A", "value": ""}));
    check_spec(env(bare.clone()), env(empty.clone()), &[]);
    check_spec(env(empty), env(bare.clone()), &[]);
    check_spec(env(bare), env(json!({"name": "A", "value": "x"})), &["spec.env[A].value: \"x\" → \"\""]);
}

#[test]
fn another_api_version_is_not_drift() {
    check("Widget", json!({}), json!({"apiVersion": "extensions/v1beta1"}), &[]);
}

#[test]
fn secret_values_are_not_shown() {
    let declared = json!({"stringData": {"a": "hunter2"}, "data": {"b": "aHVudGVyMg==", "c": ""}});
    let live = json!({"stringData": null, "data": {"a": "b2xk", "c": "b2xk"}, "type": "Opaque"});
    check("Secret", declared.clone(), live.clone(), &["data.a: changed", "data.b: added", "data.c: changed"]);
    let (declared, live) = (json!({"data": {"a": "hunter2"}}), json!({"data": {"a": "old"}}));
    assert_eq!(differences("ConfigMap", declared, live, Disclosure::Paths), ["data.a: changed"]);
}

#[test]
fn paths_that_come_from_a_secret_are_counted_and_not_named() {
    let check = |declared: Value, desired: Value, live: Value, expect: &[&str]| {
        let declared = object("ConfigMap", declared);
        let actual = differences("ConfigMap", desired, live, Disclosure::PathsOf(&declared));
        assert_eq!(actual, expect);
    };
    let desired = json!({"data": {"plain": "1", "hush": "2", "hush2": "3"}});
    check(
        json!({"data": {"plain": "vault(a#b)"}}),
        desired.clone(),
        json!({"data": {"plain": "0"}}),
        &["data: 2 fields that come from a secret differ", "data.plain: changed"],
    );
    // The whole map comes from a secret.
    check(
        json!({"data": "vault(a#b)"}),
        desired.clone(),
        json!({"data": {"plain": "0"}}),
        &["data: 3 fields that come from a secret differ"],
    );
    check(
        json!({}),
        desired.clone(),
        json!({"data": {"plain": "1", "hush": "2"}}),
        &["object: 1 field that comes from a secret differs"],
    );
    // An added map is one difference, at a path that the data has.
    check(json!({"data": {"plain": "1"}}), desired, json!({"data": null}), &["data: added"]);
    let list =
        |name: &str| json!({"spec": {"env": [{"name": "a", "value": "1"}, {"name": name, "value": "2"}]}});
    let live = json!({"spec": {"env": [{"name": "a", "value": "0"}, {"name": "hush", "value": "0"}]}});
    check(
        list("vault(a#b)"),
        list("hush"),
        live.clone(),
        &["spec.env[a].value: changed", "spec.env: 1 field that comes from a secret differs"],
    );
    check(list("hush"), list("hush"), live, &["spec.env[a].value: changed", "spec.env[hush].value: changed"]);
    let by_position = |count: usize| json!({"spec": {"args": vec!["x"; count]}});
    check(
        by_position(1),
        by_position(2),
        json!({"spec": {"args": ["y", "y"]}}),
        &["spec.args[0]: changed", "spec.args: 1 field that comes from a secret differs"],
    );
}

/// The result of comparing an object with a live object that has this hash.
fn hashed(kind: &str, hash: &Value) -> ObjectComparison {
    let body = object(kind, json!({"data": {"a": "Yg=="}}));
    let mut live = body.clone();
    live["metadata"]["annotations"] = json!({"qontract.integration": "x", "qontract.sha256sum": hash});
    compare(&DesiredBody::new(body).unwrap(), &LiveBody::new(live), Disclosure::Everything)
}

#[test]
fn another_hash_is_a_difference_though_all_fields_hold() {
    let line = |comparison: ObjectComparison| lines(&comparison.differences()).join("|");
    assert_eq!(
        line(hashed("ConfigMap", &json!("0123456789abcdef"))),
        "qontract.sha256sum: \"0123456789ab\" → \"40f7e1316031\""
    );
    assert_eq!(line(hashed("ConfigMap", &json!(null))), "qontract.sha256sum: absent → \"40f7e1316031\"");
    assert_eq!(line(hashed("Secret", &json!("0123456789abcdef"))), "qontract.sha256sum: changed");
}

#[test]
fn a_restart_is_not_drift() {
    let owner = Owner::of("openshift-resources", None).unwrap();
    let spec = |annotations: Value| json!({"spec": {"template": {"metadata": {"annotations": annotations}, "spec": {}}}});
    let desired = DesiredBody::new(object("Deployment", spec(json!({})))).unwrap();
    let restarted =
        LiveBody::new(object("Deployment", spec(json!({"kubectl.kubernetes.io/restartedAt": "noon"}))));
    let written = LiveBody::new(to_write(&desired, Some(&restarted), &owner, "2024-05-01T12:00:00"));
    assert_eq!(compare(&desired, &written, Disclosure::Everything), ObjectComparison::Equal);
}
