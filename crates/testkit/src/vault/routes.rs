//! The request handlers.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::emulator_state::EmulatorState;
use super::faults::VaultFault;
use super::kv::VersionChange;
use super::{ROOT, VaultEmulator};

/// Maximum size of a request body in bytes.
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// A response: a status and an optional body.
struct VaultAnswer {
    status: u16,
    body: Option<Value>,
}

/// Handles any request.
pub async fn answer(Shared(state): Shared<Arc<VaultEmulator>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_REQUEST_BYTES).await.unwrap_or_default();
    let line = format!("{} {}", parts.method, parts.uri);
    state.inner.lock().requests.push(line.clone());
    let mut held = state.held.subscribe();
    // This cannot fail, because the sender lives as long as the state.
    let _ = held.wait_for(|held| !held).await;
    let token = parts.headers.get("x-vault-token").and_then(|token| token.to_str().ok());
    let mut emulator = state.inner.lock();
    match emulator.fault {
        Some(VaultFault::Sealed) => return reply(errors(503, "Vault is sealed")),
        Some(VaultFault::Status(status)) => {
            let echo = format!("{line} {token:?} {}", String::from_utf8_lossy(&body));
            return reply(errors(status, &echo));
        }
        None => {}
    }
    let path = parts.uri.path().trim_start_matches("/v1/").to_owned();
    let question = VaultRequest {
        method: if is_list(&parts.uri) { "LIST" } else { parts.method.as_str() },
        path: &path,
        version: version(&parts.uri),
        token: token.unwrap_or_default(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    reply(question.answer(&mut emulator))
}

fn is_list(uri: &axum::http::Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "list=true"))
}

fn version(uri: &axum::http::Uri) -> Option<u64> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("version=")?.parse().ok())
}

/// A parsed request.
struct VaultRequest<'a> {
    method: &'a str,
    path: &'a str,
    version: Option<u64>,
    token: &'a str,
    body: Value,
}

impl VaultRequest<'_> {
    fn answer(&self, emulator: &mut EmulatorState) -> VaultAnswer {
        let (now, words) = (emulator.clock, self.path.split('/').collect::<Vec<_>>());
        match (self.method, words.as_slice()) {
            ("GET", ["sys", "init"]) => return ok_plain(json!({"initialized": true})),
            ("GET", ["sys", "seal-status"]) => {
                return ok_plain(json!({"sealed": false, "initialized": true}));
            }
            ("POST" | "PUT", ["auth", mount @ ("approle" | "kubernetes"), "login"]) => {
                return match emulator.tokens.log_in(mount, &self.body, now) {
                    Ok(token) => auth_answer(&token.auth_json(now)),
                    Err(refusal) => errors(refusal.status, &refusal.message),
                };
            }
            _ => {}
        }
        let denied = self.token != ROOT && emulator.denied.iter().any(|prefix| self.path.starts_with(prefix));
        if denied || !emulator.tokens.is_live(self.token, now) {
            return errors(403, "permission denied");
        }
        match (self.method, words.as_slice()) {
            ("GET", ["auth", "token", "lookup-self"]) => ok(&emulator.tokens.look_up(self.token, now)),
            ("POST" | "PUT", ["auth", "token", "renew-self"]) => match emulator.tokens.renew(self.token, now)
            {
                Ok(token) => auth_answer(&token.auth_json(now)),
                Err(refusal) => errors(refusal.status, &refusal.message),
            },
            ("GET", ["sys", "internal", "ui", "mounts", "secret", ..]) => {
                ok(&json!({"path": "secret/", "type": "kv", "options": {"version": "2"}}))
            }
            ("GET", ["sys", "internal", "ui", "mounts", ..]) => {
                errors(403, "preflight capability check returned 403")
            }
            ("GET", ["secret", "config"]) => {
                ok(&json!({"cas_required": false, "delete_version_after": "0s", "max_versions": 0}))
            }
            (_, ["secret", kind, rest @ ..]) => self.secret(emulator, kind, &rest.join("/")),
            _ => errors(404, &format!("no handler for route {:?}. route entry not found.", self.path)),
        }
    }

    fn secret(&self, emulator: &mut EmulatorState, kind: &str, path: &str) -> VaultAnswer {
        let path = &decode(path);
        let now = emulator.now();
        let secrets = &mut emulator.secrets;
        let fate = match (self.method, kind) {
            ("DELETE", "data") | ("POST" | "PUT", "delete") => Some(VersionChange::Delete),
            ("POST" | "PUT", "undelete") => Some(VersionChange::Undelete),
            ("POST" | "PUT", "destroy") => Some(VersionChange::Destroy),
            _ => None,
        };
        if let Some(fate) = fate {
            secrets.change(path, self.numbers(), fate, &now);
            return VaultAnswer { status: 204, body: None };
        }
        match (self.method, kind) {
            ("GET", "data") => match secrets.get(path, self.version) {
                (200, Some(data)) => ok(&data),
                (status, Some(data)) => VaultAnswer { status, body: Some(envelope(&data, &Value::Null)) },
                (status, None) => no_errors(status),
            },
            ("POST" | "PUT", "data") => {
                let Some(data) = self.body["data"].as_object() else {
                    return errors(400, "no data provided");
                };
                let cas = self.body["options"]["cas"].as_u64();
                match secrets.put(path, data.clone(), cas, &now) {
                    Some(number) => ok(&secrets.version_metadata(path, number)),
                    None => errors(400, "check-and-set parameter did not match the current version"),
                }
            }
            ("GET", "metadata") => secrets.metadata(path).map_or_else(|| no_errors(404), |data| ok(&data)),
            ("DELETE", "metadata") => {
                secrets.remove(path);
                VaultAnswer { status: 204, body: None }
            }
            ("LIST", "metadata") => match secrets.list(path) {
                keys if keys.is_empty() => no_errors(404),
                keys => ok(&json!({"keys": keys})),
            },
            _ => errors(405, "unsupported operation"),
        }
    }

    fn numbers(&self) -> Option<Vec<u64>> {
        Some(self.body["versions"].as_array()?.iter().filter_map(Value::as_u64).collect())
    }
}

/// Decodes percent escapes in a path.
fn decode(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn envelope(data: &Value, auth: &Value) -> Value {
    json!({"request_id": "00000000-0000-0000-0000-000000000000", "lease_id": "", "renewable": false,
        "lease_duration": 0, "data": data, "wrap_info": null, "warnings": null, "auth": auth})
}

fn ok(data: &Value) -> VaultAnswer {
    ok_plain(envelope(data, &Value::Null))
}

fn auth_answer(auth: &Value) -> VaultAnswer {
    ok_plain(envelope(&Value::Null, auth))
}

fn ok_plain(body: Value) -> VaultAnswer {
    VaultAnswer { status: 200, body: Some(body) }
}

fn errors(status: u16, why: &str) -> VaultAnswer {
    VaultAnswer { status, body: Some(json!({"errors": [why]})) }
}

fn no_errors(status: u16) -> VaultAnswer {
    VaultAnswer { status, body: Some(json!({"errors": []})) }
}

fn reply(VaultAnswer { status, body }: VaultAnswer) -> Response {
    let status = StatusCode::from_u16(status).expect("an HTTP status");
    match body {
        Some(body) => {
            (status, [(CONTENT_TYPE, "application/json")], Body::from(body.to_string())).into_response()
        }
        None => status.into_response(),
    }
}
