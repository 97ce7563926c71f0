//! Errors of a call.
//!
//! **Invariant:** an error contains no header value and no query, and at most [`MAX_EXCERPT_CHARS`]
//! characters of a body, without the secrets that were sent.

use std::sync::Arc;
use std::time::Duration;

use qontract_redaction::{Redactor, first_words};
use reqwest::StatusCode;

use crate::call::Call;
use crate::cause::cause;
use crate::secret::Secret;

/// Number of characters of a body that an error shows; the last word is shown completely.
pub(crate) const MAX_EXCERPT_CHARS: usize = 200;
/// Maximum number of bytes of a body that are scanned for an excerpt.
const MAX_SCANNED_BYTES: usize = 64 << 10;

/// The reason why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardRefusal {
    /// The Read half tried to send a request that could change the target.
    #[error("{0} is refused: a read may only use GET, HEAD, OPTIONS, or a request that is known to be safe")]
    UnsafeRead(Call),
    /// The Write half tried to send a request in a dry run.
    #[error("{0} is refused: this is a dry run")]
    DryRun(Call),
    /// The target accepts writes by every method, so only `POST` is sent to it.
    #[error("{0} is refused: this API may execute an action by any method, so only POST is allowed")]
    NotPost(Call),
    /// The Write half tried to send a request that the bounds of its permit do not cover.
    #[error("{call} is refused: the write permit of this run allows {bounds}")]
    OutOfBounds {
        /// The call.
        call: Call,
        /// The bounds.
        bounds: String,
    },
}

/// The error of a call. Its message is one line that ends with the cause.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The stack or its TLS could not be set up, because there are no trusted certificates or the client
    /// certificate cannot be used.
    #[error("the HTTP client cannot be set up: {}", cause(.0.as_ref(), ""))]
    SetUp(Arc<reqwest::Error>),
    /// The guard refused the request.
    #[error(transparent)]
    Refused(#[from] GuardRefusal),
    /// The request is invalid.
    #[error("{call} cannot be sent: {why}")]
    Prepare {
        /// The call.
        call: Call,
        /// The reason.
        why: String,
    },
    /// The connection could not be established.
    #[error("{call}: {}", self.reason())]
    Connect {
        /// The call.
        call: Call,
        /// Whether a retry may help; false if the certificate is not valid.
        transient: bool,
        /// A short description of the cause.
        cause: String,
    },
    /// The connection broke, or the response is not HTTP.
    #[error("{call}: {}", self.reason())]
    Exchange {
        /// The call.
        call: Call,
        /// A short description of the cause.
        cause: String,
    },
    /// The back-off that the target requested ends past the deadline of the call.
    #[error("{call}: {}", self.reason())]
    BackOff {
        /// The call.
        call: Call,
        /// The remaining back-off.
        rest: Duration,
    },
    /// One attempt timed out.
    #[error("{call}: {}", self.reason())]
    AttemptTimeout {
        /// The call.
        call: Call,
        /// The timeout of an attempt.
        limit: Duration,
    },
    /// The whole call timed out.
    #[error("{call}: {}", self.reason())]
    Deadline {
        /// The call.
        call: Call,
        /// The deadline of the call.
        deadline: Duration,
        /// The error of the previous attempt.
        last: Option<Box<HttpError>>,
    },
    /// The response body is too large.
    #[error("{call}: {}", self.reason())]
    BodyTooLarge {
        /// The call.
        call: Call,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The response is a redirect that is not followed.
    #[error("{call}: {}", self.reason())]
    Redirect {
        /// The call.
        call: Call,
        /// The status.
        status: StatusCode,
        /// The origin to which the response redirects.
        to: String,
    },
    /// The response has an error status.
    #[error("{call}: {}", self.reason())]
    Status {
        /// The call.
        call: Call,
        /// The status.
        status: StatusCode,
        /// The back-off that the target requested.
        retry_after: Option<Duration>,
        /// The start of the body.
        excerpt: String,
    },
}

/// Whether a message contains the excerpt of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyVisibility {
    Shown,
    Hidden,
}

