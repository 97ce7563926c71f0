//! Requests, and responses that no query should get.

use super::ClientFixture;
use qontract_client_http::{HttpError, Secret};
use qontract_client_prometheus::{PrometheusError, PrometheusLogin, QueryRange};
use qontract_testkit::{BodyFraming, Loopback, Reply};
use std::time::Duration;

const EMPTY: &str = r#"{"status": "success", "data": {"resultType": "vector", "result": []}}"#;

fn reply(status: &'static str, body: &str) -> Reply {
    Reply::Full(status, String::new(), body.to_owned())
}

/// The error of a query to a server that replies in this way.
async fn error(script: impl Fn() -> Reply + Send + Sync + 'static) -> PrometheusError {
    let server = Loopback::start(move |_| script());
    let client = ClientFixture::of(server.url(), &PrometheusLogin::None);
    client.prometheus.query(&client.permits.read, "up", None).await.expect_err("an error")
}

#[tokio::test]
async fn a_query_is_a_get_below_the_path_of_the_url() {
    let server = Loopback::start(|_| reply("200 OK", EMPTY));
    let client = ClientFixture::of(&format!("{}/prometheus/", server.url()), &PrometheusLogin::None);
    let query = "sum by (shard_id) (x{a=\"b c\"})";
    let permit = &client.permits.read;
    assert_eq!(client.prometheus.query(permit, query, Some(1_700_000_000)).await.expect("a result"), []);
    let head = server.seen().concat();
    let expected = "GET /prometheus/api/v1/query?query=sum+by+%28shard_id%29+%28x%7Ba%3D%22b+c%22%7D%29&time=1700000000 HTTP/1.1";
    assert_eq!(head.lines().next(), Some(expected));
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    let basic = PrometheusLogin::Basic { user: "ann".to_owned(), password: Secret::new("pa55word") };
    let token = PrometheusLogin::Token(Secret::new("t0ken-text"));
    for (login, header) in
        [(basic, "authorization: Basic YW5uOnBhNTV3b3Jk"), (token, "authorization: Bearer t0ken-text")]
    {
        let server = Loopback::start(|_| reply("401 Unauthorized", "no: YW5uOnBhNTV3b3Jk t0ken-text"));
        let client = ClientFixture::of(server.url(), &login);
        let error = client.prometheus.query(&client.permits.read, "up", None).await.expect_err("denied");
        assert!(matches!(error, PrometheusError::Denied { sent: true, .. }), "{error:?}");
        assert!(server.seen().concat().contains(header));
        let shown = format!("{error:?} {login:?} {:?}", client.prometheus);
        for secret in ["pa55word", "YW5uOnBhNTV3b3Jk", "t0ken-text"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    let missing = error(|| reply("403 Forbidden", "")).await;
    assert_eq!(missing.to_string(), "Prometheus requires credentials, and none are configured");
}

#[tokio::test]
async fn an_error_of_the_server_has_its_message() {
    let body =
        r#"{"status": "error", "errorType": "bad_data", "error": "parse error: unclosed left parenthesis"}"#;
    for status in ["400 Bad Request", "422 Unprocessable Entity", "200 OK"] {
        let error = error(move || reply(status, body)).await;
        assert_eq!(
            error.to_string(),
            "Prometheus refused the query (bad_data): parse error: unclosed left parenthesis"
        );
        assert!(!error.is_transient());
    }
    let busy =
        error(|| reply("422 Unprocessable Entity", r#"{"status": "error", "errorType": "timeout"}"#)).await;
    assert!(busy.is_transient());
}

#[tokio::test]
async fn an_html_page_is_malformed() {
    for status in ["200 OK", "400 Bad Request"] {
        let error = error(move || reply(status, "\n<!DOCTYPE html><title>Log in</title>")).await;
        assert_eq!(error.to_string(), "the response is not a Prometheus result: it is an HTML page");
    }
    let unavailable = error(|| reply("503 Service Unavailable", "<html>starting</html>")).await;
    assert!(
        matches!(unavailable, PrometheusError::Request(_)) && unavailable.is_transient(),
        "{unavailable:?}"
    );
}

#[tokio::test]
async fn a_value_that_is_not_finite_is_an_error() {
    for value in ["NaN", "+Inf", "-Inf"] {
        let error = error(move || {
            let result = format!(r#"[{{"metric": {{"shard_id": "0"}}, "value": [1700000000, "{value}"]}}]"#);
            reply(
                "200 OK",
                &format!(
                    r#"{{"status": "success", "data": {{"resultType": "vector", "result": {result}}}}}"#
                ),
            )
        });
        assert!(matches!(error.await, PrometheusError::NotFinite { .. }));
    }
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read() {
    let size = 10 << 20;
    let sized = error(move || reply("200 OK", &" ".repeat(size))).await;
    let endless = error(|| Reply::Endless("200 OK", String::new(), "[".to_owned(), "1,".to_owned())).await;
    for error in [sized, endless] {
        assert!(matches!(error, PrometheusError::Request(HttpError::BodyTooLarge { .. })), "{error:?}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_slow_server_ends_at_the_deadline() {
    for script in [|| Reply::Never, || Reply::Drip("200 OK")] {
        let server = Loopback::start(move |_| script());
        let timeout = Duration::from_millis(200);
        let client = ClientFixture::with_timeout(server.url(), &PrometheusLogin::None, timeout);
        let error = client.prometheus.query(&client.permits.read, "up", None).await.expect_err("no response");
        assert!(matches!(error, PrometheusError::Request(HttpError::AttemptTimeout { .. })), "{error:?}");
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn a_truncated_response_is_an_error() {
    for framing in [BodyFraming::Length, BodyFraming::Chunks] {
        let error = error(move || Reply::Half("200 OK", EMPTY.to_owned(), framing)).await;
        assert!(matches!(error, PrometheusError::Request(HttpError::Exchange { .. })), "{error:?}");
    }
    let closed = error(|| Reply::Half("200 OK", EMPTY.to_owned(), BodyFraming::Close)).await;
    assert!(matches!(closed, PrometheusError::Malformed { .. }), "{closed:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let location = "location: http://elsewhere.example/login\r\n";
    let error = error(move || Reply::Full("302 Found", location.to_owned(), String::new())).await;
    let PrometheusError::Request(HttpError::Redirect { to, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(to, "http://elsewhere.example");
}

#[tokio::test]
async fn a_range_has_one_window_per_step_also_without_data() {
    let server = Loopback::start(|_| {
        let series = |slot, values| format!(r#"{{"metric": {{"shard_id": "{slot}"}}, "values": {values}}}"#);
        let first = series("0", r#"[[1000, "1"], [1120, "3"]]"#);
        let second = series("1", r#"[[1120, "4.5"]]"#);
        reply(
            "200 OK",
            &format!(
                r#"{{"status": "success", "data": {{"resultType": "matrix", "result": [{first}, {second}]}}}}"#
            ),
        )
    });
    let client = ClientFixture::of(server.url(), &PrometheusLogin::None);
    let range = QueryRange { start: 1_000, steps: 3, step: Duration::from_mins(1) };
    let windows = client.prometheus.run_seconds_by_window(&client.permits.read, "q", "shard_id", range).await;
    assert_eq!(format!("{:?}", windows.expect("windows")), r#"[{"0": 1.0}, {}, {"0": 3.0, "1": 4.5}]"#);
    assert!(
        server.seen().concat().starts_with("GET /api/v1/query_range?end=1120&query=q&start=1000&step=60 ")
    );
}
