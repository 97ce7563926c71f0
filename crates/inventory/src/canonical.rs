//! The canonical form of an object: without server-populated fields and our own annotations.
//!
//! **Invariant:** JSON and hash are byte-identical to those of qontract-reconcile (`tests/vectors.rs`).

use qontract_bundle::Sha256;
use serde_json::{Map, Value};

use crate::mark::{LAST_APPLIED, MARK_ANNOTATIONS, SERVER_FIELDS};

/// Annotation with the time at which the external resource behind a Secret last changed.
pub(crate) const UPDATED_AT: &str = "external-resources/updated_at";

/// The canonical form of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct CanonicalForm {
    /// The object without the stripped fields.
    pub object: Value,
    /// The object serialized as JSON.
    pub text: String,
    /// The SHA-256 of the JSON, as stored in `qontract.sha256sum`.
    pub sha256: Sha256,
}

/// The error for a value that is not a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Kubernetes object: {0}")]
pub struct NotAnObject(String);

/// Computes the canonical form of an object.
///
/// ```
/// let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}});
/// let canonical = qontract_inventory::canonical(&object)?;
/// assert!(canonical.sha256.to_string().starts_with("2326ac26c573"));
/// # Ok::<_, qontract_inventory::NotAnObject>(())
/// ```
pub fn canonical(object: &Value) -> Result<CanonicalForm, NotAnObject> {
    let missing = |what: &str| NotAnObject(format!("`{what}` is missing or of the wrong type"));
    let mut map = object.as_object().ok_or_else(|| NotAnObject("not a map".to_owned()))?.clone();
    let kind = map.get("kind").and_then(Value::as_str).ok_or_else(|| missing("kind"))?.to_owned();
    let version =
        map.get("apiVersion").and_then(Value::as_str).ok_or_else(|| missing("apiVersion"))?.to_owned();
    let metadata =
        map.get_mut("metadata").and_then(Value::as_object_mut).ok_or_else(|| missing("metadata"))?;
    for name in SERVER_FIELDS.into_iter().chain(["namespace"]) {
        metadata.remove(name);
    }
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    for name in MARK_ANNOTATIONS.into_iter().chain([LAST_APPLIED, UPDATED_AT]) {
        remove(annotations, name);
    }
    map.remove("status");
    let mut object = Value::Object(map);
    strip_by_kind(&kind, &version, &mut object);
    let text = qontract_python_json::to_string(&object);
    let sha256 = Sha256::of(text.as_bytes());
    Ok(CanonicalForm { object, text, sha256 })
}

/// Removes the fields that are ignored for a kind.
fn strip_by_kind(kind: &str, version: &str, object: &mut Value) {
    match kind {
        "ConfigMap" => remove_if(object, "type", |value| value == "Opaque"),
        "Secret" => {
            remove_if(object, "type", |value| value == "Opaque");
            fold_string_data(object);
        }
        "Deployment" => {
            remove(&mut object["metadata"]["annotations"], "deployment.kubernetes.io/revision");
        }
        "OperatorGroup" => remove(&mut object["metadata"]["annotations"], "olm.providedAPIs"),
        "ManagedCluster" => managed_cluster(object),
        "Route" => route(object),
        "ServiceAccount" => service_account(object),
        "Role" => role(object),
        "RoleBinding" => role_binding(version, object),
        "ClusterRoleBinding" => {
            remove(object, "userNames");
            remove(object, "groupNames");
            role_ref(version, object);
        }
        "Service" => {
            let spec = &mut object["spec"];
            remove_if(spec, "sessionAffinity", |value| value == "None");
            if spec["type"] == "ClusterIP" {
                remove(spec, "clusterIP");
            }
            remove_null(object, "spec");
        }
        _ => {}
    }
}

/// Merges `stringData` of a Secret into `data`, encoded as base64.
pub(crate) fn fold_string_data(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    for (key, text) in texts {
        let encoded = text.as_str().map(|text| base64(text.as_bytes())).unwrap_or_default();
        if let Some(data) = data.as_object_mut() {
            data.insert(key, encoded.into());
        }
    }
}

/// Removes the labels that the `ManagedCluster` controller maintains.
pub(crate) fn managed_cluster(object: &mut Value) {
    let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) else { return };
    labels.retain(|name, _| {
        !["clusterID", "managed-by", "openshiftVersion"].contains(&name.as_str())
            && !name.starts_with("feature.open-cluster-management.io/")
    });
}

fn route(object: &mut Value) {
    remove_if(&mut object["spec"], "wildcardPolicy", |value| value == "None");
    remove_if(&mut object["spec"], "subdomain", |value| value == "");
    let annotations = &mut object["metadata"]["annotations"];
    if annotations.get("kubernetes.io/tls-acme").is_some() {
        remove(annotations, "kubernetes.io/tls-acme-awaiting-authorization-owner");
        remove(annotations, "kubernetes.io/tls-acme-awaiting-authorization-at-url");
        if let Some(tls) = object["spec"].get_mut("tls") {
            remove(tls, "key");
            remove(tls, "certificate");
        }
    }
    remove_null(object, "spec");
}

fn service_account(object: &mut Value) {
    if let Some(Value::Array(secrets)) = object.get_mut("imagePullSecrets") {
        secrets.retain(|secret| !secret["name"].as_str().is_some_and(|name| name.contains("-dockercfg-")));
    }
    remove_if(object, "imagePullSecrets", |value| value.as_array().is_some_and(Vec::is_empty));
    remove(object, "secrets");
}

/// Sorts the resources and verbs of a Role, which are sets.
pub(crate) fn role(object: &mut Value) {
    for rule in object.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
        for name in ["resources", "verbs"] {
            if let Some(Value::Array(words)) = rule.get_mut(name) {
                words.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            }
        }
        remove_if(rule, "attributeRestrictions", |value| !truthy(value));
    }
}

fn role_binding(version: &str, object: &mut Value) {
    remove(object, "groupNames");
    remove(object, "userNames");
    remove(&mut object["roleRef"], "namespace");
    role_ref(version, object);
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        remove(subject, "namespace");
        let within =
            |group: &Value| group.as_str().is_none_or(|group| group.is_empty() || version.contains(group));
        remove_if(subject, "apiGroup", within);
    }
}

fn role_ref(version: &str, object: &mut Value) {
    let role = &mut object["roleRef"];
    remove(role, "kind");
    remove_if(role, "apiGroup", |group| group.as_str().is_some_and(|group| version.contains(group)));
    remove_null(object, "roleRef");
}

pub(crate) fn remove(object: &mut Value, key: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(key);
    }
}

pub(crate) fn remove_if(object: &mut Value, key: &str, when: impl Fn(&Value) -> bool) {
    if object.get(key).is_some_and(when) {
        remove(object, key);
    }
}

/// Removes a field that is null, because indexing a `Value` for writing inserts null if the field is missing.
fn remove_null(object: &mut Value, key: &str) {
    remove_if(object, key, Value::is_null);
}

/// Whether the value is truthy in Python.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Encodes bytes as base64, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number =
            chunk.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = (number >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(DIGITS[digit as usize]) } else { '=' });
        }
    }
    text
}
