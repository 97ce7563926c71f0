//! Leases over HTTP: a run keeps its bundle loaded until it has finished. Leases require a token; qontract-server
//! does not support leases.

use bytes::Bytes;
use hyper::{Method, StatusCode};
use qontract_bundle::Sha256;
use serde_json::{Value, json};

use crate::bundles::{Unavailable, now};
use crate::registry::{Lease, MAX_LEASE_SECONDS};
use crate::reply::{JSON, Reply, escape};
use crate::route::RequestedBundle;
use crate::server::ServerState;

/// Default duration of a lease, in seconds.
const DEFAULT_LEASE_SECONDS: u64 = 600;

/// Takes a lease on the bundle with a sha, or renews or ends the lease with an id.
pub async fn answer(shared: &ServerState, method: &Method, name: &str, body: &Bytes) -> Reply {
    if shared.settings.token.is_none() {
        return Reply::text(StatusCode::FORBIDDEN, "leases require a token, and this server has none");
    }
    if method != Method::POST {
        return Reply::text(StatusCode::METHOD_NOT_ALLOWED, "use POST").allowing("POST");
    }
    match (seconds(body), id(name)) {
        (None, _) | (Some(0), None) => Reply::text(
            StatusCode::BAD_REQUEST,
            format!(
                "the body must be `{{\"seconds\": N}}` with N from 1 to {MAX_LEASE_SECONDS}, or 0 to end a lease, or empty"
            ),
        ),
        (Some(0), Some(id)) => {
            if shared.bundles.registry().release(id, now()) {
                Reply::empty(StatusCode::NO_CONTENT)
            } else {
                lease_not_found(name)
            }
        }
        (Some(seconds), Some(id)) => {
            let renewed = shared.bundles.registry().renew(id, seconds, now());
            renewed.map_or_else(|| lease_not_found(name), |lease| lease_reply(StatusCode::OK, name, &lease))
        }
        (Some(seconds), None) => take(shared, name, seconds).await,
    }
}

async fn take(shared: &ServerState, sha: &str, seconds: u64) -> Reply {
    let engine = match shared.bundles.find(&RequestedBundle::Named(sha.to_owned())).await {
        Ok(engine) => engine,
        Err(Unavailable::NotFound) => {
            return Reply::text(StatusCode::NOT_FOUND, format!("Bundle {} not found", escape(sha)));
        }
        Err(Unavailable::RetryLater(why)) => return Reply::retry_later(why),
    };
    let id = shared.new_id();
    let lease = shared.bundles.registry().lease(id, &engine, seconds, now());
    match lease {
        Ok(lease) => lease_reply(StatusCode::CREATED, &format!("{id:016x}"), &lease),
        Err(_) => Reply::retry_later("too many leases"),
    }
}

fn lease_reply(status: StatusCode, id: &str, Lease { sha, expires }: &Lease) -> Reply {
    let sha: &Sha256 = sha;
    let text = json!({ "lease": id, "sha": sha.to_string(), "expires": expires }).to_string();
    Reply::new(status, JSON, text)
}

fn lease_not_found(name: &str) -> Reply {
    Reply::text(StatusCode::NOT_FOUND, format!("Lease {} not found", escape(name)))
}

/// Parses the id of a lease: sixteen hexadecimal digits.
fn id(name: &str) -> Option<u64> {
    let is_number = name.len() == 16 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(name, 16).ok()).flatten()
}

/// The duration that the body requests, in seconds.
fn seconds(body: &Bytes) -> Option<u64> {
    if body.is_empty() {
        return Some(DEFAULT_LEASE_SECONDS);
    }
    let body: Value = serde_json::from_slice(body).ok()?;
    match body.as_object()?.get("seconds") {
        None => Some(DEFAULT_LEASE_SECONDS),
        Some(seconds) => seconds.as_u64().filter(|seconds| *seconds <= MAX_LEASE_SECONDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_requested_in_seconds() {
        for (body, expect) in [
            ("", Some(DEFAULT_LEASE_SECONDS)),
            ("{}", Some(DEFAULT_LEASE_SECONDS)),
            (r#"{"seconds": 5}"#, Some(5)),
            (r#"{"seconds": 0}"#, Some(0)),
            (r#"{"seconds": 3601}"#, None),
            (r#"{"seconds": -1}"#, None),
            (r#"{"seconds": "5"}"#, None),
            ("[]", None),
            ("x", None),
        ] {
            assert_eq!(seconds(&Bytes::from(body)), expect, "{body}");
        }
    }

    #[test]
    fn lease_ids_have_sixteen_digits() {
        assert_eq!(id("00000000000000ff"), Some(255));
        assert_eq!((id("ff"), id("000000000000000g"), id("+00000000000000f")), (None, None, None));
    }
}
