//! Tests of queues.

use futures_util::FutureExt as _;
use qontract_access::Mode;
use qontract_client_secrets::ConfigSecrets;
use qontract_testkit::{Scratch, permits};

use super::*;

fn queues(config: &str, secrets: &str) -> QueueStores {
    let tables: TargetsTable = toml::from_str(config).unwrap();
    let secrets = Arc::new(ConfigSecrets::new(secrets.parse().unwrap()));
    QueueStores::configured(&permits(Mode::Real).read, &tables, secrets)
}

fn error<T>(result: anyhow::Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[tokio::test]
async fn a_sandbox_has_every_queue() {
    let scratch = Scratch::new();
    let (permits, now) = (permits(Mode::Real), SystemTime::now());
    let queues = QueueStores::in_sandbox(&permits.read, scratch.path(), &TargetsTable::default());
    let write = permits.write.as_ref().unwrap();
    let queue = queues.queue("orders").unwrap();
    queue.send(write, &NewMessage::new("x").unwrap(), now).await.unwrap();
    assert!(scratch.read("queue/orders/00000000000000000001.json").contains("\"body\":\"x\""));
    let other = queues.queue("other").unwrap();
    assert_eq!(other.counts(&permits.read, now).await.unwrap(), MessageCounts::default());
    for name in ["", "..", ".lock", "a/b", "a\0b"] {
        assert!(error(queues.queue(name)).contains("is not a queue name"), "{name:?}");
    }
}

#[tokio::test]
async fn a_queue_has_the_same_order_in_a_sandbox() {
    let scratch = Scratch::new();
    let permits = permits(Mode::Real);
    let tables = toml::from_str("[queue.orders]\nurl = 'https://h/1/q.fifo'\n").unwrap();
    let queues = QueueStores::in_sandbox(&permits.read, scratch.path(), &tables);
    let grouped = NewMessage::new("x").unwrap().in_group("g", None).unwrap();
    for (name, is_fifo) in [("orders", true), ("other.fifo", true), ("other", false)] {
        let write = permits.write.as_ref().unwrap();
        let sent = queues.queue(name).unwrap().send(write, &grouped, SystemTime::now()).await;
        assert_eq!(sent.is_ok(), is_fifo, "{name}");
    }
    assert!(scratch.path().join("queue/orders").is_dir());
}

#[tokio::test]
async fn a_sandbox_of_a_dry_run_is_not_written() {
    let scratch = Scratch::new();
    let stolen = permits(Mode::Real).write.unwrap();
    let queues =
        QueueStores::in_sandbox(&permits(Mode::DryRun).read, scratch.path(), &TargetsTable::default());
    let message = NewMessage::new("x").unwrap();
    queues.queue("orders").unwrap().send(&stolen, &message, SystemTime::now()).await.unwrap_err();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_queue_that_is_not_configured_correctly_names_its_key() {
    let check = |config: &str, expect: &str| assert_eq!(error(queues(config, "").queue("orders")), expect);
    check(
        "[queue.order]\nname = 'q'\n",
        "no queue `orders` is configured: set `targets.queue.orders.url` or `targets.queue.orders.name`, or pass `--sandbox DIR`",
    );
    let both = "`targets.queue.orders` must have either `url` or `name`";
    check("[queue.orders]\n", both);
    check("[queue.orders]\nurl = 'https://h/1/q'\nname = 'q'\n", both);
    check(
        "[queue.orders]\nname = 'q'\nendpoint = 'https://h/path'\n",
        "`targets.queue.orders.endpoint`: not a URL such as `https://sqs.example.com`, without user, path and query",
    );
    assert!(queues("[queue.orders]\nurl = 'https://h/1/q'\n", "").queue("orders").is_ok());
    assert!(error(QueueStores::unused().queue("orders")).starts_with("a command that only reads data"));
}

#[test]
fn a_key_that_cannot_be_read_is_an_error_of_the_call_that_names_the_setting() {
    let config = "[queue.orders]\nname = 'q'\nsecret = 'creds/sqs'\n";
    let check = |secrets: &str, expect: &str| {
        let queue = queues(config, secrets).queue("orders").unwrap();
        let read = permits(Mode::Real).read;
        let error = queue.counts(&read, SystemTime::now()).now_or_never().unwrap().unwrap_err();
        let what = "reading the key of queue `q` (`targets.queue.orders.secret`) failed";
        assert_eq!(error.to_string(), format!("{what}: {expect}"));
    };
    check("", "secret `creds/sqs` not found");
    check("[creds.sqs]\naws_access_key_id = 'x'\n", "`creds/sqs` has no field `aws_secret_access_key`");
}
