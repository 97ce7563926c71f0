//! What can go wrong with a data server.

use qontract_client_http::{HttpError, StatusCode};

use crate::answer::Complaint;
use crate::server::Address;
use crate::sha::Sha;

/// Why a data server has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Asking which bundle is the latest.
    #[error("cannot ask the data server for its latest bundle")]
    Latest(#[source] HttpError),
    /// Asking for the commit of a bundle.
    #[error("cannot ask the data server for the commit of bundle `{sha}`")]
    Commit {
        /// Which bundle.
        sha: Sha,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// Asking a query.
    #[error("cannot ask the data server about {address}")]
    Ask {
        /// Which bundle.
        address: Address,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// Asking that a bundle stays, or need not stay any longer.
    #[error("cannot ask the data server to keep bundle `{sha}`")]
    Lease {
        /// Which bundle.
        sha: Sha,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The server does not have the bundle: it never had it, or nobody asked for it for too long.
    #[error("the data server does not have the bundle `{0}`")]
    UnknownSha(Sha),
    /// The server wants another token.
    #[error("the data server {}", if *.sent { "does not accept the token" } else { "wants a token, and there is none" })]
    Denied {
        /// Whether a token was sent.
        sent: bool,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The query is wrong, or cannot be executed over this data.
    #[error("the data server cannot answer the query: {}", summary(.0))]
    Query(Vec<Complaint>),
    /// The answer is not one that a data server gives.
    #[error("the data server's answer is malformed: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// The cause.
        #[source]
        source: Option<serde_json::Error>,
    },
}

impl ServerError {
    /// Whether the same question may well be answered later, with nobody having changed anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Latest(source)
            | Self::Commit { source, .. }
            | Self::Ask { source, .. }
            | Self::Lease { source, .. } => source.is_transient(),
            Self::UnknownSha(_) | Self::Denied { .. } | Self::Query(_) | Self::Malformed { .. } => false,
        }
    }

    /// The failure of a call, told as `what` unless it is about the token, which was `sent` or not.
    pub(crate) fn of_call(source: HttpError, sent: bool, what: impl FnOnce(HttpError) -> Self) -> Self {
        match source.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Self::Denied { sent, source },
            _ => what(source),
        }
    }
}

/// The first complaint, and how many more there are.
fn summary(complaints: &[Complaint]) -> String {
    let first = complaints.first().map_or("no reason given", |complaint| &complaint.message);
    let short: String = first.chars().take(200).collect();
    match complaints.len() {
        0 | 1 => short,
        count => format!("{short} (and {} more)", count - 1),
    }
}
