//! SQS and compatible servers. The client uses the JSON protocol and the HTTP stack of all clients.
//!
//! **Invariant:** in a dry run, only the listed read actions leave the process, regardless of the permit. A
//! write with a bounded permit is refused. Every request goes to the endpoint of the settings; a URL in a
//! response is never contacted.

mod credentials;
mod location;
mod signature;
mod wire;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{AccessPermit, ReadPermit, WritePermit};
use qontract_client_http::{Http, HttpError, ReadActions, Request, Response, SQS_READS, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::QueueError;
use crate::message::{
    MessageCounts, MessageId, NewMessage, ReceiptHandle, ReceiveOptions, ReceivedMessage, check_hidden,
};
use crate::{QueueReader, QueueWriter};
use credentials::CachedCredentials;
pub use credentials::SqsCredentials;
pub use location::{QueueAddress, SqsLocation, SqsLocationError};
use signature::sign;

/// The prefix of the actions.
const SERVICE: &str = "AmazonSQS";
/// The header that names the action.
const TARGET_HEADER: &str = "x-amz-target";
/// The media type of requests.
const MEDIA_TYPE: &str = "application/x-amz-json-1.0";
/// Maximum size of a response without messages, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Maximum size of a response with ten messages, in which every character may be escaped.
const MAX_MESSAGES_BYTES: usize = 20 << 20;

/// The settings of a queue client.
#[derive(Clone, Debug)]
pub struct SqsSettings {
    /// The queue.
    pub location: SqsLocation,
    /// The credentials.
    pub credentials: SqsCredentials,
}

/// A queue of SQS. Clones share one state.
#[derive(Clone)]
pub struct Sqs {
    http: Http,
    shared: Arc<SharedQueue>,
}

/// The state that the clients of all runs share.
struct SharedQueue {
    location: SqsLocation,
    credentials: CachedCredentials,
    /// The URL of the queue, which identifies the queue in requests. The URL is requested once.
    url: OnceLock<String>,
}

/// An action of the API.
#[derive(Clone, Copy)]
struct Action {
    name: &'static str,
    /// The operation, for errors.
    what: &'static str,
    /// Whether the action may be sent again after a lost response.
    is_idempotent: bool,
    max_body: usize,
}

impl Action {
    const fn new(name: &'static str, what: &'static str) -> Self {
        Self { name, what, is_idempotent: true, max_body: MAX_ANSWER_BYTES }
    }
}

impl Sqs {
    /// Creates a client of the queue on this HTTP stack, whose mode is that of the run. Sends no requests.
    pub fn new(http: &Http, settings: SqsSettings) -> Self {
        let SqsSettings { location, credentials } = settings;
        #[expect(
            clippy::disallowed_methods,
            reason = "these actions return attributes and names, and change no message"
        )]
        let actions = ReadActions::new(location.endpoint(), SERVICE, SQS_READS);
        let credentials = CachedCredentials::new(credentials, location.region());
        let url = location.url().map_or_else(OnceLock::new, |url| OnceLock::from(url.to_owned()));
        let shared = SharedQueue { location, credentials, url };
        Self { http: http.with_read_actions(actions), shared: Arc::new(shared) }
    }

    /// Creates a client of the same queue for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { http: self.http.for_run(permit), shared: Arc::clone(&self.shared) }
    }

    /// Refuses a write with a bounded permit, because bounds are paths and all actions have the same path.
    fn refuse_bounded(&self, permit: &WritePermit) -> Result<(), QueueError> {
        let Some(bounds) = permit.bounds() else { return Ok(()) };
        let queue = self.shared.location.name();
        Err(QueueError::Unsupported(format!(
            "writing to queue `{queue}` is refused: the write permit of this run allows {bounds}"
        )))
    }

    /// The URL of the queue. The request for the URL is a read, even if it precedes a write.
    async fn url(&self, permit: AccessPermit<'_>, now: SystemTime) -> Result<&str, QueueError> {
        if let Some(url) = self.shared.url.get() {
            return Ok(url);
        }
        let action = Action::new("GetQueueUrl", "looking up");
        let body = json!({"QueueName": self.shared.location.name().as_str()});
        let answer: wire::QueueUrl = self.call(permit, action, &body, now).await?;
        Ok(self.shared.url.get_or_init(|| answer.queue_url))
    }

    /// Sends an action of the queue.
    async fn act<T: DeserializeOwned>(
        &self,
        permit: AccessPermit<'_>,
        action: Action,
        mut body: Value,
        now: SystemTime,
    ) -> Result<T, QueueError> {
        body["QueueUrl"] = self.url(permit, now).await?.into();
        self.call(permit, action, &body, now).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        permit: AccessPermit<'_>,
        action: Action,
        body: &Value,
        now: SystemTime,
    ) -> Result<T, QueueError> {
        let location = &self.shared.location;
        let what = || format!("{} queue `{}`", action.what, location.name());
        let credentials = self.shared.credentials.get(now).await.map_err(|error| {
            QueueError::Unreachable { what: what(), reason: error.reason, transient: error.is_transient }
        })?;
        let body = body.to_string().into_bytes();
        let target = format!("{SERVICE}.{}", action.name);
        let headers = [("content-type", MEDIA_TYPE), (TARGET_HEADER, target.as_str())];
        let signed = sign(location, &headers, &body, &credentials, now);
        let signed = signed.map_err(|reason| QueueError::Unreachable {
            what: what(),
            reason: reason.to_owned(),
            transient: false,
        })?;
        let mut request = Request::post(location.endpoint().clone(), MEDIA_TYPE, body)
            .header(TARGET_HEADER, &target)
            .accept_status(StatusCode::BAD_REQUEST)
            .accept_status(StatusCode::FORBIDDEN)
            .accept_status(StatusCode::INTERNAL_SERVER_ERROR)
            .max_body(action.max_body);
        for (name, value) in &signed {
            request = request.secret_header(name, value);
        }
        if action.is_idempotent {
            request = request.idempotent();
        }
        let response = match self.http.send(permit, request).await {
            Ok(response) => response,
            Err(HttpError::Refused(refusal)) => return Err(QueueError::Refused(refusal)),
            Err(error) => {
                let transient = error.is_transient();
                // The body of an error may echo the request.
                let reason = error.status().map_or_else(|| error.reason(), |status| format!("HTTP {status}"));
                return Err(QueueError::Unreachable { what: what(), reason, transient });
            }
        };
        self.read(&response, what)
    }

    /// Reads a response: the result, or the error of the API.
    fn read<T: DeserializeOwned>(
        &self,
        response: &Response,
        what: impl Fn() -> String,
    ) -> Result<T, QueueError> {
        if response.status.is_success() {
            // The response to some actions is empty.
            let body = if response.body.is_empty() { b"{}" } else { response.body.as_slice() };
            return wire::parse(body).ok_or_else(|| QueueError::Malformed {
                what: format!("the response to {}", what()),
                why: "it is not that of SQS",
            });
        }
        let code = wire::error_code(&response.body);
        let reason = format!("{} {code}", response.status.as_u16()).trim_end().to_owned();
        let queue = || self.shared.location.name().to_string();
        Err(match wire::ErrorKind::of(response.status, &code) {
            wire::ErrorKind::NoQueue => QueueError::NoQueue(queue()),
            wire::ErrorKind::StaleReceipt => QueueError::StaleReceipt(queue()),
            wire::ErrorKind::Denied => QueueError::Denied { what: what(), reason },
            wire::ErrorKind::Transient => QueueError::Unreachable { what: what(), reason, transient: true },
            wire::ErrorKind::Other => QueueError::Unreachable { what: what(), reason, transient: false },
        })
    }
}

