//! Errors of the Prometheus client.

use crate::answer::Labels;
use qontract_client_http::{HttpError, StatusCode};

/// An error of a query.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// The request failed.
    #[error("cannot query Prometheus")]
    Request(#[source] HttpError),
    /// The credentials are wrong or missing.
    #[error("Prometheus {}", if *.sent { "does not accept the credentials" } else { "requires credentials, and none are configured" })]
    Denied {
        /// Whether credentials were sent.
        sent: bool,
        /// The cause.
        #[source]
        source: HttpError,
    },
    /// The server did not execute the query.
    #[error("Prometheus refused the query ({kind}): {message}")]
    Rejected {
        /// The kind of error, as the server names it: `bad_data`, `execution`, `timeout`.
        kind: String,
        /// The message of the server.
        message: String,
    },
    /// The server returned a part of the data.
    #[error("the result of the Prometheus query is incomplete: {0}")]
    Incomplete(String),
    /// The response is not that of a Prometheus server.
    #[error("the response is not a Prometheus result: {what}")]
    Malformed {
        /// The reason.
        what: String,
        /// The cause.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// A value is not a finite number.
    #[error("the series {labels} has the value {value}")]
    NotFinite {
        /// The labels of the series.
        labels: Labels,
        /// The value: NaN or an infinity.
        value: f64,
    },
    /// A run time is negative.
    #[error("the series {labels} has the run time {seconds} s")]
    NotDuration {
        /// The labels of the series.
        labels: Labels,
        /// The value.
        seconds: f64,
    },
    /// A series does not have the label by which run times were requested.
    #[error("the series {labels} has no label `{label}`")]
    MissingLabel {
        /// The label.
        label: String,
        /// The labels of the series.
        labels: Labels,
    },
    /// Several series have the same value of the label by which run times were requested.
    #[error("several series have {label}=\"{value}\": aggregate the query with `sum by ({label})`")]
    DuplicateLabel {
        /// The label.
        label: String,
        /// Its value.
        value: String,
    },
}

/// The kinds of errors of the server that a retry may avoid.
const TRANSIENT_KINDS: [&str; 3] = ["canceled", "timeout", "unavailable"];

impl PrometheusError {
    /// Whether a retry of the same query may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request(source) => source.is_transient(),
            Self::Rejected { kind, .. } => TRANSIENT_KINDS.contains(&kind.as_str()),
            Self::Incomplete(_) => true,
            Self::Denied { .. }
            | Self::Malformed { .. }
            | Self::NotFinite { .. }
            | Self::NotDuration { .. }
            | Self::MissingLabel { .. }
            | Self::DuplicateLabel { .. } => false,
        }
    }

    /// A response that is not as documented.
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed { what: what.into(), source: None }
    }

    /// The error of a call. `sent` is whether credentials were sent.
    pub(crate) fn from_call(source: HttpError, sent: bool) -> Self {
        match source.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Self::Denied { sent, source },
            _ => Self::Request(source),
        }
    }
}
