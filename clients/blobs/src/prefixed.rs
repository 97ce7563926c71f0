//! A store whose keys all begin with the same prefix, in a bucket that it shares with others.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

use crate::blob::{Blob, BlobContent, BlobHead, BlobKey, BlobPage, Cursor, Etag, Precondition};
use crate::error::BlobsError;
use crate::{BlobReader, BlobWriter, Blobs};

/// The blobs of another store whose keys begin with a prefix; the prefix is not part of their keys here.
#[derive(Clone)]
pub struct PrefixedBlobs {
    blobs: Arc<dyn Blobs>,
    prefix: String,
}

impl PrefixedBlobs {
    /// The blobs below `prefix`, which usually ends with a slash.
    pub fn new(blobs: Arc<dyn Blobs>, prefix: impl Into<String>) -> Self {
        Self { blobs, prefix: prefix.into() }
    }

    fn key(&self, key: &BlobKey) -> Result<BlobKey, BlobsError> {
        BlobKey::new(format!("{}{key}", self.prefix))
    }
}

impl BlobReader for PrefixedBlobs {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        async move { self.blobs.get(permit, &self.key(key)?).await }.boxed()
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        async move { self.blobs.head(permit, &self.key(key)?).await }.boxed()
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        async move {
            let mut page = self.blobs.list(permit, &format!("{}{prefix}", self.prefix), cursor).await?;
            for entry in &mut page.entries {
                if let Some(rest) = entry.key.strip_prefix(&self.prefix) {
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
            let keys = self.blobs.keys(permit, &format!("{}{prefix}", self.prefix)).await?;
            let rest = |key: String| key.strip_prefix(&self.prefix).map(str::to_owned);
            Ok(keys.into_iter().filter_map(rest).collect())
        }
        .boxed()
    }
}

impl BlobWriter for PrefixedBlobs {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        async move { self.blobs.put(permit, &self.key(key)?, content, precondition).await }.boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move { self.blobs.delete(permit, &self.key(key)?, expected).await }.boxed()
    }
}
