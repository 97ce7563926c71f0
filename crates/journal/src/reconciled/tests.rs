//! Tests of the bundles of reconciled data, with two concurrent processes.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, Permits};
use qontract_client_blobs::{BlobLayer, BlobOperation, BlobWriter as _, Directory, LayeredBlobs};
use qontract_testkit::{Scratch, permits};

use super::*;

/// Lets another process act before the operation with this number.
struct InterleavedLayer {
    inner: Directory,
    number: AtomicUsize,
    at: usize,
    other: Box<dyn Fn(Directory) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl BlobLayer for InterleavedLayer {
    fn send<'a, T: Send + 'a>(
        &'a self,
        _: BlobOperation,
        request: BoxFuture<'a, Result<T, BlobsError>>,
    ) -> BoxFuture<'a, Result<T, BlobsError>> {
        async move {
            if self.number.fetch_add(1, Ordering::Relaxed) == self.at {
                (self.other)(self.inner.clone()).await;
            }
            request.await
        }
        .boxed()
    }
}

/// Creates a directory in which another process acts before the operation with this number.
fn interleaved(
    blobs: &Directory,
    at: usize,
    other: impl Fn(Directory) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> LayeredBlobs<InterleavedLayer> {
    let (inner, number) = (blobs.clone(), AtomicUsize::new(0));
    let layer = InterleavedLayer { inner, number, at, other: Box::new(other) };
    LayeredBlobs::new(Arc::new(blobs.clone()), layer)
}

fn write() -> Permits {
    permits(Mode::Real)
}

fn digest() -> String {
    Sha256::of(b"bundle").to_string()
}

async fn store(blobs: impl Blobs + 'static, now: Timestamp) -> Result<(), ReconciledError> {
    let bundles = ReconciledBundles::new(Arc::new(blobs));
    let pointer = ReconciledPointer::new("repo".to_owned(), digest(), now);
    let permits = write();
    let over = bundles.read_pointer("loop").await?.etag;
    let bundle = Some(|| Ok(b"bundle".to_vec()));
    let update = PointerUpdate { of_loop: "loop", pointer: &pointer, over: over.as_ref() };
    bundles.store(permits.write.as_ref().unwrap(), update, bundle).await.map(drop)
}

async fn prune(blobs: impl Blobs + 'static, now: Timestamp) -> usize {
    let permits = write();
    let bundles = ReconciledBundles::new(Arc::new(blobs));
    bundles.prune(permits.write.as_ref().unwrap(), "remover", now).await.unwrap()
}

/// Creates a directory with a bundle that no pointer names.
async fn unnamed_bundle(scratch: &Scratch) -> Directory {
    let blobs = Directory::new(scratch.path());
    let (permits, key) = (write(), bundle_key(&digest()).unwrap());
    let content = BlobContent::new("bundle");
    blobs.put(permits.write.as_ref().unwrap(), &key, &content, &Precondition::Any).await.unwrap();
    blobs
}

async fn has_bundle(blobs: &Directory) -> bool {
    ReconciledBundles::new(Arc::new(blobs.clone())).bundle(&digest()).await.unwrap().is_some()
}

/// Checks the state after an interleaving: a pointer that was stored without an error names a bundle that exists, and
/// a pointer whose storing failed can be stored again.
async fn check(blobs: &Directory, stored: Result<(), ReconciledError>, case: &str) -> bool {
    match stored {
        Ok(()) => assert!(has_bundle(blobs).await, "{case}"),
        Err(ReconciledError::BundleRemoved(_)) => {
            store(blobs.clone(), Timestamp::now()).await.unwrap();
            assert!(has_bundle(blobs).await, "{case}");
            return true;
        }
        Err(error) => panic!("{case}: {error}"),
    }
    false
}

#[tokio::test]
async fn a_bundle_is_not_removed_while_its_pointer_is_stored() {
    let mut refused = 0;
    for at in 0..12 {
        let scratch = Scratch::new();
        let blobs = unnamed_bundle(&scratch).await;
        // The other process stores a pointer before this operation of the process that removes the bundle.
        let result = Arc::new(parking_lot::Mutex::new(None));
        let seen = Arc::clone(&result);
        let other = move |blobs: Directory| {
            let seen = Arc::clone(&seen);
            async move { *seen.lock() = Some(store(blobs, Timestamp::now()).await) }.boxed()
        };
        prune(interleaved(&blobs, at, other), Timestamp::now()).await;
        let Some(stored) = result.lock().take() else { break };
        refused += usize::from(check(&blobs, stored, &format!("store at {at}")).await);
    }
    assert!(refused > 0, "the announcement was seen");
    for at in 0..12 {
        let scratch = Scratch::new();
        let blobs = unnamed_bundle(&scratch).await;
        let removed = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&removed);
        let other = move |blobs: Directory| {
            let seen = Arc::clone(&seen);
            async move {
                seen.fetch_add(prune(blobs, Timestamp::now()).await, Ordering::Relaxed);
            }
            .boxed()
        };
        let stored = store(interleaved(&blobs, at, other), Timestamp::now()).await;
        check(&blobs, stored, &format!("prune at {at}")).await;
    }
}

#[tokio::test]
async fn the_announcement_of_a_killed_process_expires() {
    let scratch = Scratch::new();
    let blobs = unnamed_bundle(&scratch).await;
    let now = Timestamp::now();
    let (permits, key) = (write(), BlobKey::new(format!("{REMOVING}{}/killed", digest())).unwrap());
    let content = BlobContent::new(serde_json::to_vec(&now).unwrap());
    blobs.put(permits.write.as_ref().unwrap(), &key, &content, &Precondition::Any).await.unwrap();
    assert!(matches!(store(blobs.clone(), now).await, Err(ReconciledError::BundleRemoved(_))));
    store(blobs, now + MAX_REMOVAL).await.unwrap();
}

#[tokio::test]
async fn a_pointer_that_another_process_replaced_is_not_overwritten() {
    let scratch = Scratch::new();
    let bundles = ReconciledBundles::new(Arc::new(Directory::new(scratch.path())));
    let permits = write();
    let store = async |data: &str, over: Option<&Etag>| {
        let pointer = ReconciledPointer::new(data.to_owned(), digest(), Timestamp::now());
        let bundle = Some(|| Ok(b"bundle".to_vec()));
        let update = PointerUpdate { of_loop: "loop", pointer: &pointer, over };
        bundles.store(permits.write.as_ref().unwrap(), update, bundle).await
    };
    let first = store("one", None).await.unwrap();
    assert!(matches!(store("two", None).await, Err(ReconciledError::Replaced)));
    store("two", Some(&first)).await.unwrap();
    assert!(matches!(store("three", Some(&first)).await, Err(ReconciledError::Replaced)));
    assert_eq!(bundles.pointer("loop").await.unwrap().unwrap().data, "two");
}
