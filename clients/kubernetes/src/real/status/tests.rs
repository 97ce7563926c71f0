//! Tests the interpretation of refusals, with the wording of API servers.

use serde_json::{Value, json};

use super::{RequestSubject, without_keys};
use crate::object::{Cluster, Kind, ObjectAddress};

#[track_caller]
fn check(kind: &str, code: u16, status: &Value, expect: &str) {
    let cluster = Cluster { name: "c1".to_owned(), server: String::new(), token: None };
    let subject =
        RequestSubject::object(&cluster, &ObjectAddress::in_namespace(Kind::named(kind), "ns", "a"));
    assert_eq!(subject.refusal(code, status.to_string().as_bytes()).to_string(), expect);
}

#[test]
fn rejected_credentials_and_denied_access() {
    check(
        "ConfigMap",
        401,
        &json!({"message": "Unauthorized"}),
        "cannot log in to the cluster `c1`: the credentials are not accepted",
    );
    let denied = json!({"reason": "Forbidden", "message": "configmaps is forbidden: User \"plain\" cannot list", "details": {}});
    let expect = "the cluster `c1` denies access: configmaps is forbidden: User \"plain\" cannot list";
    check("ConfigMap", 403, &denied, expect);
    check("Secret", 403, &denied, "the cluster `c1` denies access: Forbidden");
}

#[test]
fn a_missing_namespace() {
    let missing = json!({"reason": "NotFound", "details": {"kind": "namespaces", "name": "ns"}});
    let expect = "ConfigMap `a` in `ns` cannot be written: the namespace `ns` is not available";
    check("ConfigMap", 404, &missing, expect);
    let going = json!({"reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}});
    let expect = "ConfigMap `a` in `ns` cannot be written: the namespace `ns`, which is being removed, is not available";
    check("ConfigMap", 403, &going, expect);
}

#[test]
fn an_object_that_changed_since_it_was_read() {
    let expect = "ConfigMap `a` in `ns` changed since it was read";
    check("ConfigMap", 409, &json!({"reason": "Conflict", "details": {"name": "a"}}), expect);
    check("ConfigMap", 409, &json!({"reason": "AlreadyExists"}), expect);
    check(
        "ConfigMap",
        404,
        &json!({"reason": "NotFound", "details": {"name": "a", "kind": "configmaps"}}),
        expect,
    );
    let gone = "the cluster `c1` does not serve ConfigMap `a` in `ns` anymore";
    check("ConfigMap", 404, &json!({"reason": "NotFound", "details": {}}), gone);
}

#[test]
fn field_conflicts_name_the_managers() {
    let conflict =
        |field, message| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
    let status = json!({"reason": "Conflict", "details": {"causes": [
        conflict(".data.b", "conflict with \"helm\" using v1"),
        conflict(".data.a", "conflict with \"argo\" with subresource \"scale\" using v1 at 2024-01-01T00:00:00Z"),
        conflict(".data.c", "conflict with \"helm\" using v1"),
    ]}});
    let expect = "ConfigMap `a` in `ns` conflicts with other managers: `argo` owns `data.a`; `helm` owns `data.b`, `data.c`";
    check("ConfigMap", 409, &status, expect);
}

fn invalid(causes: &Value) -> Value {
    json!({"reason": "Invalid", "message": "everything, with hunter2", "details": {"causes": causes}})
}

#[test]
fn validation_errors_have_no_values() {
    let immutable = json!({"message": "Invalid value: core.PodTemplateSpec{Env: \"hunter2\", X: y}: field is immutable", "field": "spec.template"});
    let wrong = json!({"message": "Invalid value: \"a\\\": b\": spec.x in body must be of type string: \"number\"", "field": "spec.x"});
    let number =
        json!({"message": "Invalid value: -1: must be greater than or equal to 0", "field": "spec.replicas"});
    let required = json!({"message": "Required value", "field": "metadata.name"});
    check(
        "Deployment",
        422,
        &invalid(&json!([immutable, wrong, number, required])),
        "the cluster `c1` rejects Deployment `a` in `ns`: `spec.template`: field is immutable, \
         `spec.x`: spec.x in body must be of type string: \"number\", \
         `spec.replicas`: must be greater than or equal to 0, `metadata.name`: Required value",
    );
}

#[test]
fn keys_that_may_come_from_a_secret_are_not_shown() {
    let check = |field: &str, expect: &str| assert_eq!(without_keys(field), expect, "{field}");
    check("data[a.b]", "data");
    check("data.key", "data");
    check("stringData.x.y", "stringData");
    check("metadata.annotations.x", "metadata.annotations");
    check("metadata.labels[data]", "metadata.labels");
    check("spec.containers[0].image", "spec.containers[0].image");
    check("spec.database.data", "spec.database.data");
    check("", "");
    let conflict = |field| json!({"reason": "FieldManagerConflict", "message": "conflict with \"helm\"", "field": field});
    let status = json!({"details": {"causes": [conflict(".data.a"), conflict(".data.b")]}});
    let subject = |kind: &str| {
        let cluster = Cluster { name: "c1".to_owned(), server: String::new(), token: None };
        RequestSubject::object(&cluster, &ObjectAddress::in_namespace(Kind::named(kind), "ns", "a"))
    };
    let message = |kind: &str| subject(kind).refusal(409, status.to_string().as_bytes()).to_string();
    assert_eq!(message("Secret"), "Secret `a` in `ns` conflicts with other managers: `helm` owns `data`");
    assert_eq!(
        message("ConfigMap"),
        "ConfigMap `a` in `ns` conflicts with other managers: `helm` owns `data.a`, `data.b`"
    );
}

#[test]
fn errors_about_secrets_contain_only_field_names() {
    let causes = json!([{"message": "Invalid value: \"hunter2\": must be hunter2", "field": "data[x]"},
        {"message": "Invalid value: \"hunter2\": field is immutable", "field": "type"}]);
    let expect = "the cluster `c1` rejects Secret `a` in `ns`: Invalid: `data`, `type`: field is immutable";
    check("Secret", 422, &invalid(&causes), expect);
    check("Secret", 422, &invalid(&json!([])), "the cluster `c1` rejects Secret `a` in `ns`: Invalid");
    check("ExternalSecret", 500, &invalid(&json!([])), "cluster `c1` responded with HTTP 500: Invalid");
}

#[test]
fn a_response_without_a_reason_is_reported_as_such() {
    check("ConfigMap", 500, &json!("broken"), "cluster `c1` responded with HTTP 500: no reason given");
}

#[test]
fn a_long_explanation_is_cut() {
    let status = json!({"reason": "BadRequest", "message": "x ".repeat(1000)});
    let expect = format!("the cluster `c1` rejects ConfigMap `a` in `ns`: {}x …", "x ".repeat(200));
    check("ConfigMap", 400, &status, &expect);
}
