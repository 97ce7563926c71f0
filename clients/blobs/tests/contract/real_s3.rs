//! The contract on a real server of S3, and what is said of servers alone.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_blobs::{BlobsError, Credentials, Reader as _, S3, S3Settings};
use qontract_client_http::Secret;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, free_port, permits};

use crate::cases::CASES;
use crate::stores::{Store, key, s3};

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_keeps_the_contract() {
    let server = TestAws::start();
    server.reset();
    for (name, case) in CASES {
        case(&Store::bucket(&server, name).await).await;
    }
}

#[tokio::test]
async fn a_bucket_that_is_not_there_has_no_absent_blobs() {
    let server = TestAws::start();
    let (bucket, permits) = (s3(&server, "missing", Mode::DryRun).await, permits(Mode::DryRun));
    let error = bucket.get(&permits.read, &key("x")).await.unwrap_err();
    assert!(matches!(error, BlobsError::NoBucket(_)), "{error:?}");
    let error = bucket.list(&permits.read, "", None).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no bucket `missing`");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient_and_no_secret_is_told() {
    let permits = permits(Mode::DryRun);
    let credentials = Credentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
    let mut settings = S3Settings::new("bucket", "us-east-1", credentials);
    settings.endpoint = Some(format!("http://127.0.0.1:{}", free_port()).parse().unwrap());
    settings.retries = 0;
    settings.deadline = Duration::from_secs(20);
    let shown = format!("{settings:?}");
    let bucket = S3::new(&permits.read, settings).await;
    let error = bucket.get(&permits.read, &key("x")).await.unwrap_err();
    assert_eq!(error.to_string(), "reading blob `x` failed: connection refused");
    assert!(error.is_transient());
    assert!(![shown, format!("{bucket:?}"), format!("{error:?}")].concat().contains("s3cret"));
}

#[tokio::test]
async fn a_profile_has_the_credentials_or_it_is_told() {
    let (server, scratch, permits) = (TestAws::start(), Scratch::new(), permits(Mode::DryRun));
    server.bucket("bucket");
    let keys = "[profile good]\naws_access_key_id = AKIATEST\naws_secret_access_key = s3cret-key\n";
    let file = scratch.write("config", keys);
    let bucket = async |name: &str| {
        let credentials = Credentials::Profile { name: name.to_owned(), file: file.clone() };
        let mut settings = S3Settings::new("bucket", "us-east-1", credentials);
        settings.endpoint = Some(server.url().parse().unwrap());
        S3::new(&permits.read, settings).await
    };
    assert_eq!(bucket("good").await.get(&permits.read, &key("x")).await.unwrap(), None);
    let error = bucket("bad").await.get(&permits.read, &key("x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "reading blob `x` failed: it could not be sent, or there are no credentials"
    );
    assert!(!error.is_transient());
}
