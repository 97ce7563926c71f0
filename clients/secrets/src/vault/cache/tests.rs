//! Tests the size and lifetime limits, and that concurrent reads share one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, pending};
use tokio::time::advance;

use super::{CacheKey, CacheSettings, SecretCache};
use crate::error::SecretsError;
use crate::location::SecretLocation;
use crate::vault::FetchedSecret;
use crate::{Secret, SecretFields};

const SECOND: Duration = Duration::from_secs(1);

/// A cache, and the number of reads through it.
struct CacheFixture {
    cache: Arc<SecretCache>,
    reads: AtomicUsize,
}

impl CacheFixture {
    fn new(entries: usize) -> Self {
        let caching =
            CacheSettings { latest_ttl: 10 * SECOND, pinned_ttl: 100 * SECOND, max_entries: entries };
        Self { cache: Arc::new(SecretCache::new(caching)), reads: AtomicUsize::new(0) }
    }

    /// Reads through the cache. The value is the number of the read. A read takes time on the paused clock.
    async fn read(&self, path: &str, version: Option<u64>) -> String {
        let found = self.cache.get(key(path, version), |_| {
            let number = self.reads.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(SECOND / 100).await;
                Ok(found(&number.to_string()))
            }
            .boxed()
        });
        found.await.unwrap().fields["x"].expose().to_owned()
    }
}

fn key(path: &str, version: Option<u64>) -> CacheKey {
    CacheKey { path: path.to_owned(), version }
}

fn found(value: &str) -> FetchedSecret {
    FetchedSecret {
        fields: SecretFields::from([("x".to_owned(), Secret::new(value))]),
        mount: "a/".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_latest_version_expires_before_a_pinned_one() {
    let desk = CacheFixture::new(10);
    assert_eq!((desk.read("a", None).await, desk.read("a", Some(1)).await), ("0".to_owned(), "1".to_owned()));
    advance(9 * SECOND).await;
    assert_eq!(desk.read("a", None).await, "0");
    advance(SECOND).await;
    assert_eq!((desk.read("a", None).await, desk.read("a", Some(1)).await), ("2".to_owned(), "1".to_owned()));
    advance(90 * SECOND).await;
    assert_eq!(desk.read("a", Some(1)).await, "3");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_concurrent_reads_are_one_request() {
    let desk = CacheFixture::new(10);
    let answers = join_all((0..1000).map(|_| desk.read("a", None))).await;
    assert!(answers.iter().all(|answer| answer == "0"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_and_not_cached() {
    let (desk, calls) = (CacheFixture::new(10), Arc::new(AtomicUsize::new(0)));
    let fail = |_: CacheKey| -> BoxFuture<'static, Result<FetchedSecret, SecretsError>> {
        let calls = Arc::clone(&calls);
        async move {
            tokio::time::sleep(SECOND / 100).await;
            calls.fetch_add(1, Ordering::SeqCst);
            Err(SecretsError::NotFound(SecretLocation::new("a", None)))
        }
        .boxed()
    };
    let failures = join_all((0..10).map(|_| desk.cache.get(key("a", None), fail))).await;
    assert!(failures.iter().all(Result::is_err));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(desk.read("a", None).await, "0");
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_read_is_dropped() {
    let desk = CacheFixture::new(10);
    let stuck = desk.cache.get(key("a", None), |_| pending().boxed());
    assert!(stuck.now_or_never().is_none());
    assert_eq!(desk.read("a", None).await, "0");
}

#[tokio::test(start_paused = true)]
async fn the_entry_that_expires_first_is_evicted_first() {
    let desk = CacheFixture::new(2);
    for (path, expect) in [("a", "0"), ("b", "1"), ("c", "2"), ("c", "2"), ("b", "1"), ("a", "3")] {
        assert_eq!(desk.read(path, None).await, expect, "{path}");
        advance(SECOND / 10).await;
        assert!(desk.cache.entries.len() <= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_began_before_a_write_is_not_cached() {
    let desk = CacheFixture::new(10);
    let mut read = desk.read("a", None).boxed_local();
    assert!(read.as_mut().now_or_never().is_none());
    desk.cache.invalidate("a");
    assert_eq!(read.await, "0");
    assert_eq!(desk.read("a", None).await, "1");
}
