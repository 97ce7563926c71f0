//! A queue with its permits, and short methods for tests.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use qontract_access::{Mode, Permits, ReadPermit, WritePermit};
use qontract_client_http::{Http, Proxies, Secret, Settings};
use qontract_client_queue::{
    MessageCounts, NewMessage, Queue, QueueAddress, QueueDirectory, QueueError, QueueName, ReceiptHandle,
    ReceiveOptions, ReceivedMessage, Sqs, SqsCredentials, SqsLocation, SqsSettings,
};
use qontract_testkit::permits;

/// How long received messages are hidden.
pub const HIDDEN: Duration = Duration::from_mins(10);

/// A queue with its permits.
pub struct TestQueue {
    pub queue: Arc<dyn Queue>,
    permits: Permits,
}

impl TestQueue {
    pub fn new(queue: Arc<dyn Queue>) -> Self {
        Self { queue, permits: permits(Mode::Real) }
    }

    pub fn folder(root: &std::path::Path, queue: &str) -> Self {
        Self::new(Arc::new(QueueDirectory::new(root, name(queue))))
    }

    pub fn read(&self) -> &ReadPermit {
        &self.permits.read
    }

    pub fn write(&self) -> &WritePermit {
        self.permits.write.as_ref().expect("a real run")
    }

    pub async fn send(&self, body: &str) {
        self.queue.send(self.write(), &NewMessage::new(body).unwrap(), SystemTime::now()).await.unwrap();
    }

    pub async fn send_in(&self, group: &str, body: &str, deduplication: Option<&str>) {
        let message = NewMessage::new(body).unwrap().in_group(group, deduplication).unwrap();
        self.queue.send(self.write(), &message, SystemTime::now()).await.unwrap();
    }

    pub async fn receive(&self, max: u8) -> Vec<ReceivedMessage> {
        let options = ReceiveOptions::new(max, HIDDEN).unwrap();
        self.queue.receive(self.write(), options, SystemTime::now()).await.unwrap()
    }

    /// Receives until there is a message: one that was returned to the queue is visible a moment later.
    pub async fn receive_again(&self) -> ReceivedMessage {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(message) = self.receive(1).await.pop() {
                return message;
            }
            assert!(Instant::now() < end, "no message");
        }
    }

    pub async fn bodies(&self, max: u8) -> Vec<String> {
        self.receive(max).await.into_iter().map(|message| message.body).collect()
    }

    pub async fn delete(&self, receipt: &ReceiptHandle) -> Result<(), QueueError> {
        self.queue.delete(self.write(), receipt, SystemTime::now()).await
    }

    pub async fn hide(&self, receipt: &ReceiptHandle, hidden_for: Duration) -> Result<(), QueueError> {
        self.queue.change_visibility(self.write(), receipt, hidden_for, SystemTime::now()).await
    }

    pub async fn counts(&self) -> (u64, u64) {
        let counts = self.queue.counts(self.read(), SystemTime::now()).await.unwrap();
        let MessageCounts { visible, hidden } = counts;
        (visible, hidden)
    }
}

/// A client of a queue at an endpoint, with the key that tests use.
pub fn sqs(endpoint: &str, queue: &str, mode: Mode) -> Sqs {
    with_key(endpoint, queue, mode, ("AKIATEST", "s3cret-key"))
}

/// A client of a queue at an endpoint, with an access key.
pub fn with_key(endpoint: &str, queue: &str, mode: Mode, (id, secret): (&str, &str)) -> Sqs {
    let location = SqsLocation::new(QueueAddress::Name(queue), None, Some(endpoint)).unwrap();
    let credentials = SqsCredentials::Keys { id: id.to_owned(), secret: Secret::new(secret) };
    Sqs::new(&http(mode), SqsSettings { location, credentials })
}

/// A stack with minimal back-off, without proxies.
pub fn http(mode: Mode) -> Http {
    let settings = Settings {
        initial_backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(2),
        proxies: Proxies::Never,
        ..Settings::default()
    };
    Http::new(&permits(mode).read, settings).unwrap()
}

pub fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}
