//! Blob store client with a Read half and a Write half, without policy. Works with S3, or with a directory
//! that replaces a bucket.
//!
//! **Invariant:** a failed read is never treated as an absent blob, and a write whose precondition is not met
//! changes nothing.
//!
//! ```
//! use qontract_access::WritePermit;
//! use qontract_client_blobs::{BlobContent, BlobKey, BlobWriter, BlobsError, Precondition};
//!
//! /// Returns true for the first caller.
//! async fn claim(permit: &WritePermit, blobs: &dyn BlobWriter, key: &BlobKey) -> Result<bool, BlobsError> {
//!     match blobs.put(permit, key, &BlobContent::new("mine"), &Precondition::IfAbsent).await {
//!         Ok(_) => Ok(true),
//!         Err(BlobsError::Stale { .. }) => Ok(false),
//!         Err(error) => Err(error),
//!     }
//! }
//! ```

mod blob;
mod directory;
mod error;
mod layer;
mod s3;
mod state;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use blob::{
    Blob, BlobContent, BlobEntry, BlobHead, BlobKey, BlobPage, Cursor, Etag, Metadata, Precondition,
};
pub use directory::Directory;
pub use error::BlobsError;
pub use layer::{BlobLayer, BlobOperation, LayeredBlobs};
pub use s3::{S3, S3Credentials, S3Endpoint, S3EndpointError, S3Settings};
pub use state::{AddCondition, NewValue, StateCredentials, StateSettings, StateStore, StoredValue};

/// The Read half.
pub trait BlobReader: Send + Sync {
    /// Reads a blob, if it exists.
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>>;

    /// Reads tag, size and metadata of a blob, if it exists.
    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>>;

    /// Lists the blobs whose keys start with `prefix`, sorted by the bytes of the keys. Returns the page at
    /// the cursor, or the first page.
    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>>;

    /// All keys that start with `prefix`, sorted by their bytes. No blob is read; S3 needs one request per
    /// thousand keys.
    fn keys<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, BlobsError>> {
        async move {
            let entries = list_all(self, permit, prefix).await?;
            Ok(entries.into_iter().map(|entry| entry.key).collect())
        }
        .boxed()
    }
}

/// The Write half. Every call is idempotent; if its precondition is not met, it returns `Stale`.
pub trait BlobWriter: Send + Sync {
    /// Writes a whole blob; returns its new tag.
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>>;

    /// Deletes a blob; if a tag is given, the blob must still have it. Deleting a missing blob succeeds.
    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>>;
}

/// A client with both halves.
pub trait Blobs: BlobReader + BlobWriter {}

impl<T: BlobReader + BlobWriter> Blobs for T {}

/// Maximum number of pages that [`list_all`] reads.
const MAX_PAGES: usize = 1000;

/// Maximum size of all keys that [`list_all`] returns, in bytes.
const MAX_KEY_BYTES: usize = 64 << 20;

/// All blobs whose keys start with `prefix`, from all pages. An endless listing is an error.
pub async fn list_all(
    blobs: &(impl BlobReader + ?Sized),
    permit: &ReadPermit,
    prefix: &str,
) -> Result<Vec<BlobEntry>, BlobsError> {
    let (mut entries, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..MAX_PAGES {
        let page = blobs.list(permit, prefix, cursor.as_ref()).await?;
        bytes += page.entries.iter().map(|entry| entry.key.len()).sum::<usize>();
        if bytes > MAX_KEY_BYTES {
            break;
        }
        entries.extend(page.entries);
        if page.next.is_none() {
            return Ok(entries);
        }
        if page.next == cursor {
            return Err(endless_listing(
                prefix,
                "the store returned the same continuation token twice".to_owned(),
            ));
        }
        cursor = page.next;
    }
    Err(endless_listing(
        prefix,
        format!("the listing has more than {MAX_PAGES} pages or {MAX_KEY_BYTES} bytes of keys"),
    ))
}

fn endless_listing(prefix: &str, reason: String) -> BlobsError {
    BlobsError::Unreachable { what: format!("listing blobs below `{prefix}`"), reason, transient: false }
}

#[cfg(test)]
mod tests {
    use qontract_access::Mode;
    use qontract_testkit::permits;

    use super::*;

    /// A store whose listing has `count` pages, each with one key of `key_bytes` bytes.
    struct Pages {
        count: usize,
        key_bytes: usize,
    }

    impl BlobReader for Pages {
        fn get<'a>(
            &'a self,
            _: &'a ReadPermit,
            _: &'a BlobKey,
        ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
            async { Ok(None) }.boxed()
        }

        fn head<'a>(
            &'a self,
            _: &'a ReadPermit,
            _: &'a BlobKey,
        ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
            async { Ok(None) }.boxed()
        }

        fn list<'a>(
            &'a self,
            _: &'a ReadPermit,
            _: &'a str,
            cursor: Option<&'a Cursor>,
        ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
            let number = cursor.map_or(1, |Cursor(text)| text.parse::<usize>().unwrap());
            let entry = BlobEntry { key: "k".repeat(self.key_bytes), etag: Etag(String::new()), size: 0 };
            let next = (number < self.count).then(|| Cursor((number + 1).to_string()));
            async { Ok(BlobPage { entries: vec![entry], next }) }.boxed()
        }
    }

    #[test]
    fn a_listing_has_a_maximum_of_pages_and_bytes() {
        let check = |count: usize, key_bytes: usize, is_read: bool| {
            let permit = permits(Mode::DryRun).read;
            let listed = list_all(&Pages { count, key_bytes }, &permit, "p").now_or_never().unwrap();
            assert_eq!(listed.is_ok_and(|entries| entries.len() == count), is_read, "{count} {key_bytes}");
        };
        check(MAX_PAGES, 1, true);
        check(MAX_PAGES + 1, 1, false);
        check(2, MAX_KEY_BYTES / 2, true);
        check(2, MAX_KEY_BYTES / 2 + 1, false);
    }
}
