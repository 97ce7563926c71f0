//! Login methods.

use std::path::PathBuf;
use std::sync::Arc;

use qontract_access::AccessPermit;
use qontract_client_http::{Request, Secret, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Vault;
use super::call::{json as read, malformed};
use super::session::Session;
use super::token_lease::TokenLease;
use crate::error::SecretsError;

/// The login method.
#[derive(Clone, Debug)]
pub enum Login {
    /// A given token.
    Token(Secret),
    /// A role id and its secret id.
    AppRole {
        /// The mount, `approle` by default.
        mount: String,
        /// The role.
        role_id: Secret,
        /// The secret id.
        secret_id: Secret,
    },
    /// The service account token of a pod. The token is read again at each login, because Kubernetes rotates
    /// it.
    Kubernetes {
        /// The mount, `kubernetes` by default.
        mount: String,
        /// The role.
        role: String,
        /// The file of the token.
        token_file: PathBuf,
    },
}

impl Login {
    /// The paths below `/v1/` to which logins and renewals are posted.
    pub(super) fn post_paths(&self) -> Vec<String> {
        let login = match self {
            Self::Token(_) => None,
            Self::AppRole { mount, .. } | Self::Kubernetes { mount, .. } => {
                Some(format!("auth/{mount}/login"))
            }
        };
        login.into_iter().chain(["auth/token/renew-self".to_owned()]).collect()
    }

    /// The login method, for error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Token(_) => "with the given token".to_owned(),
            Self::AppRole { mount, .. } => format!("with the role at `auth/{mount}`"),
            Self::Kubernetes { mount, role, .. } => format!("as `{role}` at `auth/{mount}`"),
        }
    }
}

impl Vault {
    /// Logs in. For a given token, only its lifetime is looked up.
    pub(super) async fn log_in(
        &self,
        access: AccessPermit<'_>,
        number: u64,
    ) -> Result<Session, SecretsError> {
        let (mount, body) = match &self.shared.login {
            Login::Token(token) => return self.look_up_token(access, token, number).await,
            Login::AppRole { mount, role_id, secret_id } => {
                (mount, json!({"role_id": role_id.expose(), "secret_id": secret_id.expose()}))
            }
            Login::Kubernetes { mount, role, token_file } => {
                let jwt = std::fs::read_to_string(token_file).map_err(|source| SecretsError::Identity {
                    path: token_file.clone(),
                    source: Arc::new(source),
                })?;
                (mount, json!({"role": role, "jwt": jwt.trim()}))
            }
        };
        let path: Vec<&str> = ["auth"].into_iter().chain(mount.split('/')).chain(["login"]).collect();
        let request = Request::post(self.api_url(&path), "application/json", body.to_string().into_bytes());
        let response = self.send(access, request).await.map_err(|error| {
            SecretsError::of_secret_body(error, "our login", &self.shared.server, |status| {
                self.login_error(status)
            })
        })?;
        let (token, lease) = parse_auth(&read(&response, "our login")?)?;
        Ok(Session { token, number, lease })
    }

    /// Renews a session. The renewed session may have a new token.
    pub(super) async fn renew(
        &self,
        access: AccessPermit<'_>,
        session: &Session,
    ) -> Result<Session, SecretsError> {
        let url = self.api_url(&["auth", "token", "renew-self"]);
        let request = session.sign(Request::post(url, "application/json", b"{}".to_vec()));
        let response =
            self.send(access, request).await.map_err(|error| self.unreachable(error, "our own token"))?;
        let (token, lease) = parse_auth(&read(&response, "our own token")?)?;
        let lease = match (lease, session.lease) {
            (Some(new), Some(old)) => Some(new.cap_renewal(&old, Instant::now())),
            (new, _) => new,
        };
        Ok(Session { token, number: session.number, lease })
    }

    async fn look_up_token(
        &self,
        access: AccessPermit<'_>,
        token: &Secret,
        number: u64,
    ) -> Result<Session, SecretsError> {
        let session = Session { token: token.clone(), number, lease: None };
        let request = Request::get(self.api_url(&["auth", "token", "lookup-self"]));
        let request =
            session.sign(request.accept_status(StatusCode::FORBIDDEN).accept_status(StatusCode::NOT_FOUND));
        let response = self.send(access, request).await;
        let response = response.map_err(|error| self.unreachable(error, "our own token"))?;
        match response.status {
            StatusCode::FORBIDDEN => Err(self.login_error(response.status)),
            // The server does not support lookups: the token is used until it is refused.
            StatusCode::NOT_FOUND => Ok(session),
            _ => {
                let data = &read(&response, "our own token")?["data"];
                let lease =
                    TokenLease::new(data["ttl"].as_u64(), data["renewable"].as_bool(), Instant::now());
                // The only token cannot be renewed, so it is used until it is refused.
                Ok(Session { lease: lease.filter(TokenLease::is_renewable), ..session })
            }
        }
    }

    /// The error of a failed login.
    pub(super) fn login_error(&self, status: StatusCode) -> SecretsError {
        SecretsError::Login { how: self.shared.login.describe(), status }
    }
}

/// The token and its lifetime, from the response to a login.
fn parse_auth(answer: &Value) -> Result<(Secret, Option<TokenLease>), SecretsError> {
    let auth = &answer["auth"];
    let token = auth["client_token"].as_str().ok_or_else(|| malformed("our login", "it has no token"))?;
    // The token is checked, because it is sent as a header.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(malformed("our login", "its token is not printable"));
    }
    let lease = TokenLease::new(auth["lease_duration"].as_u64(), auth["renewable"].as_bool(), Instant::now());
    Ok((Secret::new(token), lease))
}
