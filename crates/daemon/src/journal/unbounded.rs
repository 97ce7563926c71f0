//! The blobs of the journal, to which the bounds of a run do not apply.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Permits, ReadPermit, WritePermit};
use qontract_client_blobs::{
    Blob, BlobContent, BlobHead, BlobKey, BlobPage, BlobReader, BlobWriter, Blobs, BlobsError, Cursor, Etag,
    Precondition,
};

/// The blobs of a store, written with the permit of the journal: the permit of a run may be limited to the requests
/// of its targets. A caller without a write permit cannot write here either.
pub struct UnboundedBlobs {
    /// The store.
    pub blobs: Arc<dyn Blobs>,
    /// The permits of the journal.
    pub permits: Permits,
}

impl UnboundedBlobs {
    fn own<'a>(&'a self, permit: &'a WritePermit) -> &'a WritePermit {
        self.permits.write.as_ref().unwrap_or(permit)
    }
}

impl BlobReader for UnboundedBlobs {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        self.blobs.get(permit, key)
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        self.blobs.head(permit, key)
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        self.blobs.list(permit, prefix, cursor)
    }

    fn keys<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, BlobsError>> {
        self.blobs.keys(permit, prefix)
    }
}

impl BlobWriter for UnboundedBlobs {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        async move { self.blobs.put(self.own(permit), key, content, precondition).await }.boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move { self.blobs.delete(self.own(permit), key, expected).await }.boxed()
    }
}
