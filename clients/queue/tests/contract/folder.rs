//! The contract tests on a directory, and tests for directories only.

use std::time::{Duration, SystemTime};

use qontract_client_queue::{NewMessage, QueueDirectory, QueueError, QueueReader as _, ReceiveOptions};
use qontract_testkit::Scratch;

use crate::cases::CASES;
use crate::queues::{HIDDEN, TestQueue, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_passes_the_contract_tests() {
    for (queue, case) in CASES {
        let scratch = Scratch::new();
        case(&TestQueue::folder(&scratch.path().join(queue), queue)).await;
    }
}

#[tokio::test]
async fn messages_are_delivered_in_order_and_again_when_their_time_is_over() {
    let scratch = Scratch::new();
    let queue = TestQueue::folder(scratch.path(), "q");
    let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
    let at = |seconds: u64| now + Duration::from_secs(seconds);
    for body in ["a", "b", "c"] {
        queue.queue.send(queue.write(), &NewMessage::new(body).unwrap(), now).await.unwrap();
    }
    let receive = async |max: u8, now: SystemTime| {
        let options = ReceiveOptions::new(max, Duration::from_secs(30)).unwrap();
        queue.queue.receive(queue.write(), options, now).await.unwrap()
    };
    let bodies = |messages: &[qontract_client_queue::ReceivedMessage]| {
        messages.iter().map(|message| message.body.clone()).collect::<Vec<_>>().concat()
    };
    let first = receive(2, now).await;
    assert_eq!(bodies(&first), "ab");
    assert_eq!(bodies(&receive(10, at(29)).await), "c");
    let again = receive(10, at(30)).await;
    assert_eq!((bodies(&again).as_str(), again[0].receive_count), ("ab", 2));
    // The receipt of the consumer that was too slow is not valid anymore.
    let error = queue.queue.delete(queue.write(), &first[0].receipt, at(31)).await.unwrap_err();
    assert!(matches!(error, QueueError::StaleReceipt(_)), "{error:?}");
    queue.queue.delete(queue.write(), &again[0].receipt, at(31)).await.unwrap();
    // A step of the clock back delays messages, and loses none.
    assert_eq!(bodies(&receive(10, now - Duration::from_hours(1)).await), "");
    assert_eq!(bodies(&receive(10, at(60)).await), "bc");
}

/// Whatever files a crash leaves, each message is delivered, and no old receipt deletes another message.
#[tokio::test]
async fn a_crash_at_any_write_loses_no_message() {
    let scratch = Scratch::new();
    let queue = TestQueue::folder(&scratch.path().join("q"), "q.fifo");
    queue.send_in("g", "one", Some("d1")).await;
    let message = queue.receive(1).await.pop().unwrap();
    // A crash between the two writes of a removal: the history exists, and so does the message.
    let file = "q/00000000000000000001.json";
    let stored = scratch.read(file);
    queue.delete(&message.receipt).await.unwrap();
    scratch.write(file, stored);
    queue.delete(&message.receipt).await.unwrap();
    assert!(!scratch.path().join(file).exists());
    // A crash while a file is written leaves a draft.
    scratch.write("q/.draft", "{\"bo");
    queue.send_in("g", "one", Some("d1")).await;
    queue.send_in("g", "two", None).await;
    assert!(!scratch.path().join("q/.draft").exists());
    let second = queue.receive(10).await;
    assert_eq!(second.iter().map(|message| message.body.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_ne!(second[0].id, message.id, "a position is never used again");
    queue.delete(&message.receipt).await.unwrap();
    assert_eq!(queue.counts().await, (0, 1), "an old receipt deletes nothing");
}

#[tokio::test]
async fn a_damaged_file_does_not_block_the_messages_after_it() {
    let scratch = Scratch::new();
    let queue = TestQueue::folder(scratch.path(), "q");
    queue.send("a").await;
    queue.send("b").await;
    scratch.write("00000000000000000001.json", "{\"body\": \"a\", \"sent\"");
    assert_eq!(queue.bodies(10).await, ["b"]);
    let options = ReceiveOptions::new(10, HIDDEN).unwrap();
    let now = SystemTime::now();
    let error = queue.queue.receive(queue.write(), options, now).await.unwrap_err().to_string();
    assert!(
        error.ends_with("00000000000000000001.json` is malformed: it is not a message of a queue"),
        "{error}"
    );
    let error = queue.queue.counts(queue.read(), now).await.unwrap_err();
    assert!(matches!(error, QueueError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_message_is_a_file_that_can_be_written_by_hand() {
    let scratch = Scratch::new();
    let queue = TestQueue::folder(scratch.path(), "q");
    scratch.write("00000000000000000007.json", "{\"body\": \"by hand\", \"sent\": 0}\n");
    queue.send("after").await;
    assert_eq!(queue.bodies(10).await, ["by hand", "after"]);
}

#[tokio::test]
async fn links_are_not_followed() {
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    elsewhere.write("message", "{\"body\": \"theirs\", \"sent\": 0}");
    scratch.link("00000000000000000001.json", &elsewhere.path().join("message").display().to_string());
    let queue = TestQueue::folder(scratch.path(), "q");
    let options = ReceiveOptions::new(1, HIDDEN).unwrap();
    let error = queue.queue.receive(queue.write(), options, SystemTime::now()).await.unwrap_err();
    assert!(matches!(error, QueueError::File { .. }), "{error:?}");
    assert_eq!(elsewhere.read("message"), "{\"body\": \"theirs\", \"sent\": 0}");
}

#[tokio::test]
async fn reading_creates_nothing() {
    let scratch = Scratch::new();
    let queue = QueueDirectory::new(scratch.path().join("q"), name("q"));
    let read = qontract_testkit::permits(qontract_access::Mode::DryRun).read;
    queue.counts(&read, SystemTime::now()).await.unwrap();
    assert!(!scratch.path().join("q").exists());
}
