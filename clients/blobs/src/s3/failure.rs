//! Classifies errors of the AWS SDK.
//!
//! **Invariant:** an error contains only the status, the error code of the store or the connection failure,
//! because other parts may echo the request.

use std::error::Error;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use qontract_client_http::{GuardRefusal, cause};

use super::limit::{MAX_ANSWER_BYTES, MAX_ERROR_BYTES, is_too_large};
use crate::error::BlobsError;

/// A classified error.
#[derive(Debug)]
pub(super) enum S3Failure {
    /// The guard refused the request.
    Refused(GuardRefusal),
    /// The store responded with an error.
    Answer {
        /// The status.
        status: u16,
        /// The error code of the store, or empty.
        code: String,
    },
    /// The response body is larger than its limit.
    TooLarge {
        /// The status.
        status: u16,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// There was no response.
    NoAnswer {
        /// The cause.
        what: String,
        /// Whether a retry may help.
        transient: bool,
    },
}

impl S3Failure {
    /// Classifies an error of the SDK.
    pub fn classify<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        if let Some(refusal) = refusal(error) {
            return Self::Refused(refusal);
        }
        let code = error.code().unwrap_or_default().to_owned();
        if let Some(answer) = error.raw_response() {
            if is_too_large(error) {
                let status = answer.status();
                let limit = if status.is_success() { MAX_ANSWER_BYTES } else { MAX_ERROR_BYTES };
                return Self::TooLarge { status: status.as_u16(), limit };
            }
            return Self::Answer { status: answer.status().as_u16(), code };
        }
        let (what, transient) = match error {
            SdkError::TimeoutError(_) => ("timed out", true),
            SdkError::DispatchFailure(failure) if failure.is_timeout() => ("timed out", true),
            SdkError::DispatchFailure(failure) if failure.is_io() => {
                let source = failure.as_connector_error().and_then(|error| error.source());
                let what =
                    source.map_or_else(|| "no connection".to_owned(), |error| cause(error, "of the store"));
                return Self::NoAnswer { what, transient: true };
            }
            SdkError::DispatchFailure(_) => {
                ("the request could not be sent, or no credentials were found", false)
            }
            SdkError::ConstructionFailure(_) => ("the request could not be built", false),
            _ => ("the response is not valid for S3", false),
        };
        Self::NoAnswer { what: what.to_owned(), transient }
    }

    /// Whether the blob does not exist. A 404 without an error code, as for `HEAD`, refers to the blob.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Answer { status: 404, code } if code != "NoSuchBucket")
    }

    /// Whether the store reports that it changed nothing, and a retry may succeed.
    pub fn is_safe_to_retry(&self) -> bool {
        match self {
            Self::Answer { status, code } => {
                [429, 503].contains(status) || (*status == 409 && code == "ConditionalRequestConflict")
            }
            Self::Refused(_) | Self::TooLarge { .. } | Self::NoAnswer { .. } => false,
        }
    }

    /// Converts the failure of an operation to an error.
    pub fn into_error(self, bucket: &str, what: String) -> BlobsError {
        match self {
            Self::Refused(refusal) => BlobsError::Refused(refusal),
            Self::Answer { status: 404, code } if code == "NoSuchBucket" => {
                BlobsError::NoBucket(bucket.to_owned())
            }
            Self::Answer { status: status @ (401 | 403), code } => {
                BlobsError::Denied { what, reason: describe_status(status, &code) }
            }
            Self::Answer { status, code } => {
                let transient = status == 429 || status >= 500;
                BlobsError::Unreachable { what, reason: describe_status(status, &code), transient }
            }
            Self::TooLarge { status, limit } => {
                let reason = format!("{status}, with a body of more than {limit} bytes");
                BlobsError::Unreachable { what, reason, transient: status >= 500 }
            }
            Self::NoAnswer { what: reason, transient } => BlobsError::Unreachable { what, reason, transient },
        }
    }
}

/// Whether the request failed because its precondition is not met.
pub(super) fn is_conflict(failure: &S3Failure) -> bool {
    matches!(failure, S3Failure::Answer { status: 412, .. })
}

fn describe_status(status: u16, code: &str) -> String {
    let code: String = code.chars().filter(char::is_ascii_alphanumeric).take(60).collect();
    format!("{status} {code}").trim_end().to_owned()
}

/// The refusal of the guard in the error chain.
fn refusal(error: &(dyn Error + 'static)) -> Option<GuardRefusal> {
    let mut chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.find_map(|error| error.downcast_ref::<GuardRefusal>().cloned())
}
