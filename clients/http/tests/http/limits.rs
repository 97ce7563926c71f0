//! Deadlines, size limits, and unreachable targets.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_http::{HttpError, Method, Request, Settings, Url};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket};

use crate::loopback::{Loopback, Reply, reply};
use crate::{run, settings};

const SHORT: Duration = Duration::from_millis(50);

async fn fail(server: &Loopback, settings: Settings) -> HttpError {
    let (permits, http) = run(Mode::DryRun, settings);
    http.read(&permits.read, Request::get(server.url("/x"))).await.expect_err("a failure")
}

#[tokio::test]
async fn a_call_without_a_response_ends_at_its_deadline() {
    let server = Loopback::start(|_, _| Reply::Never).await;
    let error = fail(&server, Settings { deadline: SHORT, ..settings() }).await;
    assert!(matches!(error, HttpError::Deadline { last: None, .. }), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn an_attempt_without_a_response_is_retried() {
    let server = Loopback::start(|_, _| Reply::Never).await;
    let error = fail(&server, Settings { attempt_timeout: SHORT * 4, retries: 1, ..settings() }).await;
    assert!(matches!(error, HttpError::AttemptTimeout { .. }), "{error}");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_deadline_error_contains_the_previous_failure() {
    let server = Loopback::start(|number, _| match number {
        0 => reply("502 Bad Gateway", "tired"),
        _ => Reply::Never,
    });
    let server = server.await;
    let error = fail(&server, Settings { deadline: SHORT * 10, ..settings() }).await;
    let HttpError::Deadline { last: Some(last), .. } = error else { panic!("{error}") };
    assert!(last.to_string().ends_with("502 Bad Gateway: tired"), "{last}");
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    let server = Loopback::start(|_, _| Reply::Endless).await;
    let error = fail(&server, Settings { max_body_bytes: 1000, ..settings() }).await;
    assert!(matches!(error, HttpError::BodyTooLarge { limit: 1000, .. }), "{error}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit() {
    let server = Loopback::start(|_, _| reply("200 OK", &"x".repeat(1000))).await;
    let (permits, http) = run(Mode::DryRun, Settings { max_body_bytes: 1000, ..settings() });
    let response = http.read(&permits.read, Request::get(server.url("/x"))).await.unwrap();
    assert_eq!(response.body.len(), 1000);
    let error = fail(&server, Settings { max_body_bytes: 999, ..settings() }).await;
    assert!(matches!(error, HttpError::BodyTooLarge { limit: 999, .. }), "{error}");
}

#[tokio::test]
async fn a_head_request_ignores_the_size_of_the_object() {
    let server = Loopback::start(|_, _| reply("200 OK", &"x".repeat(1000))).await;
    let (permits, http) = run(Mode::DryRun, Settings { max_body_bytes: 10, ..settings() });
    let response = http.read(&permits.read, Request::new(Method::HEAD, server.url("/x"))).await.unwrap();
    assert!(response.body.is_empty());
}

#[tokio::test]
async fn a_refused_connection_is_transient() {
    // The port is bound, and nothing listens on it.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (permits, http) = run(Mode::DryRun, Settings { retries: 1, ..settings() });
    let url = Url::parse(&format!("http://{}/x", taken.local_addr().unwrap())).unwrap();
    let error = http.read(&permits.read, Request::get(url)).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { transient: true, .. }), "{error}");
}

#[tokio::test]
async fn a_target_without_tls_is_not_retried() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("https://{}/x", plain.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let (permits, http) = run(Mode::DryRun, settings());
    let error = http.read(&permits.read, Request::get(url)).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { transient: false, .. }), "{error:?}");
}

#[tokio::test]
async fn the_concurrency_limit_of_a_target_holds() {
    let server = Loopback::start(|number, _| if number == 0 { Reply::Never } else { reply("200 OK", "") });
    let server = server.await;
    let (permits, http) = run(Mode::DryRun, Settings { concurrency: 1, deadline: SHORT * 10, ..settings() });
    let get = || http.read(&permits.read, Request::get(server.url("/x")));
    let (first, second) = tokio::join!(get(), get());
    assert!(matches!(first.unwrap_err(), HttpError::Deadline { .. }));
    assert!(matches!(second.unwrap_err(), HttpError::Deadline { .. }));
    assert_eq!(server.count(), 1);
    assert!(get().await.is_ok());
}

#[tokio::test]
async fn plain_http_works_without_trusted_certificates() {
    const NAME: &str = "limits::plain_http_works_without_trusted_certificates";
    if std::env::var_os("SSL_CERT_FILE").as_deref() != Some("/nowhere".as_ref()) {
        // Run this test again in a process with its own environment.
        let mut machine = std::process::Command::new(std::env::current_exe().unwrap());
        machine.args([NAME, "--exact"]).env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere");
        let output = machine.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    assert!(http.read(&permits.read, Request::get(server.url("/x"))).await.is_ok());
    let url = Url::parse("https://127.0.0.1:1/x").unwrap();
    let error = http.read(&permits.read, Request::get(url)).await.unwrap_err();
    assert!(matches!(error, HttpError::SetUp(_)), "{error:?}");
}
