//! Writes of a run that may write only within bounds.

use qontract_access::{AccessPermit, Mode, WriteBound, WriteBounds, WritePermit};
use qontract_client_http::{GuardRefusal, Http, HttpError, Method, Request, Url};
use qontract_testkit::bounded_permits;

use crate::loopback::{Loopback, reply, reply_with};
use crate::{run, settings};

/// The stack of a real run, and a permit for `PUT` and `POST` below `/mr/12/` of this server.
fn bounded(server: &Loopback) -> (Http, WritePermit) {
    let origin = server.url("/").origin().ascii_serialization();
    let bounds = WriteBounds::new([WriteBound::new(&origin, &["PUT", "POST"], "/mr/12/").expect("a bound")]);
    let permits = bounded_permits(bounds);
    (Http::new(&permits.read, settings()).expect("a stack"), permits.write.expect("a real run"))
}

#[tokio::test]
async fn only_writes_within_the_bounds_leave_the_process() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (http, permit) = bounded(&server);
    for (method, path) in [(Method::PUT, "/mr/12/labels?a=b"), (Method::POST, "/mr/12/notes")] {
        http.write(&permit, Request::new(method, server.url(path))).await.unwrap();
    }
    assert_eq!(server.count(), 2);
    let other = Loopback::start(|_, _| reply("200 OK", "")).await;
    let refused = [
        (Method::PUT, server.url("/mr/13/labels")),
        (Method::PUT, server.url("/mr/12")),
        (Method::DELETE, server.url("/mr/12/notes")),
        (Method::PATCH, server.url("/mr/12/notes")),
        (Method::PUT, server.url("/mr/12/../13")),
        (Method::PUT, server.url("/mr/12/%2e%2e/13")),
        (Method::PUT, server.url("/mr/12/..%2f13")),
        (Method::PUT, server.url("/mr/12//x")),
        (Method::PUT, other.url("/mr/12/labels")),
    ];
    for (method, url) in refused {
        let request = Request::new(method, url);
        let error = http.send(AccessPermit::Write(&permit), request).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused(GuardRefusal::OutOfBounds { .. })), "{error}");
        assert!(
            error.to_string().contains("the write permit of this run allows `POST,PUT http://127.0.0.1:"),
            "{error}"
        );
    }
    assert_eq!((server.count(), other.count()), (2, 0));
}

#[tokio::test]
async fn what_only_reads_needs_no_bound() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (http, permit) = bounded(&server);
    // A client reads before it writes, with the same permit.
    http.write(&permit, Request::get(server.url("/other"))).await.unwrap();
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_redirect_does_not_lead_out_of_the_bounds() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect", "302 Found"] {
        let server = Loopback::start(move |_, _| reply_with(status, "location: /mr/13/notes")).await;
        let (http, permit) = bounded(&server);
        let error =
            http.write(&permit, Request::new(Method::PUT, server.url("/mr/12/notes"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
        assert_eq!(server.count(), 1, "{status}");
    }
}

#[tokio::test]
async fn bounds_do_not_allow_writes_in_a_dry_run() {
    let server = Loopback::start(|_, _| reply("200 OK", "")).await;
    let (_, permit) = bounded(&server);
    let (_, dry) = run(Mode::DryRun, settings());
    let url: Url = server.url("/mr/12/notes");
    let error = dry.write(&permit, Request::new(Method::PUT, url)).await.unwrap_err();
    assert!(matches!(error, HttpError::Refused(GuardRefusal::DryRun(_))), "{error}");
    assert_eq!(server.count(), 0);
}
