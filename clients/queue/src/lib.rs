//! Message queue client with a Read half and a Write half, without policy. Works with SQS, or with a
//! directory that replaces a queue.
//!
//! Delivery is at least once: a message that was received stays hidden for a while, and is delivered again
//! unless it is deleted. Receiving a message is a write, because it hides the message from other consumers.
//!
//! **Invariant:** a failed call is never treated as an empty queue. No message is lost in a crash, because a
//! message is removed only by [`QueueWriter::delete`].
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use qontract_access::WritePermit;
//! use qontract_client_queue::{Queue, QueueError, ReceiveOptions};
//!
//! /// Handles one message; a failure leaves it in the queue.
//! async fn consume(permit: &WritePermit, queue: &dyn Queue, now: SystemTime) -> Result<(), QueueError> {
//!     let options = ReceiveOptions::new(1, Duration::from_secs(30))?;
//!     for message in queue.receive(permit, options, now).await? {
//!         if message.body.starts_with('{') {
//!             queue.delete(permit, &message.receipt, now).await?;
//!         }
//!     }
//!     Ok(())
//! }
//! ```

mod directory;
mod error;
mod message;
mod sqs;

use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use directory::QueueDirectory;
pub use error::QueueError;
pub use message::{
    MAX_MESSAGE_BYTES, MessageCounts, MessageId, MessageOrder, NewMessage, QueueName, ReceiptHandle,
    ReceiveOptions, ReceivedMessage,
};
pub use sqs::{QueueAddress, Sqs, SqsCredentials, SqsLocation, SqsLocationError, SqsSettings};

/// The Read half. `now` is the current time.
pub trait QueueReader: Send + Sync {
    /// The approximate number of messages in the queue.
    fn counts<'a>(
        &'a self,
        permit: &'a ReadPermit,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageCounts, QueueError>>;
}

/// The Write half. `now` is the current time. SQS requests are signed with this time, and a signature is
/// valid for a few minutes. A directory compares this time with the visibility of messages.
pub trait QueueWriter: Send + Sync {
    /// Appends a message. In a FIFO queue, a message that was sent with the same deduplication ID within five
    /// minutes is not sent again.
    fn send<'a>(
        &'a self,
        permit: &'a WritePermit,
        message: &'a NewMessage,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageId, QueueError>>;

    /// Receives messages, and hides them from other consumers. SQS may return fewer messages than the queue
    /// contains.
    fn receive<'a>(
        &'a self,
        permit: &'a WritePermit,
        options: ReceiveOptions,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Vec<ReceivedMessage>, QueueError>>;

    /// Deletes a received message. Deleting a deleted message succeeds.
    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>>;

    /// Hides a received message until `hidden_for` has passed. Zero returns it to the queue.
    fn change_visibility<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        hidden_for: Duration,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>>;
}

/// A client with both halves.
pub trait Queue: QueueReader + QueueWriter {}

impl<T: QueueReader + QueueWriter> Queue for T {}
