//! The cases of the contract.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use qontract_client_queue::{MAX_MESSAGE_BYTES, NewMessage, QueueError, ReceiptHandle};

use crate::queues::{HIDDEN, TestQueue};

/// A case: the name of its queue, and a function that gets the empty queue.
pub type ContractCase = (&'static str, for<'a> fn(&'a TestQueue) -> BoxFuture<'a, ()>);

/// All cases.
pub const CASES: [ContractCase; 6] = [
    ("delivered-until-deleted", |queue| delivered_until_deleted(queue).boxed()),
    ("any-body", |queue| any_body(queue).boxed()),
    ("batches", |queue| batches(queue).boxed()),
    ("one-consumer", |queue| one_consumer(queue).boxed()),
    ("groups.fifo", |queue| groups(queue).boxed()),
    ("duplicates.fifo", |queue| duplicates(queue).boxed()),
];

async fn delivered_until_deleted(queue: &TestQueue) {
    assert_eq!(queue.receive(10).await, []);
    assert_eq!(queue.counts().await, (0, 0));
    queue.send("a").await;
    assert_eq!(queue.counts().await, (1, 0));
    let first = queue.receive(10).await.pop().unwrap();
    assert_eq!((first.body.as_str(), first.receive_count, first.group.as_deref()), ("a", 1, None));
    // It is hidden, but not gone.
    assert_eq!(queue.receive(10).await, []);
    assert_eq!(queue.counts().await, (0, 1));
    queue.hide(&first.receipt, HIDDEN * 2).await.unwrap();
    queue.hide(&first.receipt, Duration::ZERO).await.unwrap();
    let second = queue.receive_again().await;
    assert_eq!((second.body.as_str(), second.receive_count), ("a", 2));
    assert_eq!(second.id, first.id);
    queue.delete(&second.receipt).await.unwrap();
    // Deleting a deleted message succeeds, hiding it does not.
    queue.delete(&second.receipt).await.unwrap();
    let error = queue.hide(&second.receipt, HIDDEN).await.unwrap_err();
    assert!(matches!(error, QueueError::StaleReceipt(_)), "{error:?}");
    let error = queue.delete(&ReceiptHandle("nonsense".to_owned())).await.unwrap_err();
    assert!(matches!(error, QueueError::StaleReceipt(_)), "{error:?}");
    assert_eq!(queue.counts().await, (0, 0));
}

async fn any_body(queue: &TestQueue) {
    let large = "\"".repeat(MAX_MESSAGE_BYTES);
    for body in ["{\"pr_type\": \"x\"}", "é\u{1f600} <a>&amp;\r\n\t\\", " ", &large] {
        queue.send(body).await;
        let message = queue.receive(1).await.pop().unwrap();
        assert!(message.body == body, "{} bytes", body.len());
        queue.delete(&message.receipt).await.unwrap();
    }
    let write = queue.write();
    let grouped = NewMessage::new("a").unwrap().in_group("g", None).unwrap();
    let error = queue.queue.send(write, &grouped, std::time::SystemTime::now()).await.unwrap_err();
    assert_eq!(error.to_string(), "the message cannot be sent: only FIFO queues have groups");
}

async fn batches(queue: &TestQueue) {
    let bodies: Vec<String> = (0..23).map(|number| format!("message {number}")).collect();
    for body in &bodies {
        queue.send(body).await;
    }
    assert_eq!(queue.counts().await, (23, 0));
    let mut received = Vec::new();
    for expect in [10, 10, 3, 0] {
        let batch = queue.bodies(10).await;
        assert_eq!(batch.len(), expect);
        received.extend(batch);
    }
    received.sort_by_key(|body| bodies.iter().position(|sent| sent == body));
    assert_eq!(received, bodies);
    assert_eq!(queue.counts().await, (0, 23));
}

async fn one_consumer(queue: &TestQueue) {
    for number in 0..20 {
        queue.send(&number.to_string()).await;
    }
    let batches = join_all((0..40).map(|_| queue.bodies(1))).await;
    let mut received: Vec<u32> = batches.concat().iter().map(|body| body.parse().unwrap()).collect();
    received.sort_unstable();
    assert_eq!(received, (0..20).collect::<Vec<_>>(), "each message has one consumer");
}

async fn groups(queue: &TestQueue) {
    for (group, body) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")] {
        queue.send_in(group, body, None).await;
    }
    let first = queue.receive(1).await.pop().unwrap();
    assert_eq!((first.body.as_str(), first.group.as_deref()), ("a1", Some("a")));
    // The group waits for its message, other groups do not.
    assert_eq!(queue.bodies(10).await, ["b1"]);
    queue.delete(&first.receipt).await.unwrap();
    assert_eq!(queue.bodies(10).await, ["a2", "a3"]);
    let write = queue.write();
    let plain = NewMessage::new("a").unwrap();
    let error = queue.queue.send(write, &plain, std::time::SystemTime::now()).await.unwrap_err();
    assert_eq!(error.to_string(), "the message cannot be sent: a FIFO queue needs a group");
}

async fn duplicates(queue: &TestQueue) {
    queue.send_in("g", "one", Some("d1")).await;
    queue.send_in("g", "other", Some("d1")).await;
    queue.send_in("h", "one", None).await;
    queue.send_in("h", "one", None).await;
    assert_eq!(queue.bodies(10).await, ["one", "one"]);
}
