//! Which requests are retried, and how often.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_http::{HttpError, Method, Request, Settings, StatusCode};

use crate::loopback::{Loopback, Reply, reply, reply_with};
use crate::{run, settings};

/// Reads from a server that replies with `failure` twice, and checks the number of requests.
async fn read(failure: Reply, expect: usize) -> Result<StatusCode, HttpError> {
    let server =
        Loopback::start(move |number, _| if number < 2 { failure.clone() } else { reply("200 OK", "") });
    let server = server.await;
    let (permits, http) = run(Mode::DryRun, settings());
    let outcome = http.read(&permits.read, Request::get(server.url("/x"))).await;
    assert_eq!(server.count(), expect);
    outcome.map(|response| response.status)
}

#[tokio::test]
async fn a_transient_failure_is_retried() {
    for status in
        ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]
    {
        assert_eq!(read(reply(status, "later"), 3).await.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_broken_connection_is_retried() {
    assert_eq!(read(Reply::Nothing, 3).await.unwrap(), StatusCode::OK);
    assert_eq!(read(Reply::Cut, 3).await.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn a_permanent_failure_is_not_retried() {
    for status in ["400 Bad Request", "401 Unauthorized", "404 Not Found", "500 Internal Server Error"] {
        let error = read(reply(status, "no"), 1).await.unwrap_err();
        assert!(!error.is_transient());
        assert!(error.to_string().ends_with(&format!("{status}: no")), "{error}");
    }
}

#[tokio::test]
async fn retries_are_bounded() {
    let server = Loopback::start(|_, _| reply("503 Service Unavailable", "")).await;
    let (permits, http) = run(Mode::DryRun, Settings { retries: 2, ..settings() });
    let error = http.read(&permits.read, Request::get(server.url("/x"))).await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert!(error.is_transient());
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn only_idempotent_writes_are_retried() {
    let server = Loopback::start(|_, _| reply("503 Service Unavailable", "")).await;
    let (permits, http) = run(Mode::Real, Settings { retries: 1, ..settings() });
    let write = permits.write.unwrap();
    let mut before = 0;
    for (method, expect) in [(Method::POST, 1), (Method::PATCH, 1), (Method::PUT, 2), (Method::DELETE, 2)] {
        http.write(&write, Request::new(method.clone(), server.url("/x"))).await.unwrap_err();
        assert_eq!(server.count() - before, expect, "{method}");
        before = server.count();
    }
    let keyed = Request::new(Method::POST, server.url("/x")).header("idempotency-key", "1").idempotent();
    http.write(&write, keyed).await.unwrap_err();
    assert_eq!(server.count() - before, 2);
}

#[tokio::test]
async fn a_retry_after_past_the_deadline_fails_immediately() {
    let server = Loopback::start(|_, _| reply_with("429 Too Many Requests", "retry-after: 3600")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let error = http.read(&permits.read, Request::get(server.url("/x"))).await.unwrap_err();
    let HttpError::Status { retry_after, .. } = &error else { panic!("{error}") };
    assert_eq!(*retry_after, Some(Duration::from_hours(1)));
    assert!(error.is_transient());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_retry_after_delays_all_callers() {
    let server = Loopback::start(|_, _| reply_with("429 Too Many Requests", "retry-after: 3600")).await;
    let settings = settings();
    let (permits, http) = run(Mode::DryRun, settings.clone());
    http.read(&permits.read, Request::get(server.url("/x"))).await.unwrap_err();
    let hasty = Settings { deadline: Duration::from_secs(5), ..settings };
    let (permits, other) = run(Mode::DryRun, hasty);
    let error = other.read(&permits.read, Request::get(server.url("/y"))).await.unwrap_err();
    assert!(matches!(error, HttpError::BackOff { .. }), "{error}");
    assert!(error.is_transient());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_retry_after_of_zero_is_retried() {
    let outcome = read(reply_with("429 Too Many Requests", "retry-after: 0"), 3).await;
    assert_eq!(outcome.unwrap(), StatusCode::OK);
}

#[tokio::test]
async fn an_accepted_status_is_not_retried() {
    let server = Loopback::start(|_, _| reply("503 Service Unavailable", "busy")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let request = Request::get(server.url("/x")).accept_status(StatusCode::SERVICE_UNAVAILABLE);
    let response = http.read(&permits.read, request).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body), (503, b"busy".to_vec()));
    assert_eq!(server.count(), 1);
}
