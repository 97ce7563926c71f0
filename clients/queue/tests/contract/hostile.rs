//! Hostile servers, and errors of servers.

use std::time::SystemTime;

use qontract_access::Mode;
use qontract_client_queue::{NewMessage, QueueError, QueueReader as _, QueueWriter as _, ReceiveOptions};
use qontract_testkit::{Loopback, Reply, free_port, permits};

use crate::queues::{HIDDEN, sqs};

const URL: &str = r#"{"QueueUrl": "http://h/1/orders"}"#;

/// A server that knows the URL of the queue, and otherwise replies with the result of `script`.
fn server(script: impl Fn() -> Reply + Send + Sync + 'static) -> Loopback {
    Loopback::with_bodies(move |request| {
        if request.body.starts_with(b"{\"QueueName\"") {
            return Reply::Full("200 OK", String::new(), URL.to_owned());
        }
        script()
    })
}

async fn receive(server: &Loopback) -> Result<usize, QueueError> {
    let options = ReceiveOptions::new(1, HIDDEN).unwrap();
    let permit = permits(Mode::Real).write.unwrap();
    let messages = sqs(server.url(), "orders", Mode::Real).receive(&permit, options, SystemTime::now()).await;
    messages.map(|messages| messages.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_is_read_up_to_its_limit() {
    let server = server(|| {
        let part = "x".repeat(1000);
        Reply::Endless("200 OK", String::new(), "{\"Messages\": \"".to_owned(), part)
    });
    let error = receive(&server).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "receiving from queue `orders` failed: the response has more than 20971520 bytes"
    );
    assert!(!error.is_transient());
    assert!(server.sent() < 40 << 20, "{} bytes", server.sent());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_not_that_of_sqs_is_an_error_and_not_an_empty_queue() {
    for body in ["<html>", "[]", "{\"Messages\": {}}", "{\"Messages\": [{}]}"] {
        let server = server(|| Reply::Full("200 OK", String::new(), body.to_owned()));
        let error = receive(&server).await.unwrap_err();
        assert!(matches!(error, QueueError::Malformed { .. }), "{body}: {error:?}");
    }
    let message = r#"{"MessageId": "1", "ReceiptHandle": "r", "Body": "b", "Attributes": {"ApproximateReceiveCount": "1"}}"#;
    let two = format!("{{\"Messages\": [{message}, {message}]}}");
    let server = server(move || Reply::Full("200 OK", String::new(), two.clone()));
    let error = receive(&server).await.unwrap_err();
    assert!(matches!(error, QueueError::Malformed { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_code_of_the_server_and_nothing_else() {
    let check = async |status: &'static str, code: &str, expect: &str, is_transient: bool| {
        let body = format!("{{\"__type\": \"com.amazonaws.sqs#{code}\", \"message\": \"c4nary\"}}");
        let server = server(move || Reply::Full(status, String::new(), body.clone()));
        let error = receive(&server).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_transient()), (expect, is_transient), "{error:?}");
        assert_eq!(server.seen().len(), 2, "a receipt is not repeated: {:?}", server.seen());
    };
    check("400 Bad Request", "QueueDoesNotExist", "queue `orders` not found", false).await;
    let denied = "receiving from queue `orders` failed: access denied (403 AccessDenied)";
    check("403 Forbidden", "AccessDenied", denied, false).await;
    let throttled = "receiving from queue `orders` failed: 400 RequestThrottled";
    check("400 Bad Request", "RequestThrottled", throttled, true).await;
    let failed = "receiving from queue `orders` failed: 500 InternalError";
    check("500 Internal Server Error", "InternalError", failed, true).await;
    let busy = "receiving from queue `orders` failed: HTTP 503 Service Unavailable";
    check("503 Service Unavailable", "x", busy, true).await;
}

/// The deduplication ID makes a second attempt harmless, so that only messages of FIFO queues are sent again.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_message_with_a_deduplication_id_is_sent_again() {
    let busy = || Reply::Full("503 Service Unavailable", String::new(), String::new());
    let permit = permits(Mode::Real).write.unwrap();
    for (queue, attempts) in [("orders", 1), ("orders.fifo", 5)] {
        let server = server(busy);
        let message = NewMessage::new("x").unwrap();
        let message = if attempts == 1 { message } else { message.in_group("g", None).unwrap() };
        let error = sqs(server.url(), queue, Mode::Real).send(&permit, &message, SystemTime::now()).await;
        assert!(error.unwrap_err().is_transient());
        assert_eq!(server.seen().len(), 1 + attempts, "{queue}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_transient_and_no_secret_is_printed() {
    let queue = sqs(&format!("http://127.0.0.1:{}", free_port()), "orders", Mode::DryRun);
    let read = permits(Mode::DryRun).read;
    let error = queue.counts(&read, SystemTime::now()).await.unwrap_err();
    assert_eq!(error.to_string(), "looking up queue `orders` failed: connection refused");
    assert!(error.is_transient());
    assert!(![format!("{queue:?}"), format!("{error:?}")].concat().contains("s3cret"));
}
