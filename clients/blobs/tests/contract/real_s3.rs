//! The contract tests on a real S3 server, and tests for servers only.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_blobs::{BlobReader as _, BlobsError, S3, S3Credentials, S3Settings};
use qontract_client_http::Secret;
use qontract_testkit::aws::TestAws;
use qontract_testkit::{Scratch, free_port, permits};

use crate::cases::CASES;
use crate::stores::{Store, key, s3};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_bucket_passes_the_contract_tests() {
    let server = TestAws::start();
    server.reset();
    for (name, case) in CASES {
        case(&Store::bucket(&server, name).await).await;
    }
}

#[tokio::test]
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_missing_bucket_is_not_an_absent_blob() {
    let server = TestAws::start();
    let (bucket, permits) = (s3(&server, "missing", Mode::DryRun).await, permits(Mode::DryRun));
    let error = bucket.get(&permits.read, &key("x")).await.unwrap_err();
    assert!(matches!(error, BlobsError::NoBucket(_)), "{error:?}");
    let error = bucket.list(&permits.read, "", None).await.unwrap_err();
    assert_eq!(error.to_string(), "bucket `missing` not found");
}

#[tokio::test]
async fn an_unreachable_server_is_transient_and_no_secret_is_printed() {
    let permits = permits(Mode::DryRun);
    let credentials = S3Credentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
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
#[ignore = "needs an S3 server (QONTRACT_PYTHON); run by `cargo xtask test`"]
async fn a_profile_without_credentials_is_an_error() {
    let (server, scratch, permits) = (TestAws::start(), Scratch::new(), permits(Mode::DryRun));
    server.bucket("bucket");
    let keys = "[profile good]\naws_access_key_id = AKIATEST\naws_secret_access_key = s3cret-key\n";
    let file = scratch.write("config", keys);
    let bucket = async |name: &str| {
        let credentials = S3Credentials::Profile { name: name.to_owned(), file: file.clone() };
        let mut settings = S3Settings::new("bucket", "us-east-1", credentials);
        settings.endpoint = Some(server.url().parse().unwrap());
        S3::new(&permits.read, settings).await
    };
    assert_eq!(bucket("good").await.get(&permits.read, &key("x")).await.unwrap(), None);
    let error = bucket("bad").await.get(&permits.read, &key("x")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "reading blob `x` failed: the request could not be sent, or no credentials were found"
    );
    assert!(!error.is_transient());
}
