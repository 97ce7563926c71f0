//! What the library's failures mean.
//!
//! **Invariant:** of a failure only the status, the store's code word and what happened on the way are told: the rest may
//! hold what was sent.

use std::error::Error;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use qontract_client_http::{Refusal, cause};

use super::limit::{MAX_ANSWER_BYTES, MAX_ERROR_BYTES, is_too_large};
use crate::error::BlobsError;

/// A failure, taken apart.
#[derive(Debug)]
pub(super) enum Failure {
    /// The guard did not let it through.
    Refused(Refusal),
    /// The store answered so.
    Answer {
        /// The status.
        status: u16,
        /// The store's word for it, if it has one.
        code: String,
    },
    /// The body of the answer is larger than its limit.
    TooLarge {
        /// The status.
        status: u16,
        /// How many bytes it may have.
        limit: u64,
    },
    /// There is no answer.
    Silence {
        /// What happened.
        what: String,
        /// Whether another try may help.
        transient: bool,
    },
}

impl Failure {
    /// Takes a failure of the library apart.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
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
            SdkError::TimeoutError(_) => ("it took too long", true),
            SdkError::DispatchFailure(failure) if failure.is_timeout() => ("it took too long", true),
            SdkError::DispatchFailure(failure) if failure.is_io() => {
                let source = failure.as_connector_error().and_then(|error| error.source());
                let what =
                    source.map_or_else(|| "no connection".to_owned(), |error| cause(error, "of the store"));
                return Self::Silence { what, transient: true };
            }
            SdkError::DispatchFailure(_) => ("it could not be sent, or there are no credentials", false),
            SdkError::ConstructionFailure(_) => ("the request cannot be made", false),
            _ => ("the answer is not one of S3", false),
        };
        Self::Silence { what: what.to_owned(), transient }
    }

    /// Whether it says that the blob is not there. Without a word, as to `HEAD`, 404 is about the blob.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Answer { status: 404, code } if code != "NoSuchBucket")
    }

    /// Whether the store says that it has changed nothing, and may do so if it is asked again.
    pub fn has_done_nothing(&self) -> bool {
        match self {
            Self::Answer { status, code } => {
                [429, 503].contains(status) || (*status == 409 && code == "ConditionalRequestConflict")
            }
            Self::Refused(_) | Self::TooLarge { .. } | Self::Silence { .. } => false,
        }
    }

    /// The failure as ours.
    pub fn tell(self, bucket: &str, what: String) -> BlobsError {
        match self {
            Self::Refused(refusal) => BlobsError::Refused(refusal),
            Self::Answer { status: 404, code } if code == "NoSuchBucket" => {
                BlobsError::NoBucket(bucket.to_owned())
            }
            Self::Answer { status: status @ (401 | 403), code } => {
                BlobsError::Denied { what, said: said(status, &code) }
            }
            Self::Answer { status, code } => {
                let transient = status == 429 || status >= 500;
                BlobsError::Unreachable { what, said: said(status, &code), transient }
            }
            Self::TooLarge { status, limit } => {
                let said = format!("{status}, with a body of more than {limit} bytes");
                BlobsError::Unreachable { what, said, transient: status >= 500 }
            }
            Self::Silence { what: said, transient } => BlobsError::Unreachable { what, said, transient },
        }
    }
}

/// Whether a precondition did not hold.
pub(super) fn is_conflict(failure: &Failure) -> bool {
    matches!(failure, Failure::Answer { status: 412, .. })
}

fn said(status: u16, code: &str) -> String {
    let code: String = code.chars().filter(char::is_ascii_alphanumeric).take(60).collect();
    format!("{status} {code}").trim_end().to_owned()
}

/// The refusal of the guard among the causes.
fn refusal(error: &(dyn Error + 'static)) -> Option<Refusal> {
    let mut chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.find_map(|error| error.downcast_ref::<Refusal>().cloned())
}
