//! Interprets refusals of an API server. Pure.
//!
//! **Invariant:** only the reason and the field names of a message about a Secret are passed on.

use std::collections::BTreeMap;

use qontract_client_http::HttpError;
use qontract_redaction::first_words;
use serde::Deserialize;

use crate::error::{ConflictingManager, KubernetesError};
use crate::fields::without_keys;
use crate::object::{Cluster, Kind, ObjectAddress};

/// Maximum number of characters of a server message.
const MAX_MESSAGE_CHARS: usize = 400;
/// Maximum number of field conflicts that are reported.
const MAX_CONFLICTS: usize = 100;

/// The `Status` object with which an API server refuses a request. Missing fields are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    details: Option<StatusDetails>,
}

/// The object that a status concerns, and the causes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusDetails {
    name: String,
    kind: String,
    causes: Vec<StatusCause>,
}

/// One cause of a refusal, for example an invalid field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: String,
    message: String,
    field: String,
}

/// The subject of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestSubject {
    /// The cluster.
    pub cluster: String,
    /// The object, or the kind of objects.
    pub object: String,
    /// The namespace.
    pub namespace: Option<String>,
    /// Whether the values of the object are secret.
    pub is_secret: bool,
}

impl RequestSubject {
    /// One object.
    pub fn object(cluster: &Cluster, address: &ObjectAddress) -> Self {
        Self {
            object: address.to_string(),
            ..Self::kind(cluster, &address.kind, address.namespace.as_deref())
        }
    }

    /// All objects of a kind.
    pub fn kind(cluster: &Cluster, kind: &Kind, namespace: Option<&str>) -> Self {
        Self {
            cluster: cluster.name.clone(),
            object: kind.to_string(),
            namespace: namespace.map(str::to_owned),
            // The group is not checked, because the names of kinds for sealed or external secrets also
            // contain the word.
            is_secret: kind.name.contains("Secret"),
        }
    }

    /// The error for a response with this status code.
    pub fn refusal(&self, code: u16, body: &[u8]) -> KubernetesError {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let (cluster, object) = (self.cluster.clone(), self.object.clone());
        let causes = status.details.as_ref().map_or(&[][..], |details| details.causes.as_slice());
        let namespace_missing =
            |what: String| KubernetesError::NamespaceMissing { object: object.clone(), what };
        let namespace = self.namespace.as_deref().unwrap_or_default();
        match code {
            401 => {
                let why = "the credentials are not accepted".to_owned();
                KubernetesError::Credentials { cluster, why, transient: false }
            }
            403 if causes.iter().any(|cause| cause.reason == "NamespaceTerminating") => {
                namespace_missing(format!("the namespace `{namespace}`, which is being removed,"))
            }
            403 => KubernetesError::Denied { cluster, why: self.message(&status) },
            404 if status.details.as_ref().is_some_and(|details| details.kind == "namespaces") => {
                namespace_missing(format!("the namespace `{namespace}`"))
            }
            404 if status.details.as_ref().is_none_or(|details| details.name.is_empty()) => {
                KubernetesError::Unserved { cluster, kind: object, instead: " anymore".to_owned() }
            }
            404 => KubernetesError::Stale { object },
            409 => match self.conflicts(causes) {
                contenders if contenders.is_empty() => KubernetesError::Stale { object },
                contenders => KubernetesError::Conflict { object, conflicts: contenders },
            },
            400 | 413 | 422 => KubernetesError::Invalid { cluster, object, why: self.message(&status) },
            status_code => {
                KubernetesError::Failed { cluster, status: status_code, why: self.message(&status) }
            }
        }
    }

    /// The error for a request without a response.
    pub fn failure(&self, error: HttpError) -> KubernetesError {
        let cluster = self.cluster.clone();
        match error {
            HttpError::Prepare { .. } => {
                let why = "its token or address cannot be used in an HTTP request".to_owned();
                KubernetesError::Credentials { cluster, why, transient: false }
            }
            HttpError::Refused(refusal) => KubernetesError::Denied { cluster, why: refusal.to_string() },
            HttpError::Status { status, excerpt, .. } => {
                let excerpt = if self.is_secret { "" } else { excerpt.as_str() };
                let why = unavailable(status.as_u16(), excerpt);
                KubernetesError::Failed { cluster, status: status.as_u16(), why }
            }
            HttpError::BodyTooLarge { .. } => {
                KubernetesError::Malformed { object: self.object.clone(), why: error.to_string() }
            }
            error => KubernetesError::Unreachable { cluster, error },
        }
    }

