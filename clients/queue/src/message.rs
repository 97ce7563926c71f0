//! Messages, queue names and options, within the limits of SQS. Pure.

use std::fmt;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::error::QueueError;

/// Maximum size of a message body, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// Maximum number of messages that one call receives.
const MAX_BATCH: u8 = 10;
/// Maximum time that a message is hidden.
const MAX_HIDDEN: Duration = Duration::from_hours(12);
/// Maximum length of a queue name.
const MAX_NAME_LEN: usize = 80;
/// Maximum length of a group or deduplication ID.
const MAX_ID_LEN: usize = 128;
/// The suffix of the names of FIFO queues.
const FIFO_SUFFIX: &str = ".fifo";

/// The name of a queue. The name of a FIFO queue ends in `.fifo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName(String);

impl QueueName {
    /// A name of 1 to 80 letters, digits, `-` and `_`; the name of a FIFO queue ends in `.fifo`.
    pub fn new(text: impl Into<String>) -> Result<Self, QueueError> {
        let text = text.into();
        let stem = text.strip_suffix(FIFO_SUFFIX).unwrap_or(&text);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if stem.is_empty() || text.len() > MAX_NAME_LEN || !stem.bytes().all(is_name) {
            return Err(QueueError::Name(text));
        }
        Ok(Self(text))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the FIFO queue that corresponds to this name.
    #[must_use]
    pub fn into_fifo(self) -> Self {
        if self.is_fifo() { self } else { Self(format!("{}{FIFO_SUFFIX}", self.0)) }
    }

    /// Whether the messages of a group are delivered in the order in which they were sent.
    pub fn is_fifo(&self) -> bool {
        self.0.ends_with(FIFO_SUFFIX)
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message to send.
#[derive(Clone, PartialEq, Eq)]
pub struct NewMessage {
    body: String,
    order: Option<MessageOrder>,
}

/// The order of a message in a FIFO queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageOrder {
    /// The messages of a group are delivered in order.
    pub group: String,
    /// A message with the ID of a message of the last five minutes is not sent again.
    pub deduplication: String,
}

impl NewMessage {
    /// A message for a queue without order. The body has 1 byte to 256 KiB, and no characters that XML forbids.
    pub fn new(body: impl Into<String>) -> Result<Self, QueueError> {
        let body = body.into();
        if body.is_empty() {
            return Err(QueueError::Message("its body is empty"));
        }
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(QueueError::Message("its body has more than 262144 bytes"));
        }
        if !body.chars().all(is_allowed) {
            return Err(QueueError::Message("its body contains a control character"));
        }
        Ok(Self { body, order: None })
    }

    /// The message for a FIFO queue. Without a deduplication ID, the digest of the body is used.
    pub fn in_group(mut self, group: &str, deduplication: Option<&str>) -> Result<Self, QueueError> {
        let deduplication = deduplication.map_or_else(|| digest(&self.body), str::to_owned);
        let is_id = |text: &str| {
            (1..=MAX_ID_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !is_id(group) || !is_id(&deduplication) {
            let why = "its group and deduplication IDs must have 1 to 128 printable ASCII characters";
            return Err(QueueError::Message(why));
        }
        self.order = Some(MessageOrder { group: group.to_owned(), deduplication });
        Ok(self)
    }

    /// The body.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The group and the deduplication ID, for a FIFO queue.
    pub fn order(&self) -> Option<&MessageOrder> {
        self.order.as_ref()
    }

    /// Fails if a message for a FIFO queue has no order, or if a message for another queue has an order.
    pub(crate) fn check(&self, queue: &QueueName) -> Result<(), QueueError> {
        match (queue.is_fifo(), self.order.is_some()) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(QueueError::Message("a FIFO queue needs a group")),
            (false, true) => Err(QueueError::Message("only FIFO queues have groups")),
        }
    }
}

impl fmt::Debug for NewMessage {
    /// Omits the body, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMessage").field("order", &self.order).finish_non_exhaustive()
    }
}

/// Whether a body may contain this character: only characters of XML 1.0 are allowed.
fn is_allowed(one: char) -> bool {
    matches!(one, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// The SHA-256 of a body, which AWS uses for deduplication by content.
fn digest(body: &str) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(body) {
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
    }
    text
}

/// Identifies a message in its queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId(pub String);

/// Identifies one receipt of a message, in order to delete it.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceiptHandle(pub String);

impl fmt::Debug for ReceiptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptHandle(…)")
    }
}

/// A message that was received.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Identifies the message.
    pub id: MessageId,
    /// Identifies this receipt.
    pub receipt: ReceiptHandle,
    /// The body.
    pub body: String,
    /// The number of times that the message was received, including this time.
    pub receive_count: u32,
    /// The group, in a FIFO queue.
    pub group: Option<String>,
}

