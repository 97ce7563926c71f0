//! The requests that a dry run may send.

use qontract_access::Mode;
use qontract_client_http::{GuardRefusal, HttpError, Method, Request, SafePost, SafeRehearsal};

use crate::loopback::{Loopback, reply};
use crate::{run, settings};

const UNSAFE: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

#[tokio::test]
async fn a_dry_run_sends_no_unsafe_request_even_with_the_permit_of_another_run() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    assert!(permits.write.is_none());
    let stolen = qontract_testkit::permits(Mode::Real).write.unwrap();
    for method in UNSAFE {
        let request = Request::new(method, server.url("/x"));
        let error = http.write(&stolen, request.clone()).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(GuardRefusal::DryRun(_))), "{error}");
        let error = http.read(&permits.read, request).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(GuardRefusal::UnsafeRead(_))), "{error}");
        assert!(!error.is_transient());
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_stack_for_another_run_has_the_mode_of_that_run() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (real, http) = run(Mode::Real, settings());
    let write = real.write.unwrap();
    let dry = http.for_run(&qontract_testkit::permits(Mode::DryRun).read);
    let request = Request::new(Method::DELETE, server.url("/x"));
    assert!(dry.write(&write, request.clone()).await.is_err());
    assert_eq!(server.count(), 0);
    http.write(&write, request).await.unwrap();
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_read_cannot_write_in_a_real_run_either() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (permits, http) = run(Mode::Real, settings());
    for method in UNSAFE {
        let error = http.read(&permits.read, Request::new(method, server.url("/x"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(GuardRefusal::UnsafeRead(_))), "{error}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is what is tested")]
async fn a_dry_run_sends_a_post_that_only_reads() {
    let server = Loopback::start(|_, _| reply("200 OK", "{}")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let query = Request::post(server.url("/graphql"), "application/json", b"{}".into());
    assert!(http.read(&permits.read, query.clone()).await.is_err());
    let http = http.with_safe_post(SafePost::new(&server.url("/"), "/graphql"));
    assert_eq!(http.read(&permits.read, query).await.unwrap().body, b"{}");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is what is tested")]
async fn a_dry_run_sends_rehearsals() {
    let server = Loopback::start(|_, _| reply("200 OK", "{}")).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let rehearsed = |query: &str| {
        let url = server.url(&format!("/api/v1/namespaces?{query}"));
        Request::post(url, "application/json", b"{}".into())
    };
    assert!(http.read(&permits.read, rehearsed("dryRun=All")).await.is_err());
    let http = http.with_safe_rehearsal(SafeRehearsal::new(&server.url("/")));
    http.read(&permits.read, rehearsed("dryRun=All")).await.unwrap();
    assert!(http.read(&permits.read, rehearsed("dryRun=All&dryRun=")).await.is_err());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_dry_run_reads() {
    let server = Loopback::start(|_, line| reply("200 OK", line)).await;
    let (permits, http) = run(Mode::DryRun, settings());
    let response = http.read(&permits.read, Request::get(server.url("/a?b=c"))).await.unwrap();
    assert_eq!(response.body, b"GET /a?b=c HTTP/1.1");
    let head = Request::new(Method::HEAD, server.url("/a"));
    assert!(http.read(&permits.read, head).await.unwrap().body.is_empty());
}
