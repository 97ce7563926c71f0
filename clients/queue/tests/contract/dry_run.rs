//! A dry run writes nothing, regardless of the permit.

use std::time::{Duration, SystemTime};

use qontract_access::{Mode, WriteBounds, WritePermit};
use qontract_client_queue::{
    NewMessage, Queue, QueueDirectory, QueueError, QueueReader as _, ReceiptHandle, ReceiveOptions,
};
use qontract_testkit::{Loopback, Reply, Scratch, bounded_permits, permits};

use crate::queues::{HIDDEN, name, sqs};

/// The errors of all writes.
async fn write_errors(queue: &dyn Queue, permit: &WritePermit) -> Vec<QueueError> {
    let (now, receipt) = (SystemTime::now(), ReceiptHandle("1.1.1".to_owned()));
    let options = ReceiveOptions::new(1, HIDDEN).unwrap();
    vec![
        queue.send(permit, &NewMessage::new("x").unwrap(), now).await.unwrap_err(),
        queue.receive(permit, options, now).await.unwrap_err(),
        queue.delete(permit, &receipt, now).await.unwrap_err(),
        queue.change_visibility(permit, &receipt, Duration::ZERO, now).await.unwrap_err(),
    ]
}

/// A scripted server with one queue.
fn server() -> Loopback {
    Loopback::with_bodies(|request| {
        let url = r#"{"QueueUrl": "http://elsewhere.invalid/1/orders"}"#;
        let counts = r#"{"Attributes": {"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "0"}}"#;
        let body = if request.body.starts_with(b"{\"QueueName\"") { url } else { counts };
        Reply::Full("200 OK", String::new(), body.to_owned())
    })
}

#[tokio::test]
async fn only_read_actions_leave_the_process_in_a_dry_run() {
    let server = server();
    let queue = sqs(server.url(), "orders", Mode::DryRun);
    let (dry, stolen) = (permits(Mode::DryRun).read, permits(Mode::Real).write.unwrap());
    for clients in [&queue, &sqs(server.url(), "orders", Mode::Real).for_run(&dry)] {
        for error in write_errors(clients, &stolen).await {
            assert!(matches!(error, QueueError::Refused(_)), "{error:?}");
            assert!(error.to_string().ends_with("is refused: this is a dry run"), "{error}");
        }
    }
    assert_eq!(server.seen().len(), 0, "nothing left the process");
    let counts = queue.counts(&dry, SystemTime::now()).await.unwrap();
    assert_eq!((counts.visible, counts.hidden), (3, 0));
    for error in write_errors(&queue, &stolen).await {
        assert!(matches!(error, QueueError::Refused(_)), "{error:?}");
    }
    // The URL of the queue identifies it; requests go to the endpoint.
    let targets: Vec<String> = server
        .seen()
        .iter()
        .map(|head| {
            assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("authorization: AWS4-HMAC-SHA256 Credential=AKIATEST/"), "{head}");
            let target = head.lines().find_map(|line| line.strip_prefix("x-amz-target: "));
            target.expect("a target").to_owned()
        })
        .collect();
    assert_eq!(targets, ["AmazonSQS.GetQueueUrl", "AmazonSQS.GetQueueAttributes"]);
}

#[tokio::test]
async fn a_bounded_permit_writes_no_message() {
    let server = server();
    let queue = sqs(server.url(), "orders", Mode::Real);
    let permit = bounded_permits(WriteBounds::new([])).write.unwrap();
    for error in write_errors(&queue, &permit).await {
        assert_eq!(
            error.to_string(),
            "writing to queue `orders` is refused: the write permit of this run allows nothing"
        );
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_directory_is_not_written_in_a_dry_run() {
    let scratch = Scratch::new();
    let queue = QueueDirectory::new(scratch.path().join("q"), name("q"));
    let queue = queue.for_run(&permits(Mode::DryRun).read);
    for error in write_errors(&queue, &permits(Mode::Real).write.unwrap()).await {
        assert_eq!(error.to_string(), "a dry run does not write queues");
    }
    assert!(!scratch.path().join("q").exists());
}
