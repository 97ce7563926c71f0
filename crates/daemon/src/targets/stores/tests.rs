//! Tests of blob stores.

use futures_util::FutureExt as _;
use qontract_access::Mode;
use qontract_client_blobs::{AddCondition, StateStore};
use qontract_client_secrets::ConfigSecrets;
use qontract_testkit::{Scratch, permits};
use serde_json::json;

use super::*;

fn buckets(config: &str, secrets: &str) -> BlobStores {
    let tables = toml::from_str(config).unwrap();
    let secrets = Arc::new(ConfigSecrets::new(secrets.parse().unwrap()));
    BlobStores::in_buckets(&permits(Mode::Real).read, tables, secrets)
}

fn error<T>(result: anyhow::Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[tokio::test]
async fn a_sandbox_has_every_bucket_and_the_state_store() {
    let scratch = Scratch::new();
    let permits = permits(Mode::Real);
    let stores = BlobStores::in_sandbox(&permits.read, scratch.path());
    let write = permits.write.as_ref().unwrap();
    let key = BlobKey::new("a/b").unwrap();
    let blobs = stores.blobs("reports").unwrap();
    blobs.put(write, &key, &BlobContent::new("x"), &Precondition::IfAbsent).await.unwrap();
    assert_eq!(scratch.read("blobs/reports/a/b.blob"), "x");
    assert!(stores.blobs("other").unwrap().get(&permits.read, &key).await.unwrap().is_none());
    let state = StateStore::new(stores.state().unwrap(), "promoter");
    state.add(write, "sha", &json!("abc").into(), AddCondition::IfAbsent).await.unwrap();
    assert_eq!(scratch.read("state/state/promoter/sha.blob"), "\"abc\"");
    for name in ["", "..", ".lock", "a/b", "a\0b"] {
        assert!(error(stores.blobs(name)).ends_with("is not the name of a bucket"), "{name:?}");
    }
}

#[tokio::test]
async fn a_sandbox_of_a_dry_run_is_not_written() {
    let scratch = Scratch::new();
    let stolen = permits(Mode::Real).write.unwrap();
    let stores = BlobStores::in_sandbox(&permits(Mode::DryRun).read, scratch.path());
    let (key, content) = (BlobKey::new("a").unwrap(), BlobContent::new("x"));
    for store in [stores.blobs("reports").unwrap(), stores.state().unwrap()] {
        store.put(&stolen, &key, &content, &Precondition::Any).await.unwrap_err();
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_store_that_is_not_configured_names_its_key() {
    let stores = buckets("[blobs.reports]\nbucket = 'b'\n", "");
    assert_eq!(
        error(stores.blobs("report")),
        "no bucket `report` is configured: set `targets.blobs.report.bucket`, or pass `--sandbox DIR`"
    );
    assert!(stores.blobs("reports").is_ok());
    assert_eq!(
        error(stores.state()),
        "no state store is configured: set `targets.state.bucket` or `APP_INTERFACE_STATE_BUCKET`, or pass `--sandbox DIR`"
    );
    let stores = buckets("[state]\nbucket = 'b'\nendpoint = 'https://h/path'\n", "");
    assert_eq!(error(stores.state()), "`targets.state.endpoint`: a path is not allowed");
    assert!(error(BlobStores::unused().state()).starts_with("a command that only reads data"));
}

#[test]
fn a_key_that_cannot_be_read_is_an_error_of_the_call_that_names_the_setting() {
    let config = "[blobs.reports]\nbucket = 'b'\nsecret = 'creds/s3'\n";
    let check = |secrets: &str, expect: &str| {
        let blobs = buckets(config, secrets).blobs("reports").unwrap();
        let read = permits(Mode::Real).read;
        let error = blobs.list(&read, "", None).now_or_never().unwrap().unwrap_err();
        let what = "reading the key of bucket `b` (`targets.blobs.reports.secret`) failed";
        assert_eq!(error.to_string(), format!("{what}: {expect}"));
    };
    check("", "secret `creds/s3` not found");
    check("[creds.s3]\naws_access_key_id = 'x'\n", "`creds/s3` has no field `aws_secret_access_key`");
}

#[tokio::test]
async fn a_rotated_key_opens_the_bucket_again() {
    let secret = |text: &str| -> Arc<dyn SecretReader> {
        let tables = format!("[s]\naws_access_key_id = 'id'\naws_secret_access_key = '{text}'\n");
        Arc::new(ConfigSecrets::new(tables.parse().unwrap()))
    };
    let bucket = |secrets| {
        let table = BucketTable {
            bucket: "b".to_owned(),
            region: None,
            endpoint: None,
            secret: Some("s".to_owned()),
        };
        let permit = permits(Mode::Real).read;
        let bucket = Bucket::of_table("targets.state", &table).unwrap();
        LazyBucket { bucket, permit, secrets, opened: tokio::sync::Mutex::default() }
    };
    let mut lazy = bucket(secret("old"));
    lazy.client().await.unwrap();
    let key = |lazy: &LazyBucket| {
        let opened = lazy.opened.try_lock().unwrap();
        match opened.as_ref().map(|open| open.credentials.clone()) {
            Some(S3Credentials::Keys { secret, .. }) => secret.expose().to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(key(&lazy), "old");
    lazy.secrets = secret("new");
    lazy.client().await.unwrap();
    assert_eq!(key(&lazy), "new");
}

#[test]
fn the_environment_of_the_peer_describes_its_state_store() {
    let check = |credentials: StateCredentials, expect: Result<Option<(&str, Option<u64>)>, &str>| {
        let state = StateSettings { bucket: "b".to_owned(), region: Some("r".to_owned()), credentials };
        let bucket = Bucket::of_variables(state).map_err(|error| error.to_string());
        let secret = bucket.as_ref().map(|bucket| {
            assert_eq!((bucket.settings.bucket.as_str(), bucket.settings.region.as_str()), ("b", "r"));
            bucket.secret.as_ref().map(|secret| (secret.path.as_str(), secret.version))
        });
        assert_eq!(secret.map_err(String::as_str), expect);
    };
    let vault = |version: Option<&str>| StateCredentials::Vault {
        path: "a/b".to_owned(),
        version: version.map(str::to_owned),
    };
    check(vault(None), Ok(Some(("a/b", None))));
    check(vault(Some("3")), Ok(Some(("a/b", Some(3)))));
    check(vault(Some("x")), Err("`APP_INTERFACE_STATE_VAULT_SECRET_VERSION` is not a number"));
    let profile = StateCredentials::Profile { name: "p".to_owned(), file: "aws".into() };
    check(profile, Ok(None));
    check(
        StateCredentials::Account { name: "a".to_owned() },
        Err("`APP_INTERFACE_STATE_BUCKET_ACCOUNT` is not supported: set `targets.state.secret` instead"),
    );
}
