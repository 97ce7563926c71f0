//! The contract tests on a directory, and tests for directories only.

use std::sync::Arc;

use qontract_client_blobs::{BlobsError, Directory, Precondition};
use qontract_testkit::Scratch;

use crate::cases::CASES;
use crate::stores::Store;

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_passes_the_contract_tests() {
    for (name, case) in CASES {
        let scratch = Scratch::new();
        case(&Store::folder(&scratch.path().join(name))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volatile_directory_passes_the_contract_tests() {
    for (name, case) in CASES {
        let scratch = Scratch::new();
        let directory = Directory::new(scratch.path().join(name)).volatile();
        case(&Store::new(Arc::new(directory))).await;
    }
}

#[tokio::test]
async fn a_blob_is_a_file_that_can_be_edited() {
    let scratch = Scratch::new();
    let store = Store::folder(scratch.path());
    store.put("state/x/y", "{}", &Precondition::Any).await.unwrap();
    assert_eq!(scratch.read("state/x/y.blob"), "{}");
    scratch.write("state/x/y.blob", "[]");
    assert_eq!(store.text("state/x/y").await.as_deref(), Some("[]"));
}

#[tokio::test]
async fn two_stores_on_the_same_directory_do_not_both_win() {
    let scratch = Scratch::new();
    let stores = [Store::folder(scratch.path()), Store::folder(scratch.path())];
    let tries = (0..100).map(|number| {
        let store = &stores[number % 2];
        async move { store.put("lock", &number.to_string(), &Precondition::IfAbsent).await }
    });
    let outcomes = futures_util::future::join_all(tries).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
}

#[tokio::test]
async fn links_are_not_followed() {
    let (scratch, elsewhere) = (Scratch::new(), Scratch::new());
    elsewhere.write("x.blob", "theirs");
    scratch.link("out", &elsewhere.path().display().to_string());
    scratch.link("y.blob", &elsewhere.path().join("x.blob").display().to_string());
    let store = Store::folder(scratch.path());
    for name in ["out/x", "y"] {
        let error = store.put(name, "ours", &Precondition::Any).await.unwrap_err();
        assert!(matches!(error, BlobsError::File { .. }), "{error:?}");
        store.delete(name, None).await.unwrap_err();
        let key = crate::stores::key(name);
        store.blobs.get(store.read(), &key).await.unwrap_err();
    }
    assert_eq!(store.keys("").await, Vec::<String>::new());
    assert_eq!(elsewhere.read("x.blob"), "theirs");
}
