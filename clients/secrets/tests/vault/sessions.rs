//! Logins, renewals and repeated logins.

use std::time::Duration;

use futures_util::future::join_all;
use qontract_client_secrets::{Login, Secret};
use qontract_testkit::vault::{LoginRole, TestVault};
use serde_json::json;

use crate::fixture::{VaultFixture, advance_clocks, app_role, no_caching};
use qontract_access::Mode;

const LOGIN: &str = "POST /v1/auth/approle/login";
const RENEWAL: &str = "POST /v1/auth/token/renew-self";

/// A server with a secret, and a client without a cache.
fn start() -> (TestVault, VaultFixture) {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    let login = app_role(&server);
    let desk = VaultFixture::with(&server.url(), login, Mode::DryRun, no_caching());
    (server, desk)
}

#[tokio::test]
async fn concurrent_reads_share_one_login_also_in_a_dry_run() {
    let (server, desk) = start();
    let reads = join_all((0..50).map(|_| desk.read("secret/a", "x"))).await;
    assert!(reads.iter().all(|read| read.as_deref() == Ok("value")), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 1);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_replaced_at_its_maximum_lifetime() {
    let (server, desk) = start();
    // 600 s each, at most 1500 s: renewal is due after two thirds of the remaining time
    for (after, renewals, logins) in
        [(0, 0, 1), (399, 0, 1), (1, 1, 1), (400, 2, 1), (400, 3, 1), (200, 4, 1), (67, 4, 2)]
    {
        advance_clocks(&server, Duration::from_secs(after)).await;
        assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
        assert_eq!((server.requests(RENEWAL), server.requests(LOGIN)), (renewals, logins), "{after}");
    }
}

#[tokio::test]
async fn a_revoked_token_is_replaced_by_one_login() {
    let (server, desk) = start();
    desk.read("secret/a", "x").await.unwrap();
    server.revoke_all();
    let reads = join_all((0..20).map(|_| desk.read("secret/a", "x"))).await;
    assert!(reads.iter().all(|read| read.as_deref() == Ok("value")), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 2);
}

#[tokio::test]
async fn an_expired_token_is_replaced() {
    let (server, desk) = start();
    desk.read("secret/a", "x").await.unwrap();
    advance_clocks(&server, Duration::from_hours(1)).await;
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    assert_eq!((server.requests(RENEWAL), server.requests(LOGIN)), (0, 2));
}

#[tokio::test]
async fn a_failed_login_shows_only_the_login_method_and_the_status() {
    let server = TestVault::start();
    let login = Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new("role-8"),
        secret_id: Secret::new("pass-8"),
    };
    let desk = VaultFixture::new(&server.url(), login);
    let reads = join_all((0..20).map(|_| desk.read("secret/a", "x"))).await;
    let expect = "Vault login with the role at `auth/approle` failed: 400 Bad Request";
    assert!(reads.iter().all(|read| read.as_deref().map_err(String::as_str) == Err(expect)), "{reads:?}");
    assert_eq!(server.requests(LOGIN), 1);
}

#[tokio::test]
async fn a_given_token_is_renewed_too() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.add(LoginRole::AppRole {
        role_id: "r".to_owned(),
        secret_id: "s".to_owned(),
        ttls: [Duration::from_mins(10), Duration::from_mins(100)],
    });
    let given = server.token("approle", &json!({"role_id": "r", "secret_id": "s"}));
    let desk =
        VaultFixture::with(&server.url(), Login::Token(Secret::new(given)), Mode::DryRun, no_caching());
    for (after, renewals) in [(0, 0), (500, 1), (500, 2)] {
        advance_clocks(&server, Duration::from_secs(after)).await;
        assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
        assert_eq!(server.requests(RENEWAL), renewals, "{after}");
    }
    server.revoke_all();
    let expect = "Vault login with the given token failed: 403 Forbidden";
    assert_eq!(desk.read("secret/a", "x").await.unwrap_err(), expect);
}
