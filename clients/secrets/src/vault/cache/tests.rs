//! Size and lifetime limits, and one request for concurrent reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, pending};
use tokio::time::advance;

use super::{Cache, Caching, Key};
use crate::error::SecretsError;
use crate::place::Place;
use crate::vault::Found;
use crate::{Fields, Secret};

const SECOND: Duration = Duration::from_secs(1);

/// A cache, and the number of reads through it.
struct Desk {
    cache: Arc<Cache>,
    reads: AtomicUsize,
}

impl Desk {
    fn new(entries: usize) -> Self {
        let caching = Caching { latest: 10 * SECOND, pinned: 100 * SECOND, entries };
        Self { cache: Arc::new(Cache::new(caching)), reads: AtomicUsize::new(0) }
    }

    /// Reads through the cache. The value is the number of the read, which takes time on the paused clock.
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

fn key(path: &str, version: Option<u64>) -> Key {
    Key { path: path.to_owned(), version }
}

fn found(value: &str) -> Found {
    Found { fields: Fields::from([("x".to_owned(), Secret::new(value))]), mount: "a/".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_latest_version_expires_before_a_pinned_one() {
    let desk = Desk::new(10);
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
    let desk = Desk::new(10);
    let answers = join_all((0..1000).map(|_| desk.read("a", None))).await;
    assert!(answers.iter().all(|answer| answer == "0"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_and_not_cached() {
    let (desk, calls) = (Desk::new(10), Arc::new(AtomicUsize::new(0)));
    let fail = |_: Key| -> BoxFuture<'static, Result<Found, SecretsError>> {
        let calls = Arc::clone(&calls);
        async move {
            tokio::time::sleep(SECOND / 100).await;
            calls.fetch_add(1, Ordering::SeqCst);
            Err(SecretsError::NotFound(Place::new("a", None)))
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
    let desk = Desk::new(10);
    let stuck = desk.cache.get(key("a", None), |_| pending().boxed());
    assert!(stuck.now_or_never().is_none());
    assert_eq!(desk.read("a", None).await, "0");
}

#[tokio::test(start_paused = true)]
async fn the_entry_that_expires_first_is_evicted_first() {
    let desk = Desk::new(2);
    for (path, expect) in [("a", "0"), ("b", "1"), ("c", "2"), ("c", "2"), ("b", "1"), ("a", "3")] {
        assert_eq!(desk.read(path, None).await, expect, "{path}");
        advance(SECOND / 10).await;
        assert!(desk.cache.entries.len() <= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_began_before_a_write_is_not_cached() {
    let desk = Desk::new(10);
    let mut read = desk.read("a", None).boxed_local();
    assert!(read.as_mut().now_or_never().is_none());
    desk.cache.forget("a");
    assert_eq!(read.await, "0");
    assert_eq!(desk.read("a", None).await, "1");
}