impl fmt::Debug for ReceivedMessage {
    /// Omits the body, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedMessage")
            .field("id", &self.id)
            .field("receive_count", &self.receive_count)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// The number of messages to receive, and the time for which these messages are hidden from other consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveOptions {
    max: u8,
    hidden_for: Duration,
}

impl ReceiveOptions {
    /// Options to receive at most `max` messages, from 1 to 10, which are hidden for whole seconds and at
    /// most 12 hours.
    pub fn new(max: u8, hidden_for: Duration) -> Result<Self, QueueError> {
        if !(1..=MAX_BATCH).contains(&max) {
            return Err(QueueError::Options("a call receives 1 to 10 messages"));
        }
        check_hidden(hidden_for)?;
        Ok(Self { max, hidden_for })
    }

    /// The maximum number of messages.
    pub fn max(self) -> usize {
        usize::from(self.max)
    }

    /// The time for which the messages are hidden.
    pub fn hidden_for(self) -> Duration {
        self.hidden_for
    }
}

/// Fails unless a message can be hidden for this time.
pub(crate) fn check_hidden(hidden_for: Duration) -> Result<(), QueueError> {
    if hidden_for > MAX_HIDDEN || hidden_for.subsec_nanos() != 0 {
        return Err(QueueError::Options("a message is hidden for whole seconds, at most 12 hours"));
    }
    Ok(())
}

/// The approximate number of messages in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages that can be received.
    pub visible: u64,
    /// Messages that were received and are hidden.
    pub hidden: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_queue() {
        let longest = "x".repeat(80);
        for (name, is_name, is_fifo) in [
            ("app-interface_1", true, false),
            ("orders.fifo", true, true),
            (longest.as_str(), true, false),
            ("", false, false),
            (".fifo", false, false),
            ("a.b", false, false),
            ("..", false, false),
            ("a/b", false, false),
            ("a.fifo.fifo", false, false),
            ("ä", false, false),
            (&format!("{longest}x"), false, false),
        ] {
            let parsed = QueueName::new(name);
            assert_eq!(parsed.is_ok(), is_name, "{name}");
            assert_eq!(parsed.is_ok_and(|name| name.is_fifo()), is_fifo, "{name}");
        }
    }

    #[test]
    fn a_body_is_within_the_limits_of_sqs() {
        let check = |body: &str, expect: bool| assert_eq!(NewMessage::new(body).is_ok(), expect);
        check("{\"pr_type\": \"é\u{1f600}\"}\r\n\t", true);
        check(&"x".repeat(MAX_MESSAGE_BYTES), true);
        check(&"x".repeat(MAX_MESSAGE_BYTES + 1), false);
        check("", false);
        check("a\0b", false);
        check("\u{1b}", false);
        check("\u{fffe}", false);
    }

    #[test]
    fn a_group_belongs_to_a_fifo_queue() {
        let message = || NewMessage::new("a").unwrap();
        let (fifo, plain) = (QueueName::new("q.fifo").unwrap(), QueueName::new("q").unwrap());
        message().check(&plain).unwrap();
        message().check(&fifo).unwrap_err();
        let grouped = message().in_group("g", None).unwrap();
        grouped.check(&fifo).unwrap();
        grouped.check(&plain).unwrap_err();
        let digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(grouped.order().unwrap().deduplication, digest);
        for id in ["", "a b", "é", &"x".repeat(129)] {
            message().in_group(id, Some("d")).unwrap_err();
            message().in_group("g", Some(id)).unwrap_err();
        }
    }

    #[test]
    fn options_are_within_the_limits_of_sqs() {
        let second = Duration::from_secs(1);
        for (max, hidden_for, expect) in [
            (1, Duration::ZERO, true),
            (10, MAX_HIDDEN, true),
            (0, second, false),
            (11, second, false),
            (1, MAX_HIDDEN + second, false),
            (1, Duration::from_millis(1500), false),
        ] {
            assert_eq!(ReceiveOptions::new(max, hidden_for).is_ok(), expect, "{max} {hidden_for:?}");
        }
    }

    #[test]
    fn bodies_and_receipts_are_not_printed() {
        let message = ReceivedMessage {
            id: MessageId("1".to_owned()),
            receipt: ReceiptHandle("c4nary".to_owned()),
            body: "c4nary".to_owned(),
            receive_count: 1,
            group: None,
        };
        let shown = format!("{message:?} {:?} {:?}", message.receipt, NewMessage::new("c4nary").unwrap());
        assert!(!shown.contains("c4nary"), "{shown}");
    }
}
