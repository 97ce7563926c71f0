//! Normalizes objects for comparison: removes server-populated fields and our annotations, and uses one
//! representation for equivalent values.

use serde_json::{Map, Value};

use crate::canonical::{UPDATED_AT, fold_string_data, managed_cluster, remove, remove_if, role};
use crate::mark::{LAST_APPLIED, MARK_ANNOTATIONS, SERVER_FIELDS};

/// The annotation that requests a certificate for a Route. The certificate of such a Route differs from the
/// declared one.
const TLS_ACME: &str = "kubernetes.io/tls-acme";

/// Normalizes a live object.
pub fn normalize_live(body: &Value) -> Value {
    let mut object = body.clone();
    for name in ["apiVersion", "status"] {
        remove(&mut object, name);
    }
    if let Some(metadata) = object.get_mut("metadata") {
        for name in SERVER_FIELDS.into_iter().chain(["namespace"]) {
            remove(metadata, name);
        }
        if let Some(annotations) = metadata.get_mut("annotations") {
            for name in MARK_ANNOTATIONS.into_iter().chain([LAST_APPLIED, UPDATED_AT]) {
                remove(annotations, name);
            }
        }
    }
    match body["kind"].as_str() {
        Some("Secret") => fold_string_data(&mut object),
        Some("Role") => role(&mut object),
        _ => {}
    }
    fill_env(&mut object);
    object
}

/// Normalizes a desired object as a live object, and also removes declared fields that the server never
/// stores.
pub fn normalize_desired(body: &Value) -> Value {
    let mut object = normalize_live(body);
    match body["kind"].as_str() {
        Some("Deployment") => drop_annotation(&mut object, "deployment.kubernetes.io/revision"),
        Some("OperatorGroup") => drop_annotation(&mut object, "olm.providedAPIs"),
        Some("ManagedCluster") => managed_cluster(&mut object),
        Some("Route") => route(&mut object),
        Some("RoleBinding" | "ClusterRoleBinding") => binding(&mut object),
        Some("Service") => {
            if let Some(spec) = object.get_mut("spec") {
                remove_if(spec, "clusterIP", |address| address == "");
            }
        }
        Some("ServiceAccount") => {
            if let Some(Value::Array(secrets)) = object.get_mut("imagePullSecrets") {
                secrets
                    .retain(|secret| !secret["name"].as_str().is_some_and(|it| it.contains("-dockercfg-")));
            }
        }
        _ => {}
    }
    object
}

fn drop_annotation(object: &mut Value, name: &str) {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations") {
        remove(annotations, name);
    }
}

fn route(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        remove_if(spec, "subdomain", |name| name == "");
    }
    if object.pointer("/metadata/annotations").is_none_or(|it| it.get(TLS_ACME).is_none()) {
        return;
    }
    drop_annotation(object, "kubernetes.io/tls-acme-awaiting-authorization-owner");
    drop_annotation(object, "kubernetes.io/tls-acme-awaiting-authorization-at-url");
    if let Some(tls) = object.pointer_mut("/spec/tls") {
        remove(tls, "key");
        remove(tls, "certificate");
    }
}

/// Removes empty fields and the fields of the legacy OpenShift API.
fn binding(object: &mut Value) {
    remove(object, "userNames");
    remove(object, "groupNames");
    if let Some(role) = object.get_mut("roleRef") {
        remove(role, "namespace");
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        remove_if(subject, "apiGroup", |group| group == "");
    }
}

/// Gives an empty value to each environment variable without one.
fn fill_env(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                fill_env(child);
                if key == "env" {
                    child
                        .as_array_mut()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_object_mut)
                        .for_each(fill_variable);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(fill_env),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_variable(variable: &mut Map<String, Value>) {
    let absent = |name: &str| variable.get(name).is_none_or(Value::is_null);
    if absent("value") && absent("valueFrom") && variable.contains_key("name") {
        variable.insert("value".to_owned(), "".into());
    }
}

#[cfg(test)]
mod tests {
    use super::normalize_desired;
    use serde_json::{Value, json};

    /// Checks the normalized form of an object of this kind.
    fn check(kind: &str, mut object: Value, mut expect: Value) {
        object["kind"] = kind.into();
        expect["kind"] = kind.into();
        assert_eq!(normalize_desired(&object), expect);
    }

    #[test]
    fn server_fields_and_marks_are_removed() {
        check(
            "Widget",
            json!({"apiVersion": "a/v1", "status": {}, "metadata": {"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "1",
                "generation": 1, "selfLink": "", "creationTimestamp": null, "managedFields": [], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "", "qontract.integration": "", "qontract.recycle": "true",
                "external-resources/updated_at": "now"}}}),
            json!({"metadata": {"name": "a", "annotations": {"qontract.recycle": "true"}}}),
        );
    }

    #[test]
    fn equivalent_values_have_one_representation() {
        check("Secret", json!({"stringData": {"a": "b"}}), json!({"data": {"a": "Yg=="}}));
        check("Role", json!({"rules": [{"verbs": ["b", "a"]}]}), json!({"rules": [{"verbs": ["a", "b"]}]}));
        check(
            "Widget",
            json!({"spec": {"env": [{"name": "A"}, {"name": "B", "valueFrom": {}}, {"name": "C", "value": "c"}, 1]}}),
            json!({"spec": {"env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {}}, {"name": "C", "value": "c"}, 1]}}),
        );
    }

    #[test]
    fn fields_that_the_server_never_keeps_are_removed() {
        check("Service", json!({"spec": {"clusterIP": ""}}), json!({"spec": {}}));
        check(
            "ServiceAccount",
            json!({"imagePullSecrets": [{"name": "a-dockercfg-1"}, {"name": "b"}]}),
            json!({"imagePullSecrets": [{"name": "b"}]}),
        );
        check(
            "RoleBinding",
            json!({"userNames": [], "roleRef": {"namespace": "a", "name": "b"}, "subjects": [{"apiGroup": ""}]}),
            json!({"roleRef": {"name": "b"}, "subjects": [{}]}),
        );
        check(
            "Route",
            json!({"metadata": {"annotations": {"kubernetes.io/tls-acme": "true"}}, "spec": {"subdomain": "", "tls": {"key": "k"}}}),
            json!({"metadata": {"annotations": {"kubernetes.io/tls-acme": "true"}}, "spec": {"tls": {}}}),
        );
        check("Route", json!({"spec": {"tls": {"key": "k"}}}), json!({"spec": {"tls": {"key": "k"}}}));
    }
}
