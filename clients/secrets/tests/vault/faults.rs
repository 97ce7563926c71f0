//! A Vault that is sealed, broken, slow or unreachable: the errors differ, and none contains a secret.

use std::time::Duration;

use qontract_access::Mode;
use qontract_client_http::{Http, Proxies, Settings};
use qontract_client_secrets::{SecretsError, Vault, VaultSettings};
use qontract_testkit::permits;
use qontract_testkit::vault::{TestVault, VaultFault};
use serde_json::json;

use crate::fixture::{VaultFixture, app_role, error_chain, root};

#[tokio::test]
async fn a_sealed_vault_is_a_transient_error() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "value"}));
    let desk = VaultFixture::new(&server.url(), root());
    server.fail(Some(VaultFault::Sealed));
    let error = desk.failure("secret/a").await;
    assert!(matches!(error, SecretsError::Sealed(_)) && error.is_transient(), "{error:?}");
    assert_eq!(error.to_string(), format!("Vault at `{}` is sealed", server.url()));
    server.fail(None);
    assert_eq!(desk.read("secret/a", "x").await.unwrap(), "value");
}

#[tokio::test]
async fn server_errors_are_transient_and_others_are_not() {
    let server = TestVault::start();
    for (status, transient) in [(500, true), (501, true), (502, true), (503, true), (418, false)] {
        let desk = VaultFixture::new(&server.url(), root());
        server.fail(Some(VaultFault::Status(status)));
        let error = desk.failure("secret/a").await;
        assert!(matches!(error, SecretsError::Unreachable { .. }), "{error:?}");
        assert_eq!(error.is_transient(), transient, "{status}");
    }
}

#[tokio::test]
async fn an_unreachable_vault_is_transient() {
    let server = TestVault::start();
    let url = server.url();
    drop(server);
    let error = VaultFixture::new(&url, root()).failure("secret/a").await;
    assert!(matches!(error, SecretsError::Unreachable { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn a_slow_vault_times_out() {
    let server = TestVault::start();
    let permits = permits(Mode::DryRun);
    let limits = Settings {
        attempt_timeout: Duration::from_millis(50),
        retries: 0,
        proxies: Proxies::Never,
        ..Settings::default()
    };
    let http = Http::new(&permits.read, limits).unwrap();
    let vault = Vault::new(&http, VaultSettings::new(server.url().parse().unwrap(), root()));
    let held = server.hold();
    let error = VaultFixture { vault, permits }.failure("secret/a").await;
    drop(held);
    assert!(
        error_chain(&error).contains("timed out after 50 ms") && error.is_transient(),
        "{}",
        error_chain(&error)
    );
}

#[tokio::test]
async fn no_error_contains_a_request_that_the_server_echoes() {
    let server = TestVault::start();
    let login = app_role(&server);
    let desk = VaultFixture::new(&server.url(), login.clone());
    desk.write("secret/a", &[("x", "s3cret")]).await.unwrap();
    let silent = |text: String| {
        for word in ["pass-7", "role-7", "s3cret", "n3w", "hvs."] {
            assert!(!text.contains(word), "{text}");
        }
    };
    for status in [400, 403, 418, 500, 503] {
        server.fail(Some(VaultFault::Status(status)));
        for error in [
            VaultFixture::new(&server.url(), login.clone()).failure("secret/a").await,
            desk.failure("secret/b").await,
            desk.write("secret/a", &[("x", "n3w")]).await.unwrap_err(),
        ] {
            silent(error_chain(&error));
            silent(format!("{error:?}"));
        }
        server.fail(None);
    }
    silent(format!("{:?} {login:?}", desk.vault));
}
