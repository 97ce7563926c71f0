//! Reads from KV 2: versions, formats, missing secrets.

use qontract_client_secrets::{SecretReader as _, SecretRef, ValueFormat};
use qontract_testkit::vault::TestVault;
use serde_json::json;

use crate::fixture::{VaultFixture, app_role, root};

#[tokio::test]
async fn without_a_version_the_latest_is_read() {
    let server = TestVault::start();
    server.put("creds/forge", &json!({"token": "old"}));
    server.put("creds/forge", &json!({"token": "new", "port": 443, "on": true}));
    let desk = VaultFixture::new(&server.url(), root());
    assert_eq!(desk.read("secret/creds/forge", "token").await.unwrap(), "new");
    assert_eq!(desk.read_version("secret/creds/forge", "token", Some(1)).await.unwrap(), "old");
    assert_eq!(desk.read("secret/creds/forge", "port").await.unwrap(), "443");
    let all = desk.vault.read_all(&desk.permits.read, "secret/creds/forge", None).await.unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["on", "port", "token"]);
}

#[tokio::test]
async fn errors_contain_path_field_and_mount() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    let desk = VaultFixture::new(&server.url(), root());
    let check = async |path: &str, field: &str, version, expect: &str| {
        assert_eq!(desk.read_version(path, field, version).await.unwrap_err(), expect);
    };
    check("secret/b", "x", None, "secret `secret/b` of mount `secret/` not found").await;
    check("secret/a", "x", Some(2), "secret `secret/a`, version 2, of mount `secret/` not found").await;
    check("secret/a", "y", None, "secret `secret/a` of mount `secret/` has no field `y`").await;
    check("other/a", "x", None, "secret `other/a` of mount `other/` not found").await;
    check("secret", "x", None, "`secret` is not a valid secret path: it names a mount, not a secret in it")
        .await;
    check(
        "secret/../sys/mounts",
        "x",
        None,
        "`secret/../sys/mounts` is not a valid secret path: it contains a `.` or `..` segment",
    )
    .await;
}

#[tokio::test]
async fn base64_is_decoded() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "czNjcmV0"}));
    let desk = VaultFixture::new(&server.url(), root());
    let reference = SecretRef { format: ValueFormat::Base64, ..SecretRef::new("secret/a", "x") };
    let secret = desk.vault.read(&desk.permits.read, &reference).await.unwrap();
    assert_eq!(secret.expose(), "s3cret");
}

#[tokio::test]
async fn special_characters_in_a_path_are_escaped() {
    let server = TestVault::start();
    server.put("a b/c?d#e%2f", &json!({"x": "odd"}));
    let desk = VaultFixture::new(&server.url(), root());
    assert_eq!(desk.read("secret/a b/c?d#e%2f", "x").await.unwrap(), "odd");
}

#[tokio::test]
async fn a_denied_secret_is_not_absent_and_causes_no_login() {
    let server = TestVault::start();
    server.put("hidden", &json!({"x": "s3cret"}));
    server.deny("secret/data/hidden");
    let desk = VaultFixture::new(&server.url(), app_role(&server));
    let expect = "access to secret `secret/hidden` of mount `secret/` denied";
    for _ in 0..2 {
        assert_eq!(desk.read("secret/hidden", "x").await.unwrap_err(), expect);
    }
    assert_eq!(server.requests("POST /v1/auth/approle/login"), 1);
}

#[tokio::test]
async fn if_the_mount_query_is_denied_the_configuration_is_read() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.deny("sys/internal/");
    let desk = VaultFixture::new(&server.url(), app_role(&server));
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    assert_eq!(server.requests("GET /v1/secret/config"), 1);
}

#[tokio::test]
async fn if_both_are_denied_the_version_is_not_guessed() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    server.deny("sys/internal/");
    server.deny("secret/config");
    let desk = VaultFixture::new(&server.url(), app_role(&server));
    let expect = "access to secret `secret/a` of mount `secret/` denied";
    assert_eq!(desk.read("secret/a", "x").await.unwrap_err(), expect);
}
