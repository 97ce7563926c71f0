//! The blobs of a journal, in a directory or in a bucket that the journal may share with other users.

mod outage;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Permits, ReadPermit, WritePermit};
use qontract_client_blobs::{
    Blob, BlobContent, BlobHead, BlobKey, BlobLayer, BlobOperation, BlobPage, BlobReader, BlobWriter, Blobs,
    BlobsError, Cursor, Etag, LayeredBlobs, Precondition,
};
use qontract_telemetry::journal_metrics::{JournalMetrics, JournalOperation};

use outage::Outage;

/// The blobs of a store whose keys begin with a prefix. Callers use the keys without this prefix.
///
/// Blobs are written with the permit of the journal, because the permit of a run may be limited to the requests of
/// its targets. A caller without a write permit still cannot write. If the store does not respond, requests fail
/// immediately for a while. Failed requests are counted.
pub struct JournalBlobs {
    blobs: Arc<dyn Blobs>,
    prefix: &'static str,
    permits: Permits,
}

/// Lets requests fail immediately while the store does not respond and counts failed requests.
struct JournalLayer {
    outage: Outage,
    metrics: JournalMetrics,
}

impl BlobLayer for JournalLayer {
    fn send<'a, T: Send + 'a>(
        &'a self,
        operation: BlobOperation,
        request: BoxFuture<'a, Result<T, BlobsError>>,
    ) -> BoxFuture<'a, Result<T, BlobsError>> {
        async move {
            let result = self.outage.call(request).await;
            // A failed precondition is a normal result, so it is not counted as a failure.
            if result.as_ref().is_err_and(|error| !matches!(error, BlobsError::Stale { .. })) {
                self.metrics.count_error(match operation {
                    BlobOperation::Read => JournalOperation::Read,
                    BlobOperation::Write => JournalOperation::Write,
                });
            }
            result
        }
        .boxed()
    }
}

impl JournalBlobs {
    /// Creates the blobs below `prefix`, which are written with these permits.
    pub fn new(
        blobs: Arc<dyn Blobs>,
        prefix: &'static str,
        permits: Permits,
        metrics: JournalMetrics,
    ) -> Self {
        let layer = JournalLayer { outage: Outage::default(), metrics };
        Self { blobs: Arc::new(LayeredBlobs::new(blobs, layer)), prefix, permits }
    }

    fn own<'a>(&'a self, permit: &'a WritePermit) -> &'a WritePermit {
        self.permits.write.as_ref().unwrap_or(permit)
    }

    fn key(&self, key: &BlobKey) -> Result<BlobKey, BlobsError> {
        BlobKey::new(format!("{}{key}", self.prefix))
    }
}

impl BlobReader for JournalBlobs {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        async move {
            let key = self.key(key)?;
            self.blobs.get(permit, &key).await
        }
        .boxed()
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        async move {
            let key = self.key(key)?;
            self.blobs.head(permit, &key).await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        async move {
            let below = format!("{}{prefix}", self.prefix);
            let mut page = self.blobs.list(permit, &below, cursor).await?;
            for entry in &mut page.entries {
                if let Some(rest) = entry.key.strip_prefix(self.prefix) {
                    entry.key = rest.to_owned();
                }
            }
            Ok(page)
        }
        .boxed()
    }

    fn keys<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, BlobsError>> {
        async move {
            let below = format!("{}{prefix}", self.prefix);
            let keys = self.blobs.keys(permit, &below).await?;
            let rest = |key: String| key.strip_prefix(self.prefix).map(str::to_owned);
            Ok(keys.into_iter().filter_map(rest).collect())
        }
        .boxed()
    }
}

impl BlobWriter for JournalBlobs {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        async move {
            let key = self.key(key)?;
            self.blobs.put(self.own(permit), &key, content, precondition).await
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move {
            let key = self.key(key)?;
            self.blobs.delete(self.own(permit), &key, expected).await
        }
        .boxed()
    }
}
