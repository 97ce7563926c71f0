//! Routes, and the TLS fields that a secret adds to them.

use qontract_client_secrets::SecretFields;
use qontract_runtime::Fault;
use serde_json::{Value, json};
use x509_parser::prelude::{GeneralName, Pem, X509Certificate};

/// The fields of a secret that a Route uses.
const TLS_FIELDS: [&str; 6] = [
    "termination",
    "insecureEdgeTerminationPolicy",
    "certificate",
    "key",
    "caCertificate",
    "destinationCACertificate",
];

/// Adds the certificate to a Route. The certificate must match the Route's host.
pub fn with_certificate(mut body: Value, path: &str, fields: &SecretFields) -> Result<Value, Fault> {
    let no_map = || Fault::author("`spec` of the route is not a map");
    let spec = body.get_mut("spec").and_then(Value::as_object_mut).ok_or_else(no_map)?;
    let tls = spec.entry("tls").or_insert(Value::Null);
    if tls.is_null() {
        *tls = json!({});
    }
    let tls = tls.as_object_mut().ok_or_else(|| Fault::author("`spec.tls` of the route is not a map"))?;
    for (name, value) in fields.iter().filter(|(name, _)| TLS_FIELDS.contains(&name.as_str())) {
        tls.insert(name.clone(), json!(value.expose()));
    }
    if let (Some(host), Some(certificate)) = (body["spec"]["host"].as_str(), fields.get("certificate")) {
        let names = names(certificate.expose())
            .map_err(|why| Fault::author(format!("the field `certificate` of `{path}` {why}")))?;
        if !names.iter().any(|name| covers_host(name, host)) {
            // The names in the certificate come from the secret, so the message does not include them.
            let text = format!("the certificate of `{path}` is not for the host `{host}`");
            return Err(Fault::author(text));
        }
    }
    Ok(body)
}

/// The Route with every field that a secret may add; the names of these fields are public.
pub fn with_every_field(mut body: Value) -> Value {
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        let tls = spec.entry("tls").or_insert(Value::Null);
        if tls.is_null() {
            *tls = json!({});
        }
        for name in TLS_FIELDS {
            tls[name] = "from a secret".into();
        }
    }
    body
}

/// The names that a certificate covers: its subject alternative names, or its common name if it has none.
fn names(pem: &str) -> Result<Vec<String>, &'static str> {
    let pem =
        Pem::iter_from_buffer(pem.as_bytes()).next().and_then(Result::ok).ok_or("is not a certificate")?;
    let certificate: X509Certificate<'_> = pem.parse_x509().map_err(|_| "is not a certificate")?;
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let mut names: Vec<String> = alternatives
        .into_iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        let common = certificate.subject().iter_common_name();
        names.extend(common.filter_map(|name| name.as_str().ok()).map(str::to_owned));
    }
    if names.is_empty() { Err("is a certificate without a name") } else { Ok(names) }
}

/// Whether a certificate name covers a host; `*` matches one label.
fn covers_host(name: &str, host: &str) -> bool {
    let (name, host) = (name.to_lowercase(), host.to_lowercase());
    match name.strip_prefix("*.") {
        None => name == host,
        Some(rest) => host.split_once('.').is_some_and(|(first, others)| !first.is_empty() && others == rest),
    }
}

#[cfg(test)]
mod tests {
    use super::covers_host;

    #[test]
    fn a_wildcard_matches_one_label_of_a_host() {
        let check = |name: &str, host: &str, expect: bool| {
            assert_eq!(covers_host(name, host), expect, "{name} {host}");
        };
        check("shop.example.com", "Shop.example.com", true);
        check("*.example.com", "shop.example.com", true);
        check("*.example.com", "a.shop.example.com", false);
        check("*.example.com", "example.com", false);
        check("shop.example.com", "shop.example.org", false);
    }
}
