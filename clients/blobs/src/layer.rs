//! A store whose requests pass through a layer, which may observe, delay or refuse them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

use crate::blob::{Blob, BlobContent, BlobHead, BlobKey, BlobPage, Cursor, Etag, Precondition};
use crate::error::BlobsError;
use crate::{BlobReader, BlobWriter, Blobs};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobOperation {
    /// A read or a listing.
    Read,
    /// A write or a deletion.
    Write,
}

/// Sends the requests of a store.
pub trait BlobLayer: Send + Sync {
    /// Sends a request, or returns an error in its place.
    fn send<'a, T: Send + 'a>(
        &'a self,
        operation: BlobOperation,
        request: BoxFuture<'a, Result<T, BlobsError>>,
    ) -> BoxFuture<'a, Result<T, BlobsError>>;
}

/// A store with a layer.
#[derive(Clone)]
pub struct LayeredBlobs<L> {
    blobs: Arc<dyn Blobs>,
    /// The layer.
    pub layer: L,
}

impl<L: BlobLayer> LayeredBlobs<L> {
    /// The blobs of a store, whose requests pass through this layer.
    pub fn new(blobs: Arc<dyn Blobs>, layer: L) -> Self {
        Self { blobs, layer }
    }
}

impl<L: BlobLayer> BlobReader for LayeredBlobs<L> {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        self.layer.send(BlobOperation::Read, self.blobs.get(permit, key))
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        self.layer.send(BlobOperation::Read, self.blobs.head(permit, key))
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        self.layer.send(BlobOperation::Read, self.blobs.list(permit, prefix, cursor))
    }

    fn keys<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, BlobsError>> {
        self.layer.send(BlobOperation::Read, self.blobs.keys(permit, prefix))
    }
}

impl<L: BlobLayer> BlobWriter for LayeredBlobs<L> {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        self.layer.send(BlobOperation::Write, self.blobs.put(permit, key, content, precondition))
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        self.layer.send(BlobOperation::Write, self.blobs.delete(permit, key, expected))
    }
}
