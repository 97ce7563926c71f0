//! The responses of the JSON protocol. Pure.

use std::collections::BTreeMap;

use qontract_client_http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::message::{MessageCounts, MessageId, ReceiptHandle, ReceivedMessage};

/// Parses a response, which must be an object. This is checked because the library would also accept a list
/// of the fields.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let object: Map<String, Value> = serde_json::from_slice(body).ok()?;
    serde_json::from_value(Value::Object(object)).ok()
}

/// The response to `GetQueueUrl`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct QueueUrl {
    pub queue_url: String,
}

/// The response to `GetQueueAttributes`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Attributes {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

impl Attributes {
    /// The numbers of messages; `None` if one of them is missing.
    pub fn counts(&self) -> Option<MessageCounts> {
        let number = |name: &str| self.attributes.get(name)?.parse().ok();
        Some(MessageCounts {
            visible: number("ApproximateNumberOfMessages")?,
            hidden: number("ApproximateNumberOfMessagesNotVisible")?,
        })
    }
}

/// The response to `SendMessage`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SendResponse {
    pub message_id: String,
}

/// The response to `ReceiveMessage`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiveResponse {
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    #[serde(rename = "MessageId")]
    id: String,
    receipt_handle: String,
    body: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

impl ReceiveResponse {
    /// The messages; `None` if there are more than `max` messages, or if a message has no receive count.
    pub fn messages(self, max: usize) -> Option<Vec<ReceivedMessage>> {
        if self.messages.len() > max {
            return None;
        }
        self.messages.into_iter().map(Message::into_received).collect()
    }
}

impl Message {
    fn into_received(mut self) -> Option<ReceivedMessage> {
        Some(ReceivedMessage {
            id: MessageId(self.id),
            receipt: ReceiptHandle(self.receipt_handle),
            body: self.body,
            receive_count: self.attributes.get("ApproximateReceiveCount")?.parse().ok()?,
            group: self.attributes.remove("MessageGroupId"),
        })
    }
}

/// The response to an action without a result.
#[derive(Deserialize)]
pub(super) struct EmptyResponse {}

/// An error response.
#[derive(Deserialize)]
struct ApiError {
    #[serde(rename = "__type", default)]
    code: String,
}

/// The error code of a response; empty if the response has no code. Only letters, digits and dots are kept,
/// because the rest of an error may echo the request.
pub(super) fn error_code(body: &[u8]) -> String {
    let Some(ApiError { code }) = parse(body) else { return String::new() };
    let code = code.rsplit('#').next().unwrap_or_default();
    code.chars().filter(|one| one.is_ascii_alphanumeric() || *one == '.').take(60).collect()
}

/// The meaning of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorKind {
    NoQueue,
    StaleReceipt,
    Denied,
    Transient,
    Other,
}

impl ErrorKind {
    /// The meaning of a status and an error code.
    pub fn of(status: StatusCode, code: &str) -> Self {
        match code {
            "QueueDoesNotExist" | "AWS.SimpleQueueService.NonExistentQueue" => Self::NoQueue,
            "ReceiptHandleIsInvalid" | "MessageNotInflight" | "AWS.SimpleQueueService.MessageNotInflight" => {
                Self::StaleReceipt
            }
            "AccessDenied"
            | "AccessDeniedException"
            | "AuthFailure"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "IncompleteSignature"
            | "InvalidClientTokenId"
            | "InvalidSecurity"
            | "MissingAuthenticationToken"
            | "NotAuthorized"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClientException" => Self::Denied,
            "RequestThrottled"
            | "Throttling"
            | "ThrottlingException"
            | "ServiceUnavailable"
            | "KmsThrottled" => Self::Transient,
            _ if status == StatusCode::FORBIDDEN => Self::Denied,
            _ if status.is_server_error() => Self::Transient,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_their_code_and_status() {
        let check = |status: u16, body: &str, code: &str, expect: ErrorKind| {
            assert_eq!(error_code(body.as_bytes()), code);
            assert_eq!(ErrorKind::of(StatusCode::from_u16(status).unwrap(), code), expect, "{body}");
        };
        let no_queue = r#"{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "x"}"#;
        check(400, no_queue, "QueueDoesNotExist", ErrorKind::NoQueue);
        check(
            400,
            r#"{"__type": "ReceiptHandleIsInvalid"}"#,
            "ReceiptHandleIsInvalid",
            ErrorKind::StaleReceipt,
        );
        check(400, r#"{"__type": "AccessDeniedException"}"#, "AccessDeniedException", ErrorKind::Denied);
        check(403, "<html>", "", ErrorKind::Denied);
        check(400, r#"{"__type": "a#RequestThrottled"}"#, "RequestThrottled", ErrorKind::Transient);
        check(500, "{}", "", ErrorKind::Transient);
        check(400, r#"{"__type": "Invalid\u001b[0m c4nary"}"#, "Invalid0mc4nary", ErrorKind::Other);
    }

    #[test]
    fn counts_are_numbers() {
        let check = |text: &str, expect: Option<(u64, u64)>| {
            let answer: Attributes = serde_json::from_str(text).unwrap();
            assert_eq!(answer.counts().map(|counts| (counts.visible, counts.hidden)), expect, "{text}");
        };
        let both = r#"{"Attributes": {"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "1"}}"#;
        check(both, Some((3, 1)));
        check(r#"{"Attributes": {"ApproximateNumberOfMessages": "3"}}"#, None);
        check("{}", None);
    }

    #[test]
    fn a_response_has_at_most_the_requested_messages() {
        let message = r#"{"MessageId": "1", "ReceiptHandle": "r", "Body": "b", "Attributes": {"ApproximateReceiveCount": "2"}}"#;
        let check = |text: &str, expect: Option<usize>| {
            let answer: ReceiveResponse = serde_json::from_str(text).unwrap();
            assert_eq!(answer.messages(1).map(|messages| messages.len()), expect, "{text}");
        };
        check("{}", Some(0));
        check(&format!(r#"{{"Messages": [{message}]}}"#), Some(1));
        check(&format!(r#"{{"Messages": [{message}, {message}]}}"#), None);
        check(r#"{"Messages": [{"MessageId": "1", "ReceiptHandle": "r", "Body": "b"}]}"#, None);
    }
}