    /// The error for a response that cannot be parsed.
    pub fn malformed(&self, why: impl Into<String>) -> KubernetesError {
        KubernetesError::Malformed { object: self.object.clone(), why: why.into() }
    }

    /// The message of the server, without confidential parts.
    fn message(&self, status: &Status) -> String {
        let causes = status.details.as_ref().map_or(&[][..], |details| details.causes.as_slice());
        let causes: Vec<_> =
            causes.iter().map(|cause| self.cause(cause)).filter(|cause| !cause.is_empty()).collect();
        let reason = if status.reason.is_empty() { "no reason given" } else { &status.reason };
        match (causes.is_empty(), self.is_secret) {
            (false, true) => shorten(&format!("{reason}: {}", causes.join(", "))),
            (false, false) => shorten(&causes.join(", ")),
            (true, false) if !status.message.is_empty() => shorten(&status.message),
            (true, _) => shorten(reason),
        }
    }

    /// The managers that own conflicting fields, if the refusal is a field conflict.
    fn conflicts(&self, causes: &[StatusCause]) -> Vec<ConflictingManager> {
        let mut contenders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let conflicts = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
        for cause in conflicts.take(MAX_CONFLICTS) {
            let manager = shorten(cause.message.split('"').nth(1).unwrap_or("another manager"));
            let field = cause.field.trim_start_matches('.');
            let field = if self.is_secret { without_keys(field) } else { field };
            let (fields, field) = (contenders.entry(manager).or_default(), format!("`{}`", shorten(field)));
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        let contender =
            |(manager, fields): (String, Vec<String>)| ConflictingManager { manager, fields, excludes: None };
        contenders.into_iter().map(contender).collect()
    }

    fn cause(&self, cause: &StatusCause) -> String {
        let field = if self.is_secret { without_keys(&cause.field) } else { &cause.field };
        let field = if field.is_empty() { String::new() } else { format!("`{field}`") };
        let detail = detail(&cause.message);
        match (self.is_secret, field.is_empty()) {
            (true, _) if detail != "field is immutable" => field,
            (_, true) => detail.to_owned(),
            (_, false) => format!("{field}: {detail}"),
        }
    }
}

/// The reason why a server, or a load balancer in front of it, did not respond with a Kubernetes status, and
/// the remedy. `excerpt` is the beginning of the body.
fn unavailable(status: u16, excerpt: &str) -> String {
    let cause = match status {
        429 => "the cluster receives too many requests: lower its `requests_per_second`",
        502 | 504 => "its load balancer gets no response from the API server: check the API server",
        503 => {
            "the API server is starting or overloaded, or its load balancer has no healthy server: retry, and check the API server if the error persists"
        }
        _ if excerpt.is_empty() => "the response gives no reason",
        _ => return excerpt.to_owned(),
    };
    if excerpt.is_empty() {
        cause.to_owned()
    } else {
        format!("{cause} (the response begins with `{excerpt}`)")
    }
}

/// The error about a value, without the value, which may be large or confidential.
fn detail(message: &str) -> &str {
    let Some(value) = message.strip_prefix("Invalid value: ") else { return message };
    let after = if let Some(rest) = value.strip_prefix('"') {
        let mut escaped = false;
        let end = rest.find(|one: char| {
            let ends = one == '"' && !escaped;
            escaped = one == '\\' && !escaped;
            ends
        });
        end.and_then(|end| rest[end + 1..].strip_prefix(": "))
    } else if value.contains('{') {
        value.rsplit_once(": ").map(|(_, rest)| rest)
    } else {
        value.split_once(": ").map(|(_, rest)| rest)
    };
    after.unwrap_or("Invalid value")
}

/// The beginning of a server message. It consists of whole words, because the caller redacts it later.
fn shorten(text: &str) -> String {
    first_words(text, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests;
