//! The contract.

use qontract_client_secrets::WriteOutcome::{Changed, Unchanged};
use qontract_testkit::Scratch;
use qontract_testkit::vault::TestVault;

use super::{StoreFixture, file, vault};

/// Runs a test on both stores.
macro_rules! contract {
    ($($test:ident),* $(,)?) => {
        mod on_a_file {
            $(#[tokio::test]
            async fn $test() {
                let scratch = super::Scratch::new();
                super::$test(&super::file(&scratch, "")).await;
            })*
        }

        mod on_vault {
            $(#[tokio::test]
            async fn $test() {
                let server = super::TestVault::start();
                super::$test(&super::vault(&server)).await;
            })*
        }
    };
}

contract! {
    what_is_written_is_read,
    a_write_replaces_all_fields,
    secrets_may_be_nested,
    equal_values_are_not_written,
    a_missing_secret_or_field_is_an_error,
    a_path_that_could_lead_elsewhere_is_refused,
}

async fn what_is_written_is_read(store: &StoreFixture) {
    let odd = "tab\t, quote \" and ', backslash \\, newline\nand \u{1f511}";
    assert_eq!(store.write("creds/shop", &[("token", odd), ("empty", "")]).await, Ok(Changed));
    assert_eq!(store.read("creds/shop", "token").await.as_deref(), Ok(odd));
    assert_eq!(store.read("creds/shop", "empty").await.as_deref(), Ok(""));
}

async fn a_write_replaces_all_fields(store: &StoreFixture) {
    store.write("a/b", &[("x", "1"), ("y", "2")]).await.unwrap();
    assert_eq!(store.write("a/b", &[("x", "3")]).await, Ok(Changed));
    assert_eq!(store.read("a/b", "x").await.as_deref(), Ok("3"));
    assert!(store.read("a/b", "y").await.is_err());
}

async fn secrets_may_be_nested(store: &StoreFixture) {
    for (path, value) in [("a/b/c", "1"), ("a/b", "2"), ("a", "3"), ("a/b", "4")] {
        assert_eq!(store.write(path, &[("x", value)]).await, Ok(Changed));
    }
    for (path, value) in [("a/b/c", "1"), ("a/b", "4"), ("a", "3")] {
        assert_eq!(store.read(path, "x").await.as_deref(), Ok(value), "{path}");
    }
}

async fn equal_values_are_not_written(store: &StoreFixture) {
    assert_eq!(store.write("a", &[("x", "1")]).await, Ok(Changed));
    assert_eq!(store.write("a", &[("x", "1")]).await, Ok(Unchanged));
    assert_eq!(store.write("a", &[("x", "1"), ("y", "")]).await, Ok(Changed));
}

async fn a_missing_secret_or_field_is_an_error(store: &StoreFixture) {
    assert!(store.read("nowhere", "x").await.unwrap_err().contains("not found"));
    store.write("a", &[("x", "1")]).await.unwrap();
    assert!(store.read("a", "z").await.unwrap_err().contains("has no field `z`"));
}

async fn a_path_that_could_lead_elsewhere_is_refused(store: &StoreFixture) {
    for path in ["a/../b", "a//b", "a/./b", "a\nb"] {
        assert!(store.write(path, &[("x", "1")]).await.unwrap_err().contains("not a valid secret path"));
    }
}
