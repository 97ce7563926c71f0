//! Hostile servers in place of Vault: their responses are refused, within limits, and no error contains a
//! secret.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_http::{Http, Proxies, Settings};
use qontract_client_secrets::{Login, MAX_ANSWER_BYTES, Secret, SecretsError, Vault, VaultSettings};
use qontract_testkit::{Loopback, Reply, Scratch, permits};

use crate::fixture::{VaultFixture, error_chain, root};

/// Maximum number of bytes a server can send before the client closes the connection: its limit plus socket
/// buffers.
const MAX_SENT: usize = 24 << 20;

fn desk(url: &str, login: Login) -> VaultFixture {
    desk_until(url, login, Duration::from_secs(20))
}

/// A client whose requests have this deadline, with all attempts.
fn desk_until(url: &str, login: Login, deadline: Duration) -> VaultFixture {
    let permits = permits(Mode::DryRun);
    let settings = Settings {
        deadline,
        attempt_timeout: Duration::from_secs(20),
        retries: 1,
        initial_backoff: Duration::from_millis(1),
        proxies: Proxies::Never,
        ..Settings::default()
    };
    let http = Http::new(&permits.read, settings).unwrap();
    VaultFixture { vault: Vault::new(&http, VaultSettings::new(url.parse().unwrap(), login)), permits }
}

fn json(body: &str) -> Reply {
    Reply::Full("200 OK", "content-type: application/json\r\n".to_owned(), body.to_owned())
}

/// All login methods.
fn logins(scratch: &Scratch) -> [Login; 3] {
    let token_file = scratch.write("token", "jwt-s3cret");
    let app_role = Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new("role-s3cret"),
        secret_id: Secret::new("pass-s3cret"),
    };
    let pod = Login::Kubernetes { mount: "kubernetes".to_owned(), role: "qontract".to_owned(), token_file };
    [app_role, pod, root()]
}

