//! Roles and their tokens. Pure: the time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::ROOT;
use super::emulator_state::time;

/// A role that can log in, and the lifetime of its tokens.
#[derive(Clone, Debug)]
pub enum LoginRole {
    /// At `auth/approle`.
    AppRole {
        /// The role id.
        role_id: String,
        /// The secret id.
        secret_id: String,
        /// Lifetime of a token, and its maximum lifetime with renewals.
        ttls: [Duration; 2],
    },
    /// At `auth/kubernetes`.
    Kubernetes {
        /// The name.
        role: String,
        /// The service account token of the pod.
        jwt: String,
        /// Lifetime of a token, and its maximum lifetime with renewals.
        ttls: [Duration; 2],
    },
}

/// A token.
#[derive(Clone)]
pub struct VaultToken {
    id: String,
    created: Duration,
    expires: Duration,
    ttls: [Duration; 2],
}

/// All roles and tokens.
#[derive(Default)]
pub struct TokenStore {
    roles: Vec<LoginRole>,
    tokens: BTreeMap<String, VaultToken>,
    issued: usize,
}

/// The response to a failed request.
#[derive(Debug)]
pub struct LoginRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The error message.
    pub message: String,
}

impl LoginRefusal {
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl TokenStore {
    /// Adds a role.
    pub fn add(&mut self, role: LoginRole) {
        self.roles.push(role);
    }

    /// Revokes all tokens except the root token.
    pub fn revoke_all(&mut self) {
        self.tokens.clear();
    }

    /// Whether a token exists and has not expired.
    pub fn is_live(&self, id: &str, now: Duration) -> bool {
        id == ROOT || self.tokens.get(id).is_some_and(|token| now < token.expires)
    }

    /// Logs in with the request body; returns a new token.
    pub fn log_in(&mut self, mount: &str, body: &Value, now: Duration) -> Result<VaultToken, LoginRefusal> {
        let lives = if mount == "approle" { self.app_role(body)? } else { self.pod(body)? };
        self.issued += 1;
        let id = format!("hvs.{:08}", self.issued);
        let token = VaultToken { id: id.clone(), created: now, expires: now + lives[0], ttls: lives };
        self.tokens.insert(id, token.clone());
        Ok(token)
    }

    fn app_role(&self, body: &Value) -> Result<[Duration; 2], LoginRefusal> {
        let found = self.roles.iter().find_map(|role| match role {
            LoginRole::AppRole { role_id, secret_id, ttls: lives } => {
                (body["role_id"] == **role_id && body["secret_id"] == **secret_id).then_some(*lives)
            }
            LoginRole::Kubernetes { .. } => None,
        });
        found.ok_or_else(|| LoginRefusal::new(400, "invalid role or secret ID"))
    }

    fn pod(&self, body: &Value) -> Result<[Duration; 2], LoginRefusal> {
        let found = self.roles.iter().find_map(|candidate| match candidate {
            LoginRole::Kubernetes { role, jwt, ttls: lives } => {
                (body["role"] == **role).then_some((jwt, *lives))
            }
            LoginRole::AppRole { .. } => None,
        });
        match found {
            None => Err(LoginRefusal::new(400, format!("invalid role name {}", body["role"]))),
            Some((jwt, _)) if body["jwt"] != **jwt => Err(LoginRefusal::new(403, "permission denied")),
            Some((_, lives)) => Ok(lives),
        }
    }

    /// Renews a token, up to its maximum lifetime.
    pub fn renew(&mut self, id: &str, now: Duration) -> Result<VaultToken, LoginRefusal> {
        let Some(token) = self.tokens.get_mut(id) else {
            return Err(LoginRefusal::new(400, "lease is not renewable"));
        };
        token.expires = (now + token.ttls[0]).min(token.created + token.ttls[1]);
        Ok(token.clone())
    }

    /// The response data of a `lookup-self` request.
    pub fn look_up(&self, id: &str, now: Duration) -> Value {
        let (path, creation, expiry, ttl, renewable) = match self.tokens.get(id) {
            Some(token) => {
                let ttl = token.expires.saturating_sub(now).as_secs();
                ("auth/login", token.ttls[0].as_secs(), json!(time(token.expires)), ttl, true)
            }
            None => ("auth/token/root", 0, Value::Null, 0, false),
        };
        json!({"accessor": "accessor", "creation_time": 0, "creation_ttl": creation, "display_name": "test",
            "entity_id": "", "expire_time": expiry, "explicit_max_ttl": 0, "id": id, "issue_time": time(now),
            "meta": null, "num_uses": 0, "orphan": true, "path": path, "policies": ["default"],
            "renewable": renewable, "ttl": ttl, "type": "service"})
    }
}

impl VaultToken {
    /// The `auth` object of a login response.
    pub fn auth_json(&self, now: Duration) -> Value {
        json!({"client_token": self.id, "accessor": "accessor", "policies": ["default"],
            "token_policies": ["default"], "metadata": {"role_name": "test"}, "entity_id": "",
            "lease_duration": self.expires.saturating_sub(now).as_secs(), "renewable": true,
            "token_type": "service", "orphan": true, "mfa_requirement": null, "num_uses": 0})
    }
}
