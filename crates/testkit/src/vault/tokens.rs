//! Roles and their tokens. Pure: the time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::ROOT;
use super::world::time;

/// A role that can log in, and the lifetime of its tokens.
#[derive(Clone, Debug)]
pub enum Role {
    /// At `auth/approle`.
    AppRole {
        /// The role id.
        role_id: String,
        /// The secret id.
        secret_id: String,
        /// Lifetime of a token, and its maximum lifetime with renewals.
        lives: [Duration; 2],
    },
    /// At `auth/kubernetes`.
    Kubernetes {
        /// The name.
        role: String,
        /// The service account token of the pod.
        jwt: String,
        /// Lifetime of a token, and its maximum lifetime with renewals.
        lives: [Duration; 2],
    },
}

/// A token.
#[derive(Clone)]
pub struct Token {
    id: String,
    begun: Duration,
    ends: Duration,
    lives: [Duration; 2],
}

/// All roles and tokens.
#[derive(Default)]
pub struct Tokens {
    roles: Vec<Role>,
    known: BTreeMap<String, Token>,
    given: usize,
}

/// A failed request: status and error message.
pub type Refusal = (u16, String);

impl Tokens {
    /// Adds a role.
    pub fn add(&mut self, role: Role) {
        self.roles.push(role);
    }

    /// Revokes all tokens except the root token.
    pub fn revoke_all(&mut self) {
        self.known.clear();
    }

    /// Whether a token exists and has not expired.
    pub fn is_live(&self, id: &str, now: Duration) -> bool {
        id == ROOT || self.known.get(id).is_some_and(|token| now < token.ends)
    }

    /// Logs in with the request body; returns a new token.
    pub fn log_in(&mut self, mount: &str, body: &Value, now: Duration) -> Result<Token, Refusal> {
        let lives = if mount == "approle" { self.app_role(body)? } else { self.pod(body)? };
        self.given += 1;
        let id = format!("hvs.{:08}", self.given);
        let token = Token { id: id.clone(), begun: now, ends: now + lives[0], lives };
        self.known.insert(id, token.clone());
        Ok(token)
    }

    fn app_role(&self, body: &Value) -> Result<[Duration; 2], Refusal> {
        let found = self.roles.iter().find_map(|role| match role {
            Role::AppRole { role_id, secret_id, lives } => {
                (body["role_id"] == **role_id && body["secret_id"] == **secret_id).then_some(*lives)
            }
            Role::Kubernetes { .. } => None,
        });
        found.ok_or_else(|| (400, "invalid role or secret ID".to_owned()))
    }

    fn pod(&self, body: &Value) -> Result<[Duration; 2], Refusal> {
        let found = self.roles.iter().find_map(|candidate| match candidate {
            Role::Kubernetes { role, jwt, lives } => (body["role"] == **role).then_some((jwt, *lives)),
            Role::AppRole { .. } => None,
        });
        match found {
            None => Err((400, format!("invalid role name {}", body["role"]))),
            Some((jwt, _)) if body["jwt"] != **jwt => Err((403, "permission denied".to_owned())),
            Some((_, lives)) => Ok(lives),
        }
    }

    /// Renews a token, up to its maximum lifetime.
    pub fn renew(&mut self, id: &str, now: Duration) -> Result<Token, Refusal> {
        let Some(token) = self.known.get_mut(id) else {
            return Err((400, "lease is not renewable".to_owned()));
        };
        token.ends = (now + token.lives[0]).min(token.begun + token.lives[1]);
        Ok(token.clone())
    }

    /// The response data of a look-up of the own token.
    pub fn look_up(&self, id: &str, now: Duration) -> Value {
        let (path, creation, expiry, ttl, renewable) = match self.known.get(id) {
            Some(token) => {
                let ttl = token.ends.saturating_sub(now).as_secs();
                ("auth/login", token.lives[0].as_secs(), json!(time(token.ends)), ttl, true)
            }
            None => ("auth/token/root", 0, Value::Null, 0, false),
        };
        json!({"accessor": "accessor", "creation_time": 0, "creation_ttl": creation, "display_name": "test",
            "entity_id": "", "expire_time": expiry, "explicit_max_ttl": 0, "id": id, "issue_time": time(now),
            "meta": null, "num_uses": 0, "orphan": true, "path": path, "policies": ["default"],
            "renewable": renewable, "ttl": ttl, "type": "service"})
    }
}

impl Token {
    /// The `auth` object of a login response.
    pub fn granted(&self, now: Duration) -> Value {
        json!({"client_token": self.id, "accessor": "accessor", "policies": ["default"],
            "token_policies": ["default"], "metadata": {"role_name": "test"}, "entity_id": "",
            "lease_duration": self.ends.saturating_sub(now).as_secs(), "renewable": true,
            "token_type": "service", "orphan": true, "mfa_requirement": null, "num_uses": 0})
    }
}