/// The error of a read when every request gets this reply.
async fn check(login: Login, reply: impl Fn() -> Reply + Send + Sync + 'static) -> (SecretsError, Loopback) {
    let server = Loopback::start(move |_| reply());
    let error = desk(server.url(), login).failure("secret/a").await;
    let text = format!("{} {error:?}", error_chain(&error));
    for word in ["s3cret", "root", "hvs."] {
        assert!(!text.contains(word), "{text}");
    }
    assert!(text.len() < 4000 && !text.contains('\u{1b}'), "{text}");
    (error, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_response_is_read_up_to_its_limit() {
    let scratch = Scratch::new();
    for login in logins(&scratch) {
        let endless = || Reply::Endless("200 OK", String::new(), "{".to_owned(), "\"a\":1,".to_owned());
        let (error, server) = check(login, endless).await;
        assert!(
            error_chain(&error).contains(&format!("the response has more than {MAX_ANSWER_BYTES} bytes")),
            "{error:?}"
        );
        assert!(!error.is_transient());
        assert_eq!(server.seen().len(), 1, "it is not retried");
        assert!(server.sent() < MAX_SENT, "{}", server.sent());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_response_times_out_at_the_deadline() {
    let scratch = Scratch::new();
    for login in logins(&scratch) {
        for status in ["200 OK", "503 Service Unavailable"] {
            let server = Loopback::start(move |_| Reply::Drip(status));
            let desk = desk_until(server.url(), login.clone(), Duration::from_millis(200));
            let error = desk.failure("secret/a").await;
            assert!(error_chain(&error).contains("timed out after 200 ms"), "{}", error_chain(&error));
            assert!(error.is_transient());
        }
    }
}

#[tokio::test]
async fn invalid_responses_are_login_errors() {
    let scratch = Scratch::new();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies = [
        "",
        "<html><script>alert(1)</script></html>",
        "[]",
        "null",
        "7",
        "{}",
        r#"{"auth": null, "data": null}"#,
        r#"{"auth": {"client_token": 7}, "data": []}"#,
        r#"{"auth": {"client_token": ["hvs.x"]}, "data": "text"}"#,
        r#"{"auth": {"client_token": ""}}"#,
        r#"{"auth": {"client_token": "hvs.a\r\nx-vault-namespace: other"}}"#,
        r#"{"auth": {"client_token": "hvs.\u0000\u001b[2J"}}"#,
        r#"{"auth": {"client_token": "hvs.\u202e"}}"#,
        r#"{"auth": {"client_token": "hvs.a b"}}"#,
        deep.as_str(),
    ];
    for login in logins(&scratch) {
        for body in bodies {
            let owned = body.to_owned();
            let (error, server) = check(login.clone(), move || json(&owned)).await;
            let shown: String = body.chars().take(80).collect();
            assert!(matches!(error, SecretsError::Malformed { .. }), "{login:?} {shown}: {error:?}");
            assert!(!error.is_transient());
            let heads = server.seen().concat();
            assert!(!heads.contains("x-vault-namespace") && !heads.contains("hvs."), "{heads}");
        }
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let scratch = Scratch::new();
    for login in logins(&scratch) {
        for status in
            ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
        {
            let other = Loopback::start(|_| json(r#"{"auth": {"client_token": "hvs.x"}}"#));
            let location = format!("location: {}/v1/auth/token\r\n", other.url());
            let (error, _) =
                check(login.clone(), move || Reply::Full(status, location.clone(), String::new())).await;
            assert!(!error.is_transient(), "{error:?}");
            assert_eq!(other.seen(), [""; 0], "{login:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_mount_with_an_unknown_version_is_refused() {
    for (data, why) in [
        (r#"{"path": "secret/", "type": "kv", "options": {"version": "3"}}"#, "its version is unknown"),
        (r#"{"path": "secret/", "type": "kv", "options": {"version": 2}}"#, "its version is unknown"),
        (r#"{"path": "secret/", "type": "transit", "options": null}"#, "its engine is not KV"),
        (r#"{"path": "sys/", "type": "kv", "options": null}"#, "the mount is not a prefix of the path"),
        (r#"{"path": 7, "type": "kv", "options": null}"#, "it has no path"),
    ] {
        let server = Loopback::start(move |line| match line {
            line if line.contains("/mounts/") => json(&format!("{{\"data\": {data}}}")),
            line if line.contains("lookup-self") => json(r#"{"data": {}}"#),
            _ => json(r#"{"data": {"x": "value of version 1"}}"#),
        });
        let error = desk(server.url(), root()).failure("secret/a").await;
        let expect = format!("malformed Vault response for the mount of `secret/a`: {why}");
        assert_eq!(error.to_string(), expect);
        assert!(!server.seen().concat().contains("/v1/secret"), "{:?}", server.seen());
    }
}

#[tokio::test]
async fn a_mount_that_cannot_be_queried_is_version_1_only_if_its_configuration_says_so() {
    let check = async |status: &'static str, body: &'static str, expect: Result<&str, &str>| {
        let server = Loopback::start(move |line| match line {
            line if line.contains("/mounts/") => Reply::Full("404 Not Found", String::new(), "{}".to_owned()),
            line if line.contains("lookup-self") => json(r#"{"data": {}}"#),
            line if line.contains("/config") => Reply::Full(status, String::new(), body.to_owned()),
            line if line.contains("/data/") => {
                json(r#"{"data": {"data": {"x": "two"}, "metadata": {"version": 1}}}"#)
            }
            _ => json(r#"{"data": {"x": "one"}}"#),
        });
        let read = desk(server.url(), root()).read("secret/a", "x").await;
        assert_eq!(read.as_deref().map_err(String::as_str), expect, "{status} {body}");
    };
    let unknown = "malformed Vault response for mount `secret/`: its version is unknown";
    check("404 Not Found", r#"{"errors": []}"#, Ok("one")).await;
    check("200 OK", r#"{"data": {"a": "b"}}"#, Ok("one")).await;
    check("200 OK", r#"{"data": {"max_versions": 0}}"#, Ok("two")).await;
    check("200 OK", r#"{"data": {"max_versions": "0"}}"#, Err(unknown)).await;
    check("200 OK", r#"{"data": null}"#, Err(unknown)).await;
    check("200 OK", r#"{"data": [1]}"#, Err(unknown)).await;
}
