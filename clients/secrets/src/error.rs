//! What can go wrong with secrets.
//!
//! **Invariant:** an error tells where a secret is, never what it is: nothing that was sent as a body, and nothing of an
//! answer that could hold a value.

use std::path::PathBuf;
use std::sync::Arc;

use qontract_client_http::{HttpError, StatusCode, Url};

use crate::place::Place;

/// Why there is no secret, or why it was not written. A clone is for those who waited for the same answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SecretsError {
    /// The path cannot be asked for.
    #[error("`{path}` is no path of a secret: {why}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no such secret, or no such version; or it was deleted.
    #[error("there is no secret {0}")]
    NotFound(Place),
    /// The secret is there, the field is not.
    #[error("secret {place} has no field `{field}`")]
    NoField {
        /// Which secret.
        place: Place,
        /// Which field.
        field: String,
    },
    /// The value is not written as the reference says.
    #[error("field `{field}` of secret {place} cannot be decoded: {why}")]
    Format {
        /// Which secret.
        place: Place,
        /// Which field.
        field: String,
        /// What is wrong.
        why: &'static str,
    },
    /// We are known, and may not.
    #[error("secret {0} is denied to us")]
    Denied(Place),
    /// We are not known: the role, the password or the token is wrong.
    #[error("Vault does not let us in {how}: {status}")]
    Login {
        /// How it was tried.
        how: String,
        /// What it answered.
        status: StatusCode,
    },
    /// The file with our identity cannot be read.
    #[error("cannot read our identity in `{}`", .path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Vault is sealed: it is there and answers nothing.
    #[error("Vault at `{0}` is sealed")]
    Sealed(String),
    /// No answer, or none that tells anything about the secret.
    #[error("the request to Vault about {what} failed: {}", .error.without_body())]
    Unreachable {
        /// What was asked about.
        what: String,
        /// The cause.
        error: Arc<HttpError>,
    },
    /// Vault refuses what was sent to it; what it says may repeat that.
    #[error("Vault does not take {what}: {status}")]
    Refused {
        /// What was sent.
        what: String,
        /// What it answered.
        status: StatusCode,
    },
    /// Somebody else wrote the secret at the same time.
    #[error("secret {0} was changed meanwhile")]
    Stale(Place),
    /// The answer is not one that Vault gives.
    #[error("Vault's answer about {what} is malformed: {why}")]
    Malformed {
        /// What was asked about.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
    /// This store cannot do it.
    #[error("{0}")]
    Unsupported(&'static str),
}

impl SecretsError {
    /// Whether the same call may well succeed later, with nobody having changed its input. A sealed Vault is opened by
    /// those who run it.
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
            | Self::Unsupported(_) => false,
        }
    }

    /// The failure of a call that sent no secret but the token.
    pub(crate) fn of_read(error: HttpError, what: impl Into<String>, server: &Url) -> Self {
        match sealed(&error, server) {
            Some(sealed) => sealed,
            None => Self::Unreachable { what: what.into(), error: Arc::new(error) },
        }
    }

    /// The failure of a call whose body has secrets: of an answer only the status is told, as `refused`.
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

/// Vault says so in words; other failures have the same status.
fn sealed(error: &HttpError, server: &Url) -> Option<SecretsError> {
    let HttpError::Status { status, excerpt, .. } = error else { return None };
    let is_sealed = *status == StatusCode::SERVICE_UNAVAILABLE && excerpt.to_lowercase().contains("sealed");
    is_sealed.then(|| SecretsError::Sealed(server.origin().ascii_serialization()))
}

/// What an earlier attempt was answered is not told either.
fn without_body(error: HttpError) -> HttpError {
    match error {
        HttpError::Deadline { call, deadline, .. } => HttpError::Deadline { call, deadline, last: None },
        other => other,
    }
}
