//! Errors of a queue.
//!
//! **Invariant:** an error contains names and error codes of the queue, never a message body, a receipt handle or a
//! credential.

use std::io;

use qontract_client_http::GuardRefusal;
use qontract_files::locked_folder::FileError;

/// An error of a read or write.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The name is not the name of a queue.
    #[error("`{0}` is not a queue name: 1 to 80 letters, digits, `-` and `_`, and `.fifo` at the end")]
    Name(String),
    /// The message cannot be sent.
    #[error("the message cannot be sent: {0}")]
    Message(&'static str),
    /// The options of a call are out of range.
    #[error("{0}")]
    Options(&'static str),
    /// The queue does not exist.
    #[error("queue `{0}` not found")]
    NoQueue(String),
    /// The receipt handle is no longer valid: the message was deleted, or received again.
    #[error("the message of queue `{0}` was deleted, or received by another consumer")]
    StaleReceipt(String),
    /// The queue has too many messages.
    #[error("queue `{queue}` has {limit} messages: delete some of them")]
    Full {
        /// The queue.
        queue: String,
        /// The maximum number of messages.
        limit: usize,
    },
    /// A stored message, or the response of the queue, is not valid.
    #[error("{what} is malformed: {why}")]
    Malformed {
        /// The file or response.
        what: String,
        /// The reason.
        why: &'static str,
    },
    /// The guard refused the request.
    #[error(transparent)]
    Refused(#[from] GuardRefusal),
    /// The queue denied access.
    #[error("{what} failed: access denied ({reason})")]
    Denied {
        /// The operation.
        what: String,
        /// Status and error code.
        reason: String,
    },
    /// The queue sent no response, or an error response.
    #[error("{what} failed: {reason}")]
    Unreachable {
        /// The operation.
        what: String,
        /// Status and error code, or the cause of the connection failure.
        reason: String,
        /// Whether a retry may help.
        transient: bool,
    },
    /// A file operation of a directory failed.
    #[error("cannot {what}")]
    File {
        /// The operation.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The client does not support the operation.
    #[error("{0}")]
    Unsupported(String),
}

impl QueueError {
    /// Whether a retry of the same call may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { transient, .. } => *transient,
            Self::Name(_)
            | Self::Message(_)
            | Self::Options(_)
            | Self::NoQueue(_)
            | Self::StaleReceipt(_)
            | Self::Full { .. }
            | Self::Malformed { .. }
            | Self::Refused(_)
            | Self::Denied { .. }
            | Self::File { .. }
            | Self::Unsupported(_) => false,
        }
    }
}

impl From<FileError> for QueueError {
    fn from(FileError { what, source }: FileError) -> Self {
        Self::File { what, source }
    }
}
