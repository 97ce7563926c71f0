//! Which redirects are followed.

use qontract_access::Mode;
use qontract_client_http::{HttpError, Method, Request, Secret, StatusCode};

use crate::loopback::{Loopback, Reply, reply, reply_with};
use crate::{run, settings};

async fn moving(to: &str) -> Loopback {
    let location = format!("location: {to}");
    let script = move |_: usize, line: &str| {
        if line.contains(" /old") { reply_with("302 Found", &location) } else { reply("200 OK", line) }
    };
    Loopback::start(script).await
}

#[tokio::test]
async fn a_read_follows_a_redirect_within_the_origin() {
    let server = moving("/new?x=1").await;
    let (permits, http) = run(Mode::DryRun, settings());
    let response = http.read(&permits.read, Request::get(server.url("/old"))).await.unwrap();
    assert_eq!(response.body, b"GET /new?x=1 HTTP/1.1");
}

#[tokio::test]
async fn a_read_does_not_follow_a_redirect_to_another_origin() {
    let other = Loopback::start(|_, _| reply("200 OK", "")).await;
    let server = moving(other.url("/new?token=t").as_str()).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let request = Request::get(server.url("/old")).secret_header("authorization", &Secret::new("s3cret"));
    let error = http.read(&permits.read, request).await.unwrap_err();
    let HttpError::Redirect { to, status, .. } = &error else { panic!("{error}") };
    assert_eq!((to.as_str(), *status), (other.url("/").as_str().trim_end_matches('/'), StatusCode::FOUND));
    assert!(!error.is_transient());
    assert_eq!((server.count(), other.count()), (1, 0));
}

#[tokio::test]
async fn a_write_does_not_follow_redirects() {
    let server = moving("/new").await;
    let (permits, http) = run(Mode::Real, settings());
    let write = permits.write.unwrap();
    for method in [Method::PUT, Method::POST, Method::GET] {
        let error = http.write(&write, Request::new(method, server.url("/old"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
    }
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let server = moving("/old").await;
    let (permits, http) = run(Mode::DryRun, settings());
    let error = http.read(&permits.read, Request::get(server.url("/old"))).await.unwrap_err();
    assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
    assert_eq!(server.count(), 6);
}

#[tokio::test]
async fn a_redirect_without_a_location_is_an_error() {
    let server = Loopback::start(|_, _| Reply::Full("301 Moved Permanently", String::new(), String::new()));
    let server = server.await;
    let (permits, http) = run(Mode::DryRun, settings());
    let error = http.read(&permits.read, Request::get(server.url("/old"))).await.unwrap_err();
    assert!(error.to_string().ends_with("redirect to `nowhere` not followed"), "{error}");
}