impl HttpError {
    /// The cause without the call: `connection refused`, `timed out after 30 s`,
    /// `HTTP 503 Service Unavailable`.
    pub fn reason(&self) -> String {
        self.reason_with(BodyVisibility::Shown)
    }

    /// The whole message without the excerpt of the body, which may contain confidential data.
    pub fn without_body(&self) -> String {
        match self {
            Self::Deadline { call, .. } | Self::Status { call, .. } => {
                format!("{call}: {}", self.reason_with(BodyVisibility::Hidden))
            }
            other => other.to_string(),
        }
    }

    fn reason_with(&self, body: BodyVisibility) -> String {
        match self {
            Self::SetUp(_) | Self::Refused(_) | Self::Prepare { .. } => self.to_string(),
            Self::Connect { cause, .. } | Self::Exchange { cause, .. } => cause.clone(),
            Self::BackOff { rest, .. } => {
                format!("the server requested a back-off of another {} (Retry-After)", seconds(*rest))
            }
            Self::AttemptTimeout { limit, .. } => format!("timed out after {}", seconds(*limit)),
            Self::Deadline { deadline, last: None, .. } => format!("timed out after {}", seconds(*deadline)),
            Self::Deadline { deadline, last: Some(last), .. } => {
                format!("gave up after {} (last attempt: {})", seconds(*deadline), last.reason_with(body))
            }
            Self::BodyTooLarge { limit, .. } => format!("the response has more than {limit} bytes"),
            Self::Redirect { status, to, .. } => format!("HTTP {status}: redirect to `{to}` not followed"),
            Self::Status { status, excerpt, .. } if excerpt.is_empty() || body == BodyVisibility::Hidden => {
                format!("HTTP {status}")
            }
            Self::Status { status, excerpt, .. } => format!("HTTP {status}: {excerpt}"),
        }
    }

    /// Whether a retry of the same call may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { transient, .. } => *transient,
            Self::Exchange { .. }
            | Self::BackOff { .. }
            | Self::AttemptTimeout { .. }
            | Self::Deadline { .. } => true,
            Self::Status { status, .. } => crate::retry::is_transient(*status),
            Self::SetUp(_)
            | Self::Refused(_)
            | Self::Prepare { .. }
            | Self::BodyTooLarge { .. }
            | Self::Redirect { .. } => false,
        }
    }

    /// The error status of the response, if there was one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } | Self::Redirect { status, .. } => Some(*status),
            Self::SetUp(_)
            | Self::Refused(_)
            | Self::Prepare { .. }
            | Self::Connect { .. }
            | Self::Exchange { .. }
            | Self::BackOff { .. }
            | Self::AttemptTimeout { .. }
            | Self::Deadline { .. }
            | Self::BodyTooLarge { .. } => None,
        }
    }
}

/// Formats a time in seconds, or in milliseconds if it is shorter than one second.
fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// Minimum length of the credentials that are searched for in responses.
const MIN_CREDENTIAL_BYTES: usize = 4;

