//! Logins: begun, prolonged, and begun anew.

use std::time::Duration;

use futures_util::future::join_all;
use qontract_client_secrets::{Login, Secret};
use qontract_testkit::vault::{Role, TestVault};
use serde_json::json;

use crate::desk::{Desk, app_role, forgetful, pass};
use qontract_access::Mode;

const LOGIN: &str = "POST /v1/auth/approle/login";
const RENEWAL: &str = "POST /v1/auth/token/renew-self";

/// A server with a secret, and a client that remembers no answers.
fn start() -> (TestVault, Desk) {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    let login = app_role(&server);
    let desk = Desk::with(&server.url(), login, Mode::DryRun, forgetful());
    (server, desk)
}

#[tokio::test]
async fn one_login_serves_all_even_in_a_dry_run() {
    let (server, desk) = start();
    let reads = join_all((0..50).map(|_| desk.read("secret/a", "x"))).await;
    assert!(reads.iter().all(|read| read.as_deref() == Ok("value")), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 1);
}

#[tokio::test]
async fn a_token_is_prolonged_before_it_ends_and_replaced_when_it_is_too_old() {
    let (server, desk) = start();
    // 600 s each, at most 1500 s: due after two thirds of what is left
    for (after, renewals, logins) in
        [(0, 0, 1), (399, 0, 1), (1, 1, 1), (400, 2, 1), (400, 3, 1), (200, 4, 1), (67, 4, 2)]
    {
        pass(&server, Duration::from_secs(after)).await;
        assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
        assert_eq!((server.requests(RENEWAL), server.requests(LOGIN)), (renewals, logins), "{after}");
    }
}

#[tokio::test]
async fn a_token_that_was_revoked_is_replaced_once_for_all() {
    let (server, desk) = start();
    desk.read("secret/a", "x").await.unwrap();
    server.revoke_all();
    let reads = join_all((0..20).map(|_| desk.read("secret/a", "x"))).await;
    assert!(reads.iter().all(|read| read.as_deref() == Ok("value")), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 2);
}

#[tokio::test]
async fn a_token_that_ended_while_we_slept_is_replaced() {
    let (server, desk) = start();
    desk.read("secret/a", "x").await.unwrap();
    pass(&server, Duration::from_hours(1)).await;
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    assert_eq!((server.requests(RENEWAL), server.requests(LOGIN)), (0, 2));
}

#[tokio::test]
async fn who_is_not_let_in_is_told_how_it_was_tried_and_nothing_else() {
    let server = TestVault::start();
    let login = Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new("role-8"),
        secret_id: Secret::new("pass-8"),
    };
    let desk = Desk::new(&server.url(), login);
    let reads = join_all((0..20).map(|_| desk.read("secret/a", "x"))).await;
    let expect = "Vault does not let us in by the role at `auth/approle`: 400 Bad Request";
    assert!(reads.iter().all(|read| read.as_deref().map_err(String::as_str) == Err(expect)), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 1);
}

#[tokio::test]
async fn a_given_token_is_prolonged_too() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.add(Role::AppRole {
        role_id: "r".to_owned(),
        secret_id: "s".to_owned(),
        lives: [Duration::from_mins(10), Duration::from_mins(100)],
    });
    let given = server.token("approle", &json!({"role_id": "r", "secret_id": "s"}));
    let desk = Desk::with(&server.url(), Login::Token(Secret::new(given)), Mode::DryRun, forgetful());
    for (after, renewals) in [(0, 0), (500, 1), (500, 2)] {
        pass(&server, Duration::from_secs(after)).await;
        assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
        assert_eq!(server.requests(RENEWAL), renewals, "{after}");
    }
    server.revoke_all();
    let expect = "Vault does not let us in by the token that was given: 403 Forbidden";
    assert_eq!(desk.read("secret/a", "x").await.unwrap_err(), expect);
}
