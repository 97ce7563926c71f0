//! Errors of the blob store.
//!
//! **Invariant:** an error contains keys and error codes of the store, never content and never a credential.

use std::io;

use qontract_client_http::GuardRefusal;
use qontract_files::locked_folder::FileError;

use crate::blob::BlobKey;

/// An error of a read or write.
#[derive(Debug, thiserror::Error)]
pub enum BlobsError {
    /// The key is not valid.
    #[error("`{key}` is not a valid blob key: {why}")]
    Key {
        /// The key.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// The metadata is not valid.
    #[error(
        "blob `{key}` cannot have the metadata `{name}`: names consist of a-z, 0-9, `-` and `_`, values of printable ASCII"
    )]
    Metadata {
        /// The blob.
        key: BlobKey,
        /// The name of the invalid metadata.
        name: String,
    },
    /// The precondition is not met: the blob was changed concurrently.
    #[error("the precondition on blob `{key}` failed: the blob was changed concurrently")]
    Stale {
        /// The blob.
        key: BlobKey,
    },
    /// A blob that should exist does not exist.
    #[error("blob `{0}` not found")]
    NotFound(BlobKey),
    /// The content of the blob is not valid.
    #[error("blob `{key}` is malformed: {why}")]
    Malformed {
        /// The blob.
        key: String,
        /// The reason.
        why: &'static str,
    },
    /// The guard refused the request.
    #[error(transparent)]
    Refused(#[from] GuardRefusal),
    /// The store denied access.
    #[error("{what} failed: access denied ({reason})")]
    Denied {
        /// The operation.
        what: String,
        /// Status and error code of the store.
        reason: String,
    },
    /// The bucket does not exist.
    #[error("bucket `{0}` not found")]
    NoBucket(String),
    /// The store sent no response, or a response that is not about the blob.
    #[error("{what} failed: {reason}")]
    Unreachable {
        /// The operation.
        what: String,
        /// Status and error code of the store, or the cause of the connection failure.
        reason: String,
        /// Whether a retry may help.
        transient: bool,
    },
    /// The blob is too large.
    #[error("blob `{key}` has more than {limit} bytes")]
    TooLarge {
        /// The blob.
        key: BlobKey,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// A file operation of the directory store failed.
    #[error("cannot {what}")]
    File {
        /// The operation.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The store does not support the operation.
    #[error("{0}")]
    Unsupported(String),
}

impl BlobsError {
    /// Whether a retry of the same call may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { transient, .. } => *transient,
            Self::Key { .. }
            | Self::Metadata { .. }
            | Self::Stale { .. }
            | Self::NotFound(_)
            | Self::Malformed { .. }
            | Self::Refused(_)
            | Self::Denied { .. }
            | Self::NoBucket(_)
            | Self::TooLarge { .. }
            | Self::File { .. }
            | Self::Unsupported(_) => false,
        }
    }
}

impl From<FileError> for BlobsError {
    fn from(FileError { what, source }: FileError) -> Self {
        Self::File { what, source }
    }
}
