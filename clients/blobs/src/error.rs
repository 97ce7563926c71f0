//! What can go wrong with blobs.
//!
//! **Invariant:** an error tells keys and what a store said in code words, never bytes and never a credential.

use std::io;

use qontract_client_http::Refusal;

use crate::blob::Key;

/// Why there is no blob, or why it was not written.
#[derive(Debug, thiserror::Error)]
pub enum BlobsError {
    /// The key cannot be used.
    #[error("`{key}` is no key of a blob: {why}")]
    Key {
        /// The text.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What is to be kept beside the bytes is not plain.
    #[error(
        "blob `{key}` cannot have `{name}` beside it: names are of a-z, 0-9, `-` and `_`, texts of printable ASCII"
    )]
    Metadata {
        /// Which blob.
        key: Key,
        /// The name of what is wrong.
        name: String,
    },
    /// The precondition does not hold: somebody else was faster.
    #[error("blob `{key}` is not as it was expected to be")]
    Stale {
        /// Which blob.
        key: Key,
    },
    /// It is not there, and should be.
    #[error("there is no blob `{0}`")]
    NotFound(Key),
    /// It is there, and is not what it should be.
    #[error("blob `{key}` is malformed: {why}")]
    Malformed {
        /// Which blob.
        key: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The guard does not let it through.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store does not let us.
    #[error("{what} is denied to us ({said})")]
    Denied {
        /// What was tried.
        what: String,
        /// The code words of the store.
        said: String,
    },
    /// The store has no such bucket.
    #[error("there is no bucket `{0}`")]
    NoBucket(String),
    /// No answer, or none that tells anything about the blob.
    #[error("{what} failed: {said}")]
    Unreachable {
        /// What was tried.
        what: String,
        /// The code words of the store, or what happened on the way.
        said: String,
        /// Whether another try may help.
        transient: bool,
    },
    /// It is larger than allowed.
    #[error("blob `{key}` has more than {limit} bytes")]
    TooLarge {
        /// Which blob.
        key: Key,
        /// How many bytes it may have.
        limit: u64,
    },
    /// A file in place of the store.
    #[error("cannot {what}")]
    File {
        /// What was tried.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// This store cannot do it.
    #[error("{0}")]
    Unsupported(String),
}

impl BlobsError {
    /// Whether the same call may well succeed later, with nobody having changed its input.
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
