//! Converts Vault secrets to Kubernetes Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use qontract_client_secrets::SecretFields;
use qontract_runtime::Fault;
use serde_json::{Map, Value, json};

use super::entry::SecretAddress;

/// A field that secret rotation writes into a Vault secret; the field is not part of the Kubernetes Secret.
const ROTATION_FIELD: &str = "external-resources/updated_at";

/// Suffix of field names whose values are already base64-encoded.
const BASE64_SUFFIX: &str = "_qb64";

/// The Kubernetes Secret of a Vault secret. Field names are also confidential: no fault quotes them.
pub fn kubernetes_secret(address: &SecretAddress, fields: &SecretFields) -> Result<Value, Fault> {
    let mut data = Map::new();
    for (name, value) in fields.iter().filter(|(name, _)| *name != ROTATION_FIELD) {
        let (key, text) = match name.strip_suffix(BASE64_SUFFIX) {
            Some(key) => (key, value.expose().to_owned()),
            None => (name.as_str(), STANDARD.encode(value.expose())),
        };
        let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '.' | '_');
        if key.is_empty() || !key.chars().all(fine) {
            let text = format!("`{}` has a field whose name is not a valid Secret key", address.path);
            return Err(Fault::author(text));
        }
        if data.insert(key.to_owned(), text.into()).is_some() {
            let text = format!("`{}` has a field with and without `{BASE64_SUFFIX}`", address.path);
            return Err(Fault::author(text));
        }
    }
    let mut body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": address.r#type,
        "metadata": {"name": address.name, "annotations": address.annotations},
        "data": data,
    });
    if !address.labels.is_empty() {
        body["metadata"]["labels"] = json!(address.labels);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::kubernetes_secret;
    use crate::resources::entry::SecretAddress;
    use qontract_client_secrets::{Secret, SecretFields};
    use serde_json::{Value, json};

    fn check(fields: &[(&str, &str)], expect: Result<Value, &str>) {
        let address = SecretAddress {
            path: "a/b".to_owned(),
            name: "b".to_owned(),
            r#type: "Opaque".to_owned(),
            ..SecretAddress::default()
        };
        let fields: SecretFields =
            fields.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        let actual = kubernetes_secret(&address, &fields).map(|body| body["data"].clone());
        assert_eq!(actual.map_err(|fault| fault.text), expect.map_err(str::to_owned));
    }

    #[test]
    fn values_are_encoded_unless_they_are_already() {
        check(
            &[("user", "ann"), ("key_qb64", "YWJj"), ("external-resources/updated_at", "today")],
            Ok(json!({"user": "YW5u", "key": "YWJj"})),
        );
    }

    #[test]
    fn a_field_that_cannot_be_a_key_is_not_quoted() {
        check(&[("a b", "hush")], Err("`a/b` has a field whose name is not a valid Secret key"));
        check(&[("a", "x"), ("a_qb64", "eA==")], Err("`a/b` has a field with and without `_qb64`"));
    }
}
