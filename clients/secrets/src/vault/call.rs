//! Calls Vault: passes the permit, adds the token, and retries the call once if the token has expired.

use qontract_access::{AccessPermit, ReadPermit};
use qontract_client_http::{HttpError, Request, Response, StatusCode, Url};
use serde_json::Value;

use super::session::Session;
use super::{MAX_ANSWER_BYTES, Vault};
use crate::error::SecretsError;

impl Vault {
    /// Sends a request without a token.
    pub(super) async fn send(
        &self,
        access: AccessPermit<'_>,
        request: Request,
    ) -> Result<Response, HttpError> {
        let request = request.header("x-vault-request", "true").max_body(MAX_ANSWER_BYTES);
        self.http.send(access, request).await
    }

    /// Sends a request with the token of the session. If the response is 403 and the token is no longer
    /// valid, logs in and retries once. `failed` converts errors.
    pub(super) async fn send_authenticated(
        &self,
        access: AccessPermit<'_>,
        request: Request,
        failed: impl Fn(HttpError) -> SecretsError,
    ) -> Result<Response, SecretsError> {
        let request = request.accept_status(StatusCode::FORBIDDEN);
        let session = self.shared.sessions.current(self, access).await?;
        let response = self.send(access, session.sign(request.clone())).await.map_err(&failed)?;
        if response.status != StatusCode::FORBIDDEN || self.is_live(access, &session).await? {
            return Ok(response);
        }
        let session = self.shared.sessions.replace(self, access, &session).await?;
        self.send(access, session.sign(request)).await.map_err(failed)
    }

    /// Logs in, and checks that the token is accepted.
    pub async fn check_login(&self, permit: &ReadPermit) -> Result<(), SecretsError> {
        let access = AccessPermit::Read(permit);
        let session = self.shared.sessions.current(self, access).await?;
        if self.is_live(access, &session).await? {
            Ok(())
        } else {
            Err(self.login_error(StatusCode::FORBIDDEN))
        }
    }

    /// Whether the token of a session is still valid.
    async fn is_live(&self, access: AccessPermit<'_>, session: &Session) -> Result<bool, SecretsError> {
        let request = Request::get(self.api_url(&["auth", "token", "lookup-self"]))
            .accept_status(StatusCode::FORBIDDEN);
        let answer = self.send(access, session.sign(request)).await;
        let answer = answer.map_err(|error| self.unreachable(error, "our own token"))?;
        Ok(answer.status != StatusCode::FORBIDDEN)
    }

    /// The URL of a path below `/v1/`.
    pub(super) fn api_url(&self, segments: &[&str]) -> Url {
        build_api_url(&self.shared.server, segments)
    }

    /// The error of a call that sent no secret except the token.
    pub(super) fn unreachable(&self, error: HttpError, what: impl Into<String>) -> SecretsError {
        SecretsError::of_read(error, what, &self.shared.server)
    }
}

/// The URL of a path below `/v1/`, with each segment escaped.
pub(super) fn build_api_url(server: &Url, segments: &[&str]) -> Url {
    let mut url = server.clone();
    url.set_query(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("v1").extend(segments);
    }
    url
}

/// The JSON of a response about `what`. The error of the parser is dropped, because it could contain a value.
pub(super) fn json(response: &Response, what: &str) -> Result<Value, SecretsError> {
    serde_json::from_slice(&response.body).map_err(|_| malformed(what, "it is not JSON"))
}

/// The error for a response that is not valid for Vault.
pub(super) fn malformed(what: &str, why: &'static str) -> SecretsError {
    SecretsError::Malformed { what: what.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use qontract_client_http::Url;

    use super::build_api_url;

    fn check(server: &str, segments: &[&str], expect: &str) {
        assert_eq!(build_api_url(&Url::parse(server).unwrap(), segments).as_str(), expect);
    }

    #[test]
    fn a_path_is_appended_to_that_of_the_server() {
        check("https://vault.example.com", &["secret", "a"], "https://vault.example.com/v1/secret/a");
        check("https://example.com/vault/", &["secret"], "https://example.com/vault/v1/secret");
        check("https://example.com/vault", &["secret"], "https://example.com/vault/v1/secret");
    }

    #[test]
    fn segments_are_escaped() {
        check(
            "http://v",
            &["secret", "a b", "c?d#e", "é/f"],
            "http://v/v1/secret/a%20b/c%3Fd%23e/%C3%A9%2Ff",
        );
    }
}
