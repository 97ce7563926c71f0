//! Errors of the secrets client.
//!
//! **Invariant:** an error contains the location of a secret, never its value: no part of a request body, and
//! no part of a response that could contain a value.

use std::path::PathBuf;
use std::sync::Arc;

use qontract_client_http::{HttpError, StatusCode, Url};

use crate::location::SecretLocation;

/// An error of a read or write. Errors are cloned for callers that waited for the same request.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SecretsError {
    /// The path is not valid.
    #[error("`{path}` is not a valid secret path: {why}")]
    Path {
        /// The path.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The secret or its version does not exist, or was deleted.
    #[error("secret {0} not found")]
    NotFound(SecretLocation),
    /// The secret exists, but the field does not.
    #[error("secret {place} has no field `{field}`")]
    NoField {
        /// The secret.
        place: SecretLocation,
        /// The field.
        field: String,
    },
    /// The value does not have the format of the reference.
    #[error("field `{field}` of secret {place} cannot be decoded: {why}")]
    Format {
        /// The secret.
        place: SecretLocation,
        /// The field.
        field: String,
        /// The reason.
        why: &'static str,
    },
    /// Access to the secret is denied.
    #[error("access to secret {0} denied")]
    Denied(SecretLocation),
    /// The login failed because the role, the secret id or the token is wrong.
    #[error("Vault login {how} failed: {status}")]
    Login {
        /// The login method.
        how: String,
        /// The status of the response.
        status: StatusCode,
    },
    /// The token file of the pod cannot be read.
    #[error("cannot read the token file `{}` for the Vault login", .path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Vault is sealed: it is reachable, but it does not serve requests.
    #[error("Vault at `{0}` is sealed")]
    Sealed(String),
    /// There was no response, or a response that is not about the secret.
    #[error("Vault request for {what} failed: {}", .error.without_body())]
    Unreachable {
        /// The subject of the request.
        what: String,
        /// The cause.
        error: Arc<HttpError>,
    },
    /// Vault rejected the request. The message of Vault is omitted, because it may repeat the request.
    #[error("Vault rejected {what}: {status}")]
    Refused {
        /// The subject of the request.
        what: String,
        /// The status of the response.
        status: StatusCode,
    },
    /// The secret was written concurrently.
    #[error("secret {0} was modified concurrently")]
    Stale(SecretLocation),
    /// The response is not valid for Vault.
    #[error("malformed Vault response for {what}: {why}")]
    Malformed {
        /// The subject of the request.
        what: String,
        /// The reason.
        why: &'static str,
    },
    /// A file operation failed.
    #[error("cannot {what}: {error}")]
    File {
        /// The operation.
        what: String,
        /// The cause, which contains nothing of the file.
        error: Arc<std::io::Error>,
    },
    /// The settings of the store cannot be used.
    #[error("the secret store is not configured correctly: {0}")]
    Settings(String),
    /// The store does not support the operation.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl SecretsError {
    /// Whether a retry of the same call may succeed. A sealed Vault counts as transient, because its
    /// operators will unseal it.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Sealed(_) | Self::Stale(_) => true,
            Self::Unreachable { error, .. } => {
                error.is_transient() || error.status().is_some_and(|status| status.is_server_error())
            }
            Self::Login { status, .. } | Self::Refused { status, .. } => status.is_server_error(),
            Self::Path { .. }
            | Self::NotFound(_)
            | Self::NoField { .. }
            | Self::Format { .. }
            | Self::Denied(_)
            | Self::Identity { .. }
            | Self::Malformed { .. }
            | Self::File { .. }
            | Self::Settings(_)
            | Self::Unsupported(_) => false,
        }
    }

    /// The error of a call that sent no secret except the token.
    pub(crate) fn of_read(error: HttpError, what: impl Into<String>, server: &Url) -> Self {
        match sealed(&error, server) {
            Some(sealed) => sealed,
            None => Self::Unreachable { what: what.into(), error: Arc::new(error) },
        }
    }

    /// The error of a call whose body contains secrets: `refused` gets only the status of the response.
    pub(crate) fn of_secret_body(
        error: HttpError,
        what: impl Into<String>,
        server: &Url,
        refused: impl FnOnce(StatusCode) -> Self,
    ) -> Self {
        match (sealed(&error, server), error.status()) {
            (Some(sealed), _) => sealed,
            (None, Some(status)) => refused(status),
            (None, None) => Self::Unreachable { what: what.into(), error: Arc::new(without_body(error)) },
        }
    }
}

/// The error for a sealed Vault. The message is checked, because other failures have the same status.
fn sealed(error: &HttpError, server: &Url) -> Option<SecretsError> {
    let HttpError::Status { status, excerpt, .. } = error else { return None };
    let is_sealed = *status == StatusCode::SERVICE_UNAVAILABLE && excerpt.to_lowercase().contains("sealed");
    is_sealed.then(|| SecretsError::Sealed(server.origin().ascii_serialization()))
}

/// Removes the response of an earlier attempt from the error.
fn without_body(error: HttpError) -> HttpError {
    match error {
        HttpError::Deadline { call, deadline, .. } => HttpError::Deadline { call, deadline, last: None },
        other => other,
    }
}
