//! Writes: only if the values differ, with check-and-set, and never in a dry run.

use futures_util::future::join_all;
use qontract_access::Mode;
use qontract_client_secrets::{SecretWriter as _, SecretsError, WriteOutcome};
use qontract_testkit::permits;
use qontract_testkit::vault::TestVault;
use serde_json::json;

use crate::fixture::{VaultFixture, error_chain, fields, no_caching, root};

const WRITES: &str = "PUT ";

#[tokio::test]
async fn equal_values_are_not_written() {
    let server = TestVault::start();
    let desk = VaultFixture::new(&server.url(), root());
    let write = async |values: &[(&str, &str)]| desk.write("secret/a/b", values).await.unwrap();
    assert_eq!(write(&[("x", "1"), ("y", "2")]).await, WriteOutcome::Changed);
    assert_eq!(write(&[("x", "1"), ("y", "2")]).await, WriteOutcome::Unchanged);
    assert_eq!(write(&[("x", "1")]).await, WriteOutcome::Changed);
    assert_eq!(server.requests(WRITES), 2);
    assert_eq!(desk.read_version("secret/a/b", "y", Some(1)).await.unwrap(), "2");
    assert!(desk.read("secret/a/b", "y").await.is_err());
}

#[tokio::test]
async fn a_deleted_secret_is_written_again() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "1"}));
    server.delete("a");
    let desk = VaultFixture::new(&server.url(), root());
    assert!(desk.read("secret/a", "x").await.is_err());
    assert_eq!(desk.write("secret/a", &[("x", "1")]).await.unwrap(), WriteOutcome::Changed);
    assert_eq!(desk.read_version("secret/a", "x", Some(2)).await.unwrap(), "1");
}

#[tokio::test]
async fn of_concurrent_writes_one_wins_and_the_others_are_stale() {
    let server = TestVault::start();
    let desk = VaultFixture::new(&server.url(), root());
    desk.read("secret/a", "x").await.unwrap_err();
    let held = server.hold();
    let values: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let writes = values.iter().map(|value| {
        let desk = &desk;
        async move { desk.write("secret/a", &[("x", value)]).await }
    });
    // All have sent the same read before the first is answered.
    let (outcomes, ()) = tokio::join!(join_all(writes), async {
        while server.requests("GET /v1/secret/data/a") < 9 {
            tokio::task::yield_now().await;
        }
        drop(held);
    });
    let changed = outcomes.iter().filter(|outcome| matches!(outcome, Ok(WriteOutcome::Changed))).count();
    let stale = outcomes.iter().filter(|outcome| matches!(outcome, Err(SecretsError::Stale(_)))).count();
    assert_eq!((changed, changed + stale), (1, 8), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().err().is_none_or(SecretsError::is_transient)));
    assert_eq!(
        desk.read_version("secret/a", "x", Some(2)).await.unwrap_err(),
        "secret `secret/a`, version 2, of mount `secret/` not found"
    );
}

#[tokio::test]
async fn a_dry_run_sends_nothing_whichever_permit_is_passed() {
    let server = TestVault::start();
    server.put("a", &json!({"x": "1"}));
    let desk = VaultFixture::with(&server.url(), root(), Mode::DryRun, no_caching());
    let stolen = permits(Mode::Real).write.unwrap();
    let error = desk.vault.write(&stolen, "secret/a", &fields(&[("x", "2")])).await.unwrap_err();
    assert!(error_chain(&error).ends_with("is refused: this is a dry run"), "{}", error_chain(&error));
    assert_eq!(server.requests(""), 0);
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_client_for_a_dry_run_does_not_write() {
    let server = TestVault::start();
    let desk = VaultFixture::new(&server.url(), root());
    let rehearsal = desk.vault.for_run(&permits(Mode::DryRun).read);
    let permit = desk.permits.write.as_ref().unwrap();
    rehearsal.write(permit, "secret/a", &fields(&[("x", "2")])).await.unwrap_err();
    assert_eq!(server.requests(WRITES), 0);
    desk.write("secret/a", &[("x", "2")]).await.unwrap();
}
