//! One call to Vault: the permit, the token, and a second try if the token has ended.

use qontract_access::{AccessPermit, ReadPermit};
use qontract_client_http::{HttpError, Request, Response, StatusCode, Url};
use serde_json::Value;

use super::session::Session;
use super::{MAX_ANSWER_BYTES, Vault};
use crate::error::SecretsError;

impl Vault {
    /// Sends a request as it is.
    pub(super) async fn send(
        &self,
        access: AccessPermit<'_>,
        request: Request,
    ) -> Result<Response, HttpError> {
        let request = request.header("x-vault-request", "true").max_body(MAX_ANSWER_BYTES);
        self.http.send(access, request).await
    }

    /// Sends a request as whom we are logged in; 403 is an answer, once it is sure that the token is not the reason.
    /// A failure is told by `failed`.
    pub(super) async fn ask(
        &self,
        access: AccessPermit<'_>,
        request: Request,
        failed: impl Fn(HttpError) -> SecretsError,
    ) -> Result<Response, SecretsError> {
        let request = request.also(StatusCode::FORBIDDEN);
        let session = self.shared.sessions.current(self, access).await?;
        let response = self.send(access, session.sign(request.clone())).await.map_err(&failed)?;
        if response.status != StatusCode::FORBIDDEN || self.is_live(access, &session).await? {
            return Ok(response);
        }
        let session = self.shared.sessions.after(self, access, &session).await?;
        self.send(access, session.sign(request)).await.map_err(failed)
    }

    /// Logs in, and asks whether the token is accepted.
    pub async fn check_login(&self, permit: &ReadPermit) -> Result<(), SecretsError> {
        let access = AccessPermit::Read(permit);
        let session = self.shared.sessions.current(self, access).await?;
        if self.is_live(access, &session).await? { Ok(()) } else { Err(self.refused(StatusCode::FORBIDDEN)) }
    }

    /// Whether the token of a session is still known.
    async fn is_live(&self, access: AccessPermit<'_>, session: &Session) -> Result<bool, SecretsError> {
        let request = Request::get(self.at(&["auth", "token", "lookup-self"])).also(StatusCode::FORBIDDEN);
        let answer = self.send(access, session.sign(request)).await;
        let answer = answer.map_err(|error| self.unreachable(error, "our own token"))?;
        Ok(answer.status != StatusCode::FORBIDDEN)
    }

    /// The address of a path below `/v1/`.
    pub(super) fn at(&self, segments: &[&str]) -> Url {
        address(&self.shared.server, segments)
    }

    /// The failure of a call that sent no secret but the token.
    pub(super) fn unreachable(&self, error: HttpError, what: impl Into<String>) -> SecretsError {
        SecretsError::of_read(error, what, &self.shared.server)
    }
}

/// The address of a path below `/v1/`, each segment escaped.
pub(super) fn address(server: &Url, segments: &[&str]) -> Url {
    let mut url = server.clone();
    url.set_query(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("v1").extend(segments);
    }
    url
}

/// The JSON of an answer about `what`; a parser's complaint could tell a value, so there is none.
pub(super) fn json(response: &Response, what: &str) -> Result<Value, SecretsError> {
    serde_json::from_slice(&response.body).map_err(|_| malformed(what, "it is not JSON"))
}

/// The complaint that an answer is not one of Vault's.
pub(super) fn malformed(what: &str, why: &'static str) -> SecretsError {
    SecretsError::Malformed { what: what.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use qontract_client_http::Url;

    use super::address;

    fn check(server: &str, segments: &[&str], expect: &str) {
        assert_eq!(address(&Url::parse(server).unwrap(), segments).as_str(), expect);
    }

    #[test]
    fn a_path_is_below_that_of_the_server() {
        check("https://vault.example.com", &["secret", "a"], "https://vault.example.com/v1/secret/a");
        check("https://example.com/vault/", &["secret"], "https://example.com/vault/v1/secret");
        check("https://example.com/vault", &["secret"], "https://example.com/vault/v1/secret");
    }

    #[test]
    fn a_segment_stays_one() {
        check(
            "http://v",
            &["secret", "a b", "c?d#e", "é/f"],
            "http://v/v1/secret/a%20b/c%3Fd%23e/%C3%A9%2Ff",
        );
    }
}
