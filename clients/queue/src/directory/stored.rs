//! The files of a queue in a directory. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::message::{MessageId, NewMessage, ReceiptHandle, ReceivedMessage};

/// The time for which a deduplication ID is remembered.
const DEDUPLICATION_WINDOW: Duration = Duration::from_mins(5);
/// Number of digits of a position, so that file names are sorted by position.
const DIGITS: usize = 20;
const SUFFIX: &str = ".json";

/// The file name of the message at a position.
pub fn file_name(position: u64) -> String {
    format!("{position:0DIGITS$}{SUFFIX}")
}

/// The position of a message with this file name.
pub fn position(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(SUFFIX)?;
    let is_position = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_position)
}

/// The ID of the message at a position.
pub fn id(position: u64) -> MessageId {
    MessageId(position.to_string())
}

/// The position in a receipt handle.
pub fn receipt_position(receipt: &ReceiptHandle) -> Option<u64> {
    receipt.0.split_once('.')?.0.parse().ok()
}

/// Milliseconds since 1970; zero for times before.
fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a message that was sent at `sent` is within the deduplication window. A message with a time in the
/// future, which was sent before the clock was set back, is also within the window.
fn is_recent(sent: u64, now: SystemTime) -> bool {
    Duration::from_millis(milliseconds(now).saturating_sub(sent)) < DEDUPLICATION_WINDOW
}

/// A message on disk. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredMessage {
    body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deduplication: Option<String>,
    sent: u64,
    /// The end of the time for which the message is hidden.
    #[serde(default)]
    hidden_until: u64,
    #[serde(default)]
    receive_count: u32,
    /// The time of the last receipt, which makes its receipt handle unique.
    #[serde(default)]
    received: u64,
}

impl StoredMessage {
    /// A message that was not received yet.
    pub fn new(message: &NewMessage, now: SystemTime) -> Self {
        Self {
            body: message.body().to_owned(),
            group: message.order().map(|order| order.group.clone()),
            deduplication: message.order().map(|order| order.deduplication.clone()),
            sent: milliseconds(now),
            hidden_until: 0,
            receive_count: 0,
            received: 0,
        }
    }

    /// Whether the message can be received.
    pub fn is_visible(&self, now: SystemTime) -> bool {
        self.hidden_until <= milliseconds(now)
    }

    /// The group, in a FIFO queue.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Whether a new message with this deduplication ID is a duplicate of this message.
    pub fn is_duplicate(&self, deduplication: &str, now: SystemTime) -> bool {
        self.deduplication.as_deref() == Some(deduplication) && is_recent(self.sent, now)
    }

    /// The message after a receipt.
    pub fn received(mut self, now: SystemTime, hidden_for: Duration) -> Self {
        self.receive_count = self.receive_count.saturating_add(1);
        self.received = milliseconds(now);
        self.hidden_until(now, hidden_for)
    }

    /// The message with a new visibility timeout.
    pub fn hidden_until(mut self, now: SystemTime, hidden_for: Duration) -> Self {
        let hidden_for = u64::try_from(hidden_for.as_millis()).unwrap_or(u64::MAX);
        self.hidden_until = milliseconds(now).saturating_add(hidden_for);
        self
    }

    /// Whether the handle is that of the last receipt of the message.
    pub fn has_receipt(&self, position: u64, receipt: &ReceiptHandle) -> bool {
        self.receive_count > 0 && *receipt == self.receipt(position)
    }

    fn receipt(&self, position: u64) -> ReceiptHandle {
        ReceiptHandle(format!("{position}.{}.{}", self.receive_count, self.received))
    }

    /// Converts the message for its consumer.
    pub fn into_received(self, position: u64) -> ReceivedMessage {
        ReceivedMessage {
            id: id(position),
            receipt: self.receipt(position),
            body: self.body,
            receive_count: self.receive_count,
            group: self.group,
        }
    }
}

/// The facts about deleted messages that a queue needs later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueHistory {
    /// The position after that of the last deleted message.
    next: u64,
    /// The deleted messages by deduplication ID.
    #[serde(default)]
    deduplications: BTreeMap<String, DeletedMessage>,
}

/// A deleted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DeletedMessage {
    position: u64,
    sent: u64,
}

impl QueueHistory {
    /// The position of a message after `last`, which no other message ever had.
    pub fn next_position(&self, last: Option<u64>) -> u64 {
        self.next.max(last.map_or(1, |last| last.saturating_add(1))).max(1)
    }

    /// The position of the deleted message with this deduplication ID, if it was sent within the window.
    pub fn find(&self, deduplication: &str, now: SystemTime) -> Option<u64> {
        let deleted = self.deduplications.get(deduplication).filter(|deleted| is_recent(deleted.sent, now));
        deleted.map(|deleted| deleted.position)
    }

    /// The history after a message was deleted, without messages that are no longer relevant.
    pub fn with_deleted(mut self, position: u64, message: &StoredMessage, now: SystemTime) -> Self {
        self.next = self.next.max(position.saturating_add(1));
        self.deduplications.retain(|_, deleted| is_recent(deleted.sent, now));
        if let Some(deduplication) = &message.deduplication {
            self.deduplications
                .insert(deduplication.clone(), DeletedMessage { position, sent: message.sent });
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip() {
        for number in [1, 10, u64::MAX] {
            assert_eq!(position(&file_name(number)), Some(number));
        }
        for name in [".lock", ".draft", "1.json", "00000000000000000001.txt", "0000000000000000000x.json"] {
            assert_eq!(position(name), None, "{name}");
        }
    }

    #[test]
    fn a_duplicate_is_recognized_for_five_minutes_also_after_it_was_deleted() {
        let now = UNIX_EPOCH + Duration::from_hours(500_000);
        let new = NewMessage::new("a").unwrap().in_group("g", Some("d")).unwrap();
        let message = StoredMessage::new(&new, now);
        let history = QueueHistory::default().with_deleted(7, &message, now);
        assert_eq!(history.next_position(None), 8);
        let minute = Duration::from_mins(1);
        for (at, expect) in
            [(now, true), (now - minute, true), (now + 4 * minute, true), (now + 5 * minute, false)]
        {
            assert_eq!(message.is_duplicate("d", at), expect);
            assert_eq!(history.find("d", at), expect.then_some(7));
        }
        assert!(!message.is_duplicate("other", now));
        let pruned = history.with_deleted(
            9,
            &StoredMessage::new(&NewMessage::new("b").unwrap(), now),
            now + 6 * minute,
        );
        assert_eq!(pruned, QueueHistory { next: 10, deduplications: BTreeMap::new() });
    }
}
