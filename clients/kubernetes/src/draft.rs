//! Completes a draft for sending and removes server-populated fields. Pure.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::discovery::draft_version;
use crate::error::KubernetesError;
use crate::object::{ApiResource, Cluster, ObjectAddress, check_name};

/// Server-populated fields of `metadata`.
const SERVER_FIELDS: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "selfLink",
];

/// The body of a draft with its version, kind and name; different values in the body are an error.
///
/// As on the server, `stringData` of Secrets becomes `data`. Otherwise, a key that is no longer declared
/// would stay.
pub(crate) fn complete_body(
    cluster: &Cluster,
    address: &ObjectAddress,
    served: &ApiResource,
    body: &Value,
) -> Result<Value, KubernetesError> {
    let malformed =
        |why: &str| KubernetesError::Malformed { object: address.to_string(), why: why.to_owned() };
    let Value::Object(fields) = body else { return Err(malformed("it is not a map")) };
    let version = draft_version(cluster, &address.kind, served, body)?;
    let mut body = fields.clone();
    body.insert("apiVersion".to_owned(), version.into());
    set_or_check(&mut body, "kind", &address.kind.name).map_err(|()| malformed("it has another `kind`"))?;
    body.remove("status");
    let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(metadata) = metadata else { return Err(malformed("`metadata` is not a map")) };
    metadata.retain(|key, _| !SERVER_FIELDS.contains(&key.as_str()));
    set_or_check(metadata, "name", check_name(&address.name)?)
        .map_err(|()| malformed("it has another name"))?;
    match (metadata.get("namespace"), &address.namespace) {
        (None, _) => {}
        (Some(given), Some(namespace)) if served.is_namespaced && given == namespace => {}
        (Some(_), Some(_)) if served.is_namespaced => {
            return Err(malformed("it is in another namespace"));
        }
        (Some(_), _) => {
            metadata.remove("namespace");
        }
    }
    if address.kind.name == "Secret" && body.get("apiVersion").is_some_and(|version| version == "v1") {
        fold_string_data(&mut body).map_err(malformed)?;
    }
    Ok(Value::Object(body))
}

/// The namespace of an object; `None` if its kind is cluster-scoped.
pub(crate) fn namespace<'a>(
    address: &'a ObjectAddress,
    served: &ApiResource,
) -> Result<Option<&'a str>, KubernetesError> {
    match (served.is_namespaced, &address.namespace) {
        (false, _) => Ok(None),
        (true, Some(namespace)) => Ok(Some(check_name(namespace)?)),
        (true, None) => Err(KubernetesError::Malformed {
            object: address.to_string(),
            why: "it is namespaced, but no namespace is given".to_owned(),
        }),
    }
}

fn set_or_check(map: &mut Map<String, Value>, key: &str, value: &str) -> Result<(), ()> {
    match map.get(key) {
        Some(Value::String(given)) if given == value => Ok(()),
        Some(_) => Err(()),
        None => {
            map.insert(key.to_owned(), value.into());
            Ok(())
        }
    }
}

/// Merges `stringData` of a Secret into its `data`.
pub(crate) fn fold_string_data(body: &mut Map<String, Value>) -> Result<(), &'static str> {
    let Some(texts) = body.remove("stringData").filter(|texts| !texts.is_null()) else { return Ok(()) };
    let texts: BTreeMap<String, String> =
        serde_json::from_value(texts).map_err(|_| "`stringData` is not a map of strings")?;
    let data = body.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(data) = data else { return Err("`data` is not a map") };
    for (key, text) in texts {
        data.insert(key, STANDARD.encode(text).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::complete_body;
    use crate::object::{ApiResource, Cluster, Kind, ObjectAddress};

    #[track_caller]
    fn check(body: &Value, expect: Result<&Value, &str>) {
        let cluster = Cluster { name: "c1".to_owned(), server: String::new(), token: None };
        let served = ApiResource {
            api_version: "v1".to_owned(),
            versions: vec!["v1".to_owned()],
            plural: "secrets".to_owned(),
            is_namespaced: true,
        };
        let address = ObjectAddress::in_namespace(Kind::named("Secret"), "ns", "a");
        let completed = complete_body(&cluster, &address, &served, body).map_err(|error| error.to_string());
        assert_eq!(completed.as_ref().map_err(String::as_str), expect);
    }

    #[test]
    fn fields_of_the_address_are_added_and_server_fields_removed() {
        let body =
            json!({"metadata": {"namespace": "ns", "uid": "1", "labels": {"a": "b"}}, "status": {"c": 1}});
        let expect = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "ns", "labels": {"a": "b"}}});
        check(&body, Ok(&expect));
    }

    #[test]
    fn texts_of_secrets_are_data() {
        let body = json!({"stringData": {"a": "hello", "b": ""}, "data": {"a": "eA==", "c": "eQ=="}});
        let expect = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "data": {"a": "aGVsbG8=", "b": "", "c": "eQ=="}});
        check(&body, Ok(&expect));
        check(
            &json!({"stringData": {"a": 1}}),
            Err("Secret `a` in `ns` cannot be read: `stringData` is not a map of strings"),
        );
    }

    #[test]
    fn a_body_of_another_object_is_refused() {
        check(&json!({"kind": "ConfigMap"}), Err("Secret `a` in `ns` cannot be read: it has another `kind`"));
        check(
            &json!({"metadata": {"name": "b"}}),
            Err("Secret `a` in `ns` cannot be read: it has another name"),
        );
        let elsewhere = json!({"metadata": {"namespace": "x"}});
        check(&elsewhere, Err("Secret `a` in `ns` cannot be read: it is in another namespace"));
        check(&json!([]), Err("Secret `a` in `ns` cannot be read: it is not a map"));
    }
}
