//! No error contains a secret.

use std::error::Error;
use std::time::Duration;

use qontract_access::Mode;
use qontract_client_http::{HttpError, Request, Secret, Settings, Url};

use crate::loopback::{Loopback, Reply, reply, reply_with};
use crate::{run, settings};

/// All texts of an error and its causes.
fn everything(error: &HttpError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(" {error} {error:?} {error:#?}");
        cause = error.source();
    }
    text
}

async fn check(url: Url, settings: Settings) {
    let (permits, http) = run(Mode::DryRun, settings);
    let request = Request::get(url).secret_header("authorization", &Secret::new("Bearer s3cret"));
    let error = http.read(&permits.read, request).await.expect_err("a failure");
    let text = everything(&error);
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.contains("GET http"), "{text}");
}

#[tokio::test]
async fn no_error_contains_a_header_or_a_query() {
    let replies = [
        reply("401 Unauthorized", "the token `s3cret` of header `Bearer s3cret` is unknown"),
        reply_with("302 Found", "location: http://s3cret:s3cret@127.0.0.1:1/s3cret?s3cret"),
        Reply::Nothing,
        Reply::Cut,
        Reply::Never,
        Reply::Endless,
    ];
    for answer in replies {
        let server = Loopback::start(move |_, _| answer.clone()).await;
        let limits = Settings {
            attempt_timeout: Duration::from_millis(50),
            retries: 1,
            max_body_bytes: 10,
            ..settings()
        };
        check(server.url("/x?key=s3cret"), limits.clone()).await;
        let deadline = Duration::from_millis(50);
        check(server.url("/x?key=s3cret"), Settings { deadline, ..limits }).await;
    }
}

#[tokio::test]
async fn no_refusal_contains_a_query_or_a_password() {
    let limits = || Settings { retries: 0, ..settings() };
    check(Url::parse("http://user:s3cret@127.0.0.1:1/x").unwrap(), limits()).await;
    check(Url::parse("http://127.0.0.1:1/x?s3cret").unwrap(), limits()).await;
    check(Url::parse("https://127.0.0.1:1/x?s3cret").unwrap(), limits()).await;
}

#[tokio::test]
async fn the_secret_is_sent() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let request =
        Request::get(server.url("/x")).secret_header("authorization", &Secret::new("Bearer s3cret"));
    http.read(&permits.read, request).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].contains("authorization: Bearer s3cret\r\n"), "{seen:?}");
    assert!(seen[0].contains("user-agent: qontract/"), "{seen:?}");
}
