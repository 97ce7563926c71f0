//! Reading KV 2: versions, formats, what is not there.

use qontract_client_secrets::{Format, Reader as _, SecretRef};
use qontract_testkit::vault::TestVault;
use serde_json::json;

use crate::desk::{Desk, app_role, root};

#[tokio::test]
async fn without_a_version_it_is_the_latest() {
    let server = TestVault::start();
    server.put("creds/forge", &json!({"token": "old"}));
    server.put("creds/forge", &json!({"token": "new", "port": 443, "on": true}));
    let desk = Desk::new(&server.url(), root());
    assert_eq!(desk.read("secret/creds/forge", "token").await.unwrap(), "new");
    assert_eq!(desk.read_version("secret/creds/forge", "token", Some(1)).await.unwrap(), "old");
    assert_eq!(desk.read("secret/creds/forge", "port").await.unwrap(), "443");
    let all = desk.vault.read_all(&desk.permits.read, "secret/creds/forge", None).await.unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["on", "port", "token"]);
}

#[tokio::test]
async fn what_is_not_there_is_told_by_path_field_and_mount() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    let desk = Desk::new(&server.url(), root());
    let check = async |path: &str, field: &str, version, expect: &str| {
        assert_eq!(desk.read_version(path, field, version).await.unwrap_err(), expect);
    };
    check("secret/b", "x", None, "there is no secret `secret/b` of mount `secret/`").await;
    check("secret/a", "x", Some(2), "there is no secret `secret/a`, version 2, of mount `secret/`").await;
    check("secret/a", "y", None, "secret `secret/a` of mount `secret/` has no field `y`").await;
    check("other/a", "x", None, "there is no secret `other/a` of mount `other/`").await;
    check("secret", "x", None, "`secret` is no path of a secret: it names a mount, not a secret in it").await;
    check(
        "secret/../sys/mounts",
        "x",
        None,
        "`secret/../sys/mounts` is no path of a secret: it has a part of dots",
    )
    .await;
}

#[tokio::test]
async fn base64_is_decoded() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "czNjcmV0"}));
    let desk = Desk::new(&server.url(), root());
    let reference = SecretRef { format: Format::Base64, ..SecretRef::new("secret/a", "x") };
    let secret = desk.vault.read(&desk.permits.read, &reference).await.unwrap();
    assert_eq!(secret.expose(), "s3cret");
}

#[tokio::test]
async fn an_odd_path_stays_the_path_it_is() {
    let server = TestVault::start();
    server.put("a b/c?d#e%2f", &json!({"x": "odd"}));
    let desk = Desk::new(&server.url(), root());
    assert_eq!(desk.read("secret/a b/c?d#e%2f", "x").await.unwrap(), "odd");
}

#[tokio::test]
async fn what_is_denied_is_not_absent_and_costs_no_login() {
    let server = TestVault::start();
    server.put("hidden", &json!({"x": "s3cret"}));
    server.deny("secret/data/hidden");
    let desk = Desk::new(&server.url(), app_role(&server));
    let expect = "secret `secret/hidden` of mount `secret/` is denied to us";
    for _ in 0..2 {
        assert_eq!(desk.read("secret/hidden", "x").await.unwrap_err(), expect);
    }
    assert_eq!(server.requests("POST /v1/auth/approle/login"), 1);
}

#[tokio::test]
async fn without_leave_to_ask_for_the_mount_its_configuration_tells() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.deny("sys/internal/");
    let desk = Desk::new(&server.url(), app_role(&server));
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    assert_eq!(server.requests("GET /v1/secret/config"), 1);
}

#[tokio::test]
async fn without_leave_for_either_nothing_is_guessed() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.deny("sys/internal/");
    server.deny("secret/config");
    let desk = Desk::new(&server.url(), app_role(&server));
    let expect = "secret `secret/a` of mount `secret/` is denied to us";
    assert_eq!(desk.read("secret/a", "x").await.unwrap_err(), expect);
}
