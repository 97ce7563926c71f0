//! Reads and writes secrets in KV 1 and KV 2.

use qontract_access::{AccessPermit, WritePermit};
use qontract_client_http::{Method, Request, Response, Secret, StatusCode};
use serde_json::{Map, Value, json};

use super::call::{json as read, malformed};
use super::mounts::{KvVersion, Mount};
use super::{FetchedSecret, Vault};
use crate::error::SecretsError;
use crate::location::{SecretLocation, segments};
use crate::{SecretFields, WriteOutcome};

/// The current content of a secret.
#[derive(Debug)]
struct CurrentSecret {
    /// The fields; `None` if the secret was never written or is deleted.
    fields: Option<SecretFields>,
    /// The number of the latest version of the secret, deleted or not; 0 if the secret was never written.
    version: u64,
}

impl Vault {
    /// Reads a secret.
    pub(super) async fn fetch(
        &self,
        access: AccessPermit<'_>,
        path: &str,
        version: Option<u64>,
    ) -> Result<FetchedSecret, SecretsError> {
        let mount = self.mount(access, path).await?;
        let place = SecretLocation::in_mount(path, version, &mount.path);
        match self.current(access, &mount, &place).await?.fields {
            Some(fields) => Ok(FetchedSecret { fields, mount: mount.path }),
            None => Err(SecretsError::NotFound(place)),
        }
    }

    /// Writes a secret, unless it already has these fields.
    pub(super) async fn put(
        &self,
        permit: &WritePermit,
        path: &str,
        fields: &SecretFields,
    ) -> Result<WriteOutcome, SecretsError> {
        let access = AccessPermit::Write(permit);
        let mount = self.mount(access, path).await?;
        let place = SecretLocation::in_mount(path, None, &mount.path);
        let current = self.current(access, &mount, &place).await?;
        if current.fields.as_ref().is_some_and(|current| is_equal(current, fields)) {
            return Ok(WriteOutcome::Unchanged);
        }
        let data: Map<String, Value> =
            fields.iter().map(|(field, value)| (field.clone(), value.expose().into())).collect();
        let body = match mount.kv {
            KvVersion::V1 => Value::Object(data),
            KvVersion::V2 => json!({"options": {"cas": current.version}, "data": data}),
        };
        let request = Request::new(Method::PUT, self.secret_url(&mount, &place)?);
        let request = request.body("application/json", body.to_string().into_bytes());
        let what = format!("secret {place}");
        let refused = |status| SecretsError::Refused { what: what.clone(), status };
        let response = self
            .send_authenticated(access, request.accept_status(StatusCode::BAD_REQUEST), |error| {
                SecretsError::of_secret_body(error, what.clone(), &self.shared.server, refused)
            })
            .await?;
        match response.status {
            StatusCode::FORBIDDEN => Err(SecretsError::Denied(place)),
            StatusCode::BAD_REQUEST if mount.kv == KvVersion::V2 => {
                let now = self.current(access, &mount, &place).await?;
                resolve_conflict(&current, &now, fields, place)
            }
            status if !status.is_success() => Err(refused(status)),
            _ => Ok(WriteOutcome::Changed),
        }
    }

    async fn current(
        &self,
        access: AccessPermit<'_>,
        mount: &Mount,
        place: &SecretLocation,
    ) -> Result<CurrentSecret, SecretsError> {
        let what = format!("secret {place}");
        let mut url = self.secret_url(mount, place)?;
        if let (KvVersion::V2, Some(version)) = (mount.kv, place.version) {
            url.query_pairs_mut().append_pair("version", &version.to_string());
        }
        let request = Request::get(url).accept_status(StatusCode::NOT_FOUND);
        let response =
            self.send_authenticated(access, request, |error| self.unreachable(error, what.clone())).await?;
        match (response.status, mount.kv) {
            (StatusCode::FORBIDDEN, KvVersion::V1 | KvVersion::V2) => {
                Err(SecretsError::Denied(place.clone()))
            }
            (StatusCode::NOT_FOUND, KvVersion::V1) => Ok(CurrentSecret { fields: None, version: 0 }),
            // The response for a deleted version still has its number.
            (StatusCode::NOT_FOUND, KvVersion::V2) => {
                Ok(CurrentSecret { fields: None, version: version_number(&response) })
            }
            (_, KvVersion::V1) => {
                let fields = parse_fields(&read(&response, &what)?["data"], &what)?;
                Ok(CurrentSecret { fields: Some(fields), version: 0 })
            }
            (_, KvVersion::V2) => {
                let fields = parse_fields(&read(&response, &what)?["data"]["data"], &what)?;
                Ok(CurrentSecret { fields: Some(fields), version: version_number(&response) })
            }
        }
    }

    /// The URL of a secret.
    fn secret_url(
        &self,
        mount: &Mount,
        place: &SecretLocation,
    ) -> Result<qontract_client_http::Url, SecretsError> {
        let rest = place.path.strip_prefix(&mount.path).filter(|rest| !rest.is_empty());
        let wrong =
            || SecretsError::Path { path: place.path.clone(), why: "it names a mount, not a secret in it" };
        let rest = rest.ok_or_else(wrong)?;
        let engine: &[&str] = match mount.kv {
            KvVersion::V1 => &[],
            KvVersion::V2 => &["data"],
        };
        let mut parts: Vec<&str> = mount.path.trim_end_matches('/').split('/').collect();
        parts.extend(engine);
        parts.extend(segments(rest)?);
        Ok(self.api_url(&parts))
    }
}

/// Interprets a failed check-and-set: another writer changed the secret, our own write was sent twice, or the
/// request is invalid.
fn resolve_conflict(
    before: &CurrentSecret,
    now: &CurrentSecret,
    wanted: &SecretFields,
    place: SecretLocation,
) -> Result<WriteOutcome, SecretsError> {
    if now.version == before.version {
        let what = format!("secret {place}");
        return Err(SecretsError::Refused { what, status: StatusCode::BAD_REQUEST });
    }
    match &now.fields {
        Some(now) if is_equal(now, wanted) => Ok(WriteOutcome::Changed),
        _ => Err(SecretsError::Stale(place)),
    }
}

fn version_number(response: &Response) -> u64 {
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    answer["data"]["metadata"]["version"].as_u64().unwrap_or_default()
}

/// The values of a secret. Values that are not strings are serialized as JSON.
fn parse_fields(data: &Value, what: &str) -> Result<SecretFields, SecretsError> {
    let data = data.as_object().ok_or_else(|| malformed(what, "it has no fields"))?;
    let text = |value: &Value| match value {
        Value::String(text) => Secret::new(text.as_str()),
        other => Secret::new(other.to_string()),
    };
    Ok(data.iter().map(|(field, value)| (field.clone(), text(value))).collect())
}

fn is_equal(left: &SecretFields, right: &SecretFields) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|((name, value), (other, wanted))| name == other && value.is_same(wanted))
}
