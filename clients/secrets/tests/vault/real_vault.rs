//! Tests against `RustyVault`, with KV 1.

use qontract_access::Mode;
use qontract_client_secrets::{Login, Secret, SecretsError, WriteOutcome};
use qontract_testkit::vault::RealVault;
use serde_json::json;

use crate::fixture::{VaultFixture, no_caching};

fn token(text: &str) -> Login {
    Login::Token(Secret::new(text))
}

#[tokio::test]
#[ignore = "needs QONTRACT_RVAULT; run by `cargo xtask test`"]
async fn a_secret_is_written_and_read() {
    let server = RealVault::start();
    let desk = VaultFixture::with(&server.url(), token(server.root()), Mode::Real, no_caching());
    let missing = "secret `secret/creds/forge` of mount `secret/` not found";
    assert_eq!(desk.read("secret/creds/forge", "token").await.unwrap_err(), missing);
    let values = [("token", "s3cret"), ("user", "ann")];
    assert_eq!(desk.write("secret/creds/forge", &values).await.unwrap(), WriteOutcome::Changed);
    assert_eq!(desk.write("secret/creds/forge", &values).await.unwrap(), WriteOutcome::Unchanged);
    assert_eq!(desk.read("secret/creds/forge", "token").await.unwrap(), "s3cret");
    // Each secret has only one version, whichever is requested.
    assert_eq!(desk.read_version("secret/creds/forge", "user", Some(7)).await.unwrap(), "ann");
    let no_field = "secret `secret/creds/forge` of mount `secret/` has no field `tokens`";
    assert_eq!(desk.read("secret/creds/forge", "tokens").await.unwrap_err(), no_field);
    server.put("secret/creds/forge", &json!({"token": "rotated"}));
    assert_eq!(desk.read("secret/creds/forge", "token").await.unwrap(), "rotated");
}

#[tokio::test]
#[ignore = "needs QONTRACT_RVAULT; run by `cargo xtask test`"]
async fn a_role_logs_in_and_a_wrong_secret_id_does_not() {
    let server = RealVault::start();
    server.put("secret/a", &json!({"x": "value"}));
    let (role_id, secret_id) = server.app_role();
    let login = |secret_id: &str| Login::AppRole {
        mount: "approle".to_owned(),
        role_id: Secret::new(role_id.as_str()),
        secret_id: Secret::new(secret_id),
    };
    let desk = VaultFixture::with(&server.url(), login(&secret_id), Mode::DryRun, no_caching());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    let error = VaultFixture::new(&server.url(), login("wrong")).failure("secret/a").await;
    assert!(matches!(error, SecretsError::Login { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs QONTRACT_RVAULT; run by `cargo xtask test`"]
async fn a_wrong_token_is_refused() {
    let server = RealVault::start();
    server.put("secret/a", &json!({"x": "value"}));
    let error = VaultFixture::new(&server.url(), token("wrong")).failure("secret/a").await;
    assert!(matches!(error, SecretsError::Login { .. }), "{error:?}");
    assert!(!error.is_transient());
}

#[tokio::test]
#[ignore = "needs QONTRACT_RVAULT; run by `cargo xtask test`"]
async fn a_sealed_vault_is_detected() {
    let server = RealVault::start();
    server.put("secret/a", &json!({"x": "value"}));
    let desk = VaultFixture::with(&server.url(), token(server.root()), Mode::DryRun, no_caching());
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
    server.seal();
    let error = desk.failure("secret/a").await;
    assert!(matches!(error, SecretsError::Sealed(_)), "{error:?}");
    server.unseal();
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
}
