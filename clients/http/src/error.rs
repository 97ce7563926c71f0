//! What can go wrong with a call.
//!
//! **Invariant:** an error holds no header value and no query; of a body at most an [`EXCERPT`], without the secrets
//! that were sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use qontract_redaction::Redactor;
use reqwest::{Method, StatusCode, Url};

use crate::guard::Refusal;
use crate::secret::Secret;

/// How many characters of a body an error may tell.
pub(crate) const EXCERPT: usize = 200;
/// How much of a body is looked at for an excerpt.
const LOOKED_AT: usize = 64 << 10;

/// Which call an error is about: its method and its URL without user, password, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The URL as far as it may be shown.
    pub url: String,
}

impl Call {
    /// What may be told of a request.
    pub fn new(method: &Method, url: &Url) -> Self {
        let shown = format!("{}{}", crate::guard::origin(url), url.path());
        Self { method: method.clone(), url: shown }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} {}`", self.method, self.url)
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The stack, or TLS in it, could not be made: the machine has no trusted certificates.
    #[error("the HTTP client cannot be set up")]
    SetUp(#[source] Arc<reqwest::Error>),
    /// The guard does not let it through.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request is not one that can be sent.
    #[error("{call} cannot be sent: {why}")]
    Prepare {
        /// Which call.
        call: Call,
        /// What is wrong with it.
        why: String,
    },
    /// No connection came about.
    #[error("{call}: no connection")]
    Connect {
        /// Which call.
        call: Call,
        /// Whether another try may help: not if the certificate is no good.
        transient: bool,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The connection broke, or what came over it is not HTTP.
    #[error("{call}: the connection broke")]
    Exchange {
        /// Which call.
        call: Call,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The target asked everyone to wait longer than the call may take.
    #[error("{call}: the target wants no requests for another {} s", .rest.as_secs())]
    Wait {
        /// Which call.
        call: Call,
        /// How much longer it wants none.
        rest: Duration,
    },
    /// One attempt took too long.
    #[error("{call}: no answer within {} ms", .limit.as_millis())]
    Attempt {
        /// Which call.
        call: Call,
        /// How long it may take.
        limit: Duration,
    },
    /// The whole call took too long.
    #[error("{call}: given up after {} ms", .deadline.as_millis())]
    Deadline {
        /// Which call.
        call: Call,
        /// How long it may take.
        deadline: Duration,
        /// How the attempt before the last one ended.
        #[source]
        last: Option<Box<HttpError>>,
    },
    /// The answer is larger than allowed.
    #[error("{call}: the answer has more than {limit} bytes")]
    Body {
        /// Which call.
        call: Call,
        /// How many bytes it may have.
        limit: usize,
    },
    /// The target sends the caller elsewhere, and the caller does not go.
    #[error("{call}: {status}: a redirect to `{to}` is not followed")]
    Redirect {
        /// Which call.
        call: Call,
        /// The status.
        status: StatusCode,
        /// The origin it leads to.
        to: String,
    },
    /// The answer is a failure.
    #[error("{call}: {status}{}{excerpt}", if .excerpt.is_empty() { "" } else { ": " })]
    Status {
        /// Which call.
        call: Call,
        /// The status.
        status: StatusCode,
        /// How long the target wants to be left alone.
        retry_after: Option<Duration>,
        /// The beginning of the body.
        excerpt: String,
    },
}

impl HttpError {
    /// Whether the same call may well succeed later, with nobody having changed anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { transient, .. } => *transient,
            Self::Exchange { .. } | Self::Wait { .. } | Self::Attempt { .. } | Self::Deadline { .. } => true,
            Self::Status { status, .. } => crate::retry::is_transient(*status),
            Self::SetUp(_)
            | Self::Refused(_)
            | Self::Prepare { .. }
            | Self::Body { .. }
            | Self::Redirect { .. } => false,
        }
    }

    /// The status of the answer, if there was one that is a failure.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Some(*status),
            Self::SetUp(_)
            | Self::Refused(_)
            | Self::Prepare { .. }
            | Self::Connect { .. }
            | Self::Exchange { .. }
            | Self::Wait { .. }
            | Self::Attempt { .. }
            | Self::Deadline { .. }
            | Self::Body { .. } => None,
        }
    }
}

/// Credentials that are shorter than this are not searched for in answers.
const MIN_CREDENTIAL_BYTES: usize = 4;

/// The beginning of a body as one line, without control characters; nothing of it if it echoes a secret.
pub(crate) fn excerpt(body: &[u8], secrets: &[Secret]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(LOOKED_AT)]);
    let redactor = Redactor::with_min_bytes(secrets.iter().map(Secret::credential), MIN_CREDENTIAL_BYTES);
    let text = redactor.field(&text);
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = line.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{EXCERPT, excerpt};
    use crate::secret::Secret;

    fn check(body: &str, expect: &str) {
        assert_eq!(excerpt(body.as_bytes(), &[Secret::new("Basic c2VjcmV0")]), expect);
    }

    #[test]
    fn an_excerpt_is_one_line_without_control_characters() {
        check("<h1>\r\n  not\tfound\u{1b}[0m</h1>\n", "<h1> not found [0m</h1>");
    }

    #[test]
    fn an_excerpt_is_cut() {
        check(&"ä".repeat(EXCERPT + 1), &format!("{}…", "ä".repeat(EXCERPT)));
    }

    #[test]
    fn what_was_sent_in_secret_is_not_echoed() {
        check("bad header `Basic c2VjcmV0`", "[redacted]");
        check(&format!("{}c2VjcmV0", "a ".repeat(95)), "[redacted]");
        check("bad header `Basic`", "bad header `Basic`");
    }
}