impl fmt::Debug for Sqs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqs").field("location", &self.shared.location).finish_non_exhaustive()
    }
}

impl QueueReader for Sqs {
    fn counts<'a>(
        &'a self,
        permit: &'a ReadPermit,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageCounts, QueueError>> {
        async move {
            let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
            let action = Action::new("GetQueueAttributes", "counting the messages of");
            let body = json!({"AttributeNames": names});
            let answer: wire::Attributes = self.act(AccessPermit::Read(permit), action, body, now).await?;
            answer.counts().ok_or_else(|| QueueError::Malformed {
                what: format!("the number of messages of queue `{}`", self.shared.location.name()),
                why: "it is missing, or not a number",
            })
        }
        .boxed()
    }
}

impl QueueWriter for Sqs {
    fn send<'a>(
        &'a self,
        permit: &'a WritePermit,
        message: &'a NewMessage,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageId, QueueError>> {
        async move {
            self.refuse_bounded(permit)?;
            message.check(self.shared.location.name())?;
            let mut body = json!({"MessageBody": message.body()});
            if let Some(order) = message.order() {
                body["MessageGroupId"] = order.group.as_str().into();
                body["MessageDeduplicationId"] = order.deduplication.as_str().into();
            }
            // With a deduplication ID, a second attempt does not send the message twice.
            let is_idempotent = message.order().is_some();
            let action = Action { is_idempotent, ..Action::new("SendMessage", "sending a message to") };
            let answer: wire::SendResponse = self.act(AccessPermit::Write(permit), action, body, now).await?;
            Ok(MessageId(answer.message_id))
        }
        .boxed()
    }

    fn receive<'a>(
        &'a self,
        permit: &'a WritePermit,
        options: ReceiveOptions,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Vec<ReceivedMessage>, QueueError>> {
        async move {
            self.refuse_bounded(permit)?;
            let body = json!({
                "MaxNumberOfMessages": options.max(),
                "VisibilityTimeout": options.hidden_for().as_secs(),
                "MessageSystemAttributeNames": ["ApproximateReceiveCount", "MessageGroupId"],
            });
            let action = Action::new("ReceiveMessage", "receiving from");
            // The action is not idempotent: after a lost response, its messages stay hidden, and a second
            // attempt would hide further messages.
            let action = Action { is_idempotent: false, max_body: MAX_MESSAGES_BYTES, ..action };
            let answer: wire::ReceiveResponse =
                self.act(AccessPermit::Write(permit), action, body, now).await?;
            answer.messages(options.max()).ok_or_else(|| QueueError::Malformed {
                what: format!("the response to receiving from queue `{}`", self.shared.location.name()),
                why: "it has too many messages, or one without a receive count",
            })
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        async move {
            self.refuse_bounded(permit)?;
            let body = json!({"ReceiptHandle": receipt.0});
            let action = Action::new("DeleteMessage", "deleting a message of");
            let _: wire::EmptyResponse = self.act(AccessPermit::Write(permit), action, body, now).await?;
            Ok(())
        }
        .boxed()
    }

    fn change_visibility<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        hidden_for: Duration,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        async move {
            self.refuse_bounded(permit)?;
            check_hidden(hidden_for)?;
            let body = json!({"ReceiptHandle": receipt.0, "VisibilityTimeout": hidden_for.as_secs()});
            let action = Action::new("ChangeMessageVisibility", "hiding a message of");
            let _: wire::EmptyResponse = self.act(AccessPermit::Write(permit), action, body, now).await?;
            Ok(())
        }
        .boxed()
    }
}