/// The start of a body as one line, without control characters; redacted as a whole if it contains a secret.
///
/// Only whole words are shown: a truncated secret of the caller would not be recognized by a later redaction.
pub(crate) fn excerpt(body: &[u8], secrets: &[Secret]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_SCANNED_BYTES)]);
    let redactor = Redactor::with_min_bytes(secrets.iter().map(Secret::credential), MIN_CREDENTIAL_BYTES);
    let text = redactor.field(&text);
    let mut words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let is_cut = body.len() > MAX_SCANNED_BYTES;
    if is_cut && !text.ends_with(char::is_whitespace) {
        words.pop();
    }
    let line = first_words(&words.join(" "), MAX_EXCERPT_CHARS);
    if is_cut && !line.ends_with('…') { format!("{line} …").trim_start().to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Call, HttpError, MAX_EXCERPT_CHARS, MAX_SCANNED_BYTES, excerpt, seconds};
    use crate::secret::Secret;

    fn check(body: &str, expect: &str) {
        assert_eq!(excerpt(body.as_bytes(), &[Secret::new("Basic c2VjcmV0")]), expect);
    }

    #[test]
    fn an_excerpt_is_one_line_without_control_characters() {
        check("<h1>\r\n  not\tfound\u{1b}[0m</h1>\n", "<h1> not found [0m</h1>");
    }

    #[test]
    fn times_are_in_seconds_unless_they_are_short() {
        assert_eq!(seconds(Duration::from_millis(999)), "999 ms");
        assert_eq!(seconds(Duration::from_secs(1)), "1 s");
        assert_eq!(seconds(Duration::from_millis(60_900)), "60 s");
    }

    #[test]
    fn an_error_is_one_line_that_ends_with_the_cause() {
        let call = || Call { method: reqwest::Method::GET, url: "http://h/x".to_owned() };
        let refused =
            HttpError::Connect { call: call(), transient: true, cause: "connection refused".to_owned() };
        assert_eq!(refused.to_string(), "`GET http://h/x`: connection refused");
        let deadline = HttpError::Deadline {
            call: call(),
            deadline: Duration::from_mins(1),
            last: Some(Box::new(refused)),
        };
        assert_eq!(
            deadline.to_string(),
            "`GET http://h/x`: gave up after 60 s (last attempt: connection refused)"
        );
        let status = reqwest::StatusCode::SERVICE_UNAVAILABLE;
        let status = HttpError::Status { call: call(), status, retry_after: None, excerpt: String::new() };
        assert_eq!(status.to_string(), "`GET http://h/x`: HTTP 503 Service Unavailable");
    }

    #[test]
    fn a_body_can_be_left_out() {
        let call = || Call { method: reqwest::Method::GET, url: "http://h/x".to_owned() };
        let status = reqwest::StatusCode::SERVICE_UNAVAILABLE;
        let status =
            HttpError::Status { call: call(), status, retry_after: None, excerpt: "s3cret".to_owned() };
        assert_eq!(status.to_string(), "`GET http://h/x`: HTTP 503 Service Unavailable: s3cret");
        assert_eq!(status.without_body(), "`GET http://h/x`: HTTP 503 Service Unavailable");
        let deadline = Duration::from_millis(500);
        let deadline = HttpError::Deadline { call: call(), deadline, last: Some(Box::new(status)) };
        let expect = "`GET http://h/x`: gave up after 500 ms (last attempt: HTTP 503 Service Unavailable)";
        assert_eq!(deadline.without_body(), expect);
        let body = HttpError::BodyTooLarge { call: call(), limit: 7 };
        assert_eq!(body.without_body(), "`GET http://h/x`: the response has more than 7 bytes");
    }

    #[test]
    fn an_excerpt_is_cut() {
        let words = "ä ".repeat(MAX_EXCERPT_CHARS);
        check(&words, &format!("{}ä …", "ä ".repeat(MAX_EXCERPT_CHARS / 2)));
        // A secret of the caller must not be truncated, because it is redacted later.
        let word = "x".repeat(50);
        check(&format!("{}{word} end", "a ".repeat(95)), &format!("{}{word} …", "a ".repeat(95)));
        // The part that was not scanned may begin with the rest of a word.
        check(&format!("{}{word}", " ".repeat(MAX_SCANNED_BYTES - 10)), "…");
        check(&format!("a {}b", " ".repeat(MAX_SCANNED_BYTES)), "a …");
    }

    #[test]
    fn a_body_that_echoes_a_secret_is_redacted() {
        check("bad header `Basic c2VjcmV0`", "[redacted]");
        check(&format!("{}c2VjcmV0", "a ".repeat(95)), "[redacted]");
        check("bad header `Basic`", "bad header `Basic`");
    }
}
