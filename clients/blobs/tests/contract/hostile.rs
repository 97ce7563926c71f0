//! Hostile servers: endless bodies, endless listings.

use std::fmt::Write as _;
use std::time::Duration;

use qontract_access::Mode;
use qontract_client_blobs::{BlobReader as _, BlobsError, S3, S3Credentials, S3Settings, list_all};
use qontract_client_http::Secret;
use qontract_testkit::{Loopback, Reply, permits};

use crate::stores::key;

/// Maximum number of bytes a server can send before the connection is closed: the largest limit plus socket
/// buffers.
const MAX_SENT: usize = 24 << 20;

const LISTING: &str = r#"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#;

async fn bucket(server: &Loopback) -> S3 {
    let credentials = S3Credentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
    let mut settings = S3Settings::new("bucket", "us-east-1", credentials);
    settings.endpoint = Some(server.url().parse().unwrap());
    settings.deadline = Duration::from_secs(20);
    settings.max_blob_bytes = 1 << 20;
    S3::new(&permits(Mode::DryRun).read, settings).await
}

fn endless(status: &'static str) -> Reply {
    Reply::Endless(status, String::new(), LISTING.to_owned(), "<Contents><Key>k</Key></Contents>".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_is_read_up_to_its_limit_and_not_retried() {
    let read = permits(Mode::DryRun).read;
    for status in ["200 OK", "404 Not Found", "500 Internal Server Error"] {
        let server = Loopback::start(move |_| endless(status));
        let bucket = bucket(&server).await;
        let got = bucket.get(&read, &key("x")).await.unwrap_err();
        let listed = bucket.list(&read, "a/", None).await.unwrap_err();
        let expect = match status {
            "200 OK" => [
                "blob `x` has more than 1048576 bytes",
                "listing blobs below `a/` failed: 200, with a body of more than 4194304 bytes",
            ],
            "404 Not Found" => [
                "reading blob `x` failed: 404, with a body of more than 65536 bytes",
                "listing blobs below `a/` failed: 404, with a body of more than 65536 bytes",
            ],
            _ => [
                "reading blob `x` failed: 500, with a body of more than 65536 bytes",
                "listing blobs below `a/` failed: 500, with a body of more than 65536 bytes",
            ],
        };
        assert_eq!([got.to_string(), listed.to_string()], expect, "{status}");
        let is_transient = status.starts_with('5');
        assert_eq!([got.is_transient(), listed.is_transient()], [is_transient; 2], "{status}");
        assert_eq!(server.seen().len(), 2, "{status}: {:?}", server.seen());
        assert!(server.sent() < MAX_SENT, "{status}: {} bytes", server.sent());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_may_be_as_large_as_its_limit() {
    let read = permits(Mode::DryRun).read;
    for (size, fits) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let server = Loopback::start(move |_| Reply::Full("200 OK", String::new(), "x".repeat(size)));
        match bucket(&server).await.get(&read, &key("x")).await {
            Ok(Some(blob)) => assert!(fits && blob.bytes.len() == size, "{size}"),
            Err(BlobsError::TooLarge { limit, .. }) => assert!(!fits && limit == 1 << 20, "{size}"),
            other => panic!("{size}: {other:?}"),
        }
    }
}

/// A page with `keys` keys, and a token for the next page.
fn page(keys: usize) -> Reply {
    let mut text = format!(
        "{LISTING}<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
    );
    for number in 0..keys {
        write!(text, "<Contents><Key>{number}</Key><Size>1</Size></Contents>").unwrap();
    }
    Reply::Full("200 OK", "content-type: application/xml\r\n".to_owned(), text + "</ListBucketResult>")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_at_most_a_thousand_keys() {
    let read = permits(Mode::DryRun).read;
    for (keys, fits) in [(1000, true), (1001, false)] {
        let server = Loopback::start(move |_| page(keys));
        let listed = bucket(&server).await.list(&read, "", None).await;
        assert_eq!(listed.as_ref().is_ok_and(|page| page.entries.len() == keys), fits, "{listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_with_a_repeated_token_ends() {
    let read = permits(Mode::DryRun).read;
    let server = Loopback::start(|_| page(0));
    let error = list_all(&bucket(&server).await, &read, "").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "listing blobs below `` failed: the store returned the same continuation token twice"
    );
    assert_eq!(server.seen().len(), 2);
}
