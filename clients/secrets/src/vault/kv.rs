//! Reads and writes secrets in KV 1 and KV 2.

use qontract_access::{AccessPermit, WritePermit};
use qontract_client_http::{Method, Request, Response, Secret, StatusCode};
use serde_json::{Map, Value, json};

use super::call::{json as read, malformed};
use super::mounts::{Kv, Mount};
use super::{Found, Vault};
use crate::error::SecretsError;
use crate::place::{Place, segments};
use crate::{Fields, Written};

/// The current content of a secret.
#[derive(Debug)]
struct Current {
    /// Its fields; `None` if it was never written or is deleted.
    fields: Option<Fields>,
    /// The number of its latest version, deleted or not; 0 if it was never written.
    version: u64,
}

impl Vault {
    /// Reads a secret.
    pub(super) async fn fetch(
        &self,
        access: AccessPermit<'_>,
        path: &str,
        version: Option<u64>,
    ) -> Result<Found, SecretsError> {
        let mount = self.mount(access, path).await?;
        let place = Place::within(path, version, &mount.path);
        match self.current(access, &mount, &place).await?.fields {
            Some(fields) => Ok(Found { fields, mount: mount.path }),
            None => Err(SecretsError::NotFound(place)),
        }
    }

    /// Writes a secret, unless it already has these fields.
    pub(super) async fn put(
        &self,
        permit: &WritePermit,
        path: &str,
        fields: &Fields,
    ) -> Result<Written, SecretsError> {
        let access = AccessPermit::Write(permit);
        let mount = self.mount(access, path).await?;
        let place = Place::within(path, None, &mount.path);
        let current = self.current(access, &mount, &place).await?;
        if current.fields.as_ref().is_some_and(|current| is_equal(current, fields)) {
            return Ok(Written::Equal);
        }
        let data: Map<String, Value> =
            fields.iter().map(|(field, value)| (field.clone(), value.expose().into())).collect();
        let body = match mount.kv {
            Kv::One => Value::Object(data),
            Kv::Two => json!({"options": {"cas": current.version}, "data": data}),
        };
        let request = Request::new(Method::PUT, self.secret(&mount, &place)?);
        let request = request.body("application/json", body.to_string().into_bytes());
        let what = format!("secret {place}");
        let refused = |status| SecretsError::Refused { what: what.clone(), status };
        let response = self
            .ask(access, request.also(StatusCode::BAD_REQUEST), |error| {
                SecretsError::of_secret_body(error, what.clone(), &self.shared.server, refused)
            })
            .await?;
        match response.status {
            StatusCode::FORBIDDEN => Err(SecretsError::Denied(place)),
            StatusCode::BAD_REQUEST if mount.kv == Kv::Two => {
                let now = self.current(access, &mount, &place).await?;
                outrun(&current, &now, fields, place)
            }
            status if !status.is_success() => Err(refused(status)),
            _ => Ok(Written::Changed),
        }
    }

    async fn current(
        &self,
        access: AccessPermit<'_>,
        mount: &Mount,
        place: &Place,
    ) -> Result<Current, SecretsError> {
        let what = format!("secret {place}");
        let mut url = self.secret(mount, place)?;
        if let (Kv::Two, Some(version)) = (mount.kv, place.version) {
            url.query_pairs_mut().append_pair("version", &version.to_string());
        }
        let request = Request::get(url).also(StatusCode::NOT_FOUND);
        let response = self.ask(access, request, |error| self.unreachable(error, what.clone())).await?;
        match (response.status, mount.kv) {
            (StatusCode::FORBIDDEN, Kv::One | Kv::Two) => Err(SecretsError::Denied(place.clone())),
            (StatusCode::NOT_FOUND, Kv::One) => Ok(Current { fields: None, version: 0 }),
            // The response for a deleted version still has its number.
            (StatusCode::NOT_FOUND, Kv::Two) => Ok(Current { fields: None, version: number(&response) }),
            (_, Kv::One) => {
                let fields = fields(&read(&response, &what)?["data"], &what)?;
                Ok(Current { fields: Some(fields), version: 0 })
            }
            (_, Kv::Two) => {
                let fields = fields(&read(&response, &what)?["data"]["data"], &what)?;
                Ok(Current { fields: Some(fields), version: number(&response) })
            }
        }
    }

    /// The URL of a secret.
    fn secret(&self, mount: &Mount, place: &Place) -> Result<qontract_client_http::Url, SecretsError> {
        let rest = place.path.strip_prefix(&mount.path).filter(|rest| !rest.is_empty());
        let wrong =
            || SecretsError::Path { path: place.path.clone(), why: "it names a mount, not a secret in it" };
        let rest = rest.ok_or_else(wrong)?;
        let engine: &[&str] = match mount.kv {
            Kv::One => &[],
            Kv::Two => &["data"],
        };
        let mut parts: Vec<&str> = mount.path.trim_end_matches('/').split('/').collect();
        parts.extend(engine);
        parts.extend(segments(rest)?);
        Ok(self.at(&parts))
    }
}

/// Interprets a failed check-and-set: the secret was written concurrently, our own write was sent twice, or
/// the request is invalid.
fn outrun(before: &Current, now: &Current, wanted: &Fields, place: Place) -> Result<Written, SecretsError> {
    if now.version == before.version {
        let what = format!("secret {place}");
        return Err(SecretsError::Refused { what, status: StatusCode::BAD_REQUEST });
    }
    match &now.fields {
        Some(now) if is_equal(now, wanted) => Ok(Written::Changed),
        _ => Err(SecretsError::Stale(place)),
    }
}

fn number(response: &Response) -> u64 {
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    answer["data"]["metadata"]["version"].as_u64().unwrap_or_default()
}

/// The values of a secret. Values that are not strings become JSON text.
fn fields(data: &Value, what: &str) -> Result<Fields, SecretsError> {
    let data = data.as_object().ok_or_else(|| malformed(what, "it has no fields"))?;
    let text = |value: &Value| match value {
        Value::String(text) => Secret::new(text.as_str()),
        other => Secret::new(other.to_string()),
    };
    Ok(data.iter().map(|(field, value)| (field.clone(), text(value))).collect())
}

fn is_equal(left: &Fields, right: &Fields) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|((name, value), (other, wanted))| name == other && value.is_same(wanted))
}
