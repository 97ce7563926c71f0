//! Errors of the data server client.

use qontract_client_http::{HttpError, StatusCode};

use crate::answer::GraphqlError;
use crate::client::BundleSelector;
use crate::sha::Sha;

/// An error of a call to a data server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Getting the latest bundle failed.
    #[error("cannot get the latest bundle from the data server")]
    Latest(#[source] HttpError),
    /// Getting the commit of a bundle failed.
    #[error("cannot get the commit of bundle `{sha}` from the data server")]
    Commit {
        /// The bundle.
        sha: Sha,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// Sending a query failed.
    #[error("cannot query {selector} on the data server")]
    Request {
        /// The bundle.
        selector: BundleSelector,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// Leasing or releasing a bundle failed.
    #[error("cannot lease bundle `{sha}` on the data server")]
    Lease {
        /// The bundle.
        sha: Sha,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The server does not have the bundle, because it was never loaded, or was evicted after it had not been
    /// queried.
    #[error("the data server does not have the bundle `{0}`")]
    UnknownSha(Sha),
    /// The token is wrong or missing.
    #[error("the data server {}", if *.sent { "does not accept the token" } else { "requires a token, and none is configured" })]
    Denied {
        /// Whether a token was sent.
        sent: bool,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The query is invalid, or cannot be executed on this data.
    #[error("the data server cannot execute the query: {}", summary(.0))]
    GraphqlErrors(Vec<GraphqlError>),
    /// The response is not valid for a data server.
    #[error("the data server's response is malformed: {what}")]
    Malformed {
        /// The reason.
        what: &'static str,
        /// The cause.
        #[source]
        source: Option<serde_json::Error>,
    },
}

impl ServerError {
    /// Whether a retry of the same call may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Latest(source)
            | Self::Commit { source, .. }
            | Self::Request { source, .. }
            | Self::Lease { source, .. } => source.is_transient(),
            Self::UnknownSha(_) | Self::Denied { .. } | Self::GraphqlErrors(_) | Self::Malformed { .. } => {
                false
            }
        }
    }

    /// The error of a call: `Denied` if a wrong or missing token is the reason, otherwise the result of
    /// `what`. `sent` is whether a token was sent.
    pub(crate) fn from_call(source: HttpError, sent: bool, what: impl FnOnce(HttpError) -> Self) -> Self {
        match source.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Self::Denied { sent, source },
            _ => what(source),
        }
    }
}

/// The first error, and the number of further errors.
fn summary(complaints: &[GraphqlError]) -> String {
    let first = complaints.first().map_or("no reason given", |complaint| &complaint.message);
    let short: String = first.chars().take(200).collect();
    match complaints.len() {
        0 | 1 => short,
        count => format!("{short} (and {} more)", count - 1),
    }
}
