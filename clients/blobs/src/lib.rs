//! Blobs by key: a Read half and a Write half, no policy. S3, or a folder in place of it.
//!
//! **Invariant:** what could not be read is never taken for absent, and a write whose precondition does not hold changes
//! nothing.
//!
//! ```
//! use qontract_access::WritePermit;
//! use qontract_client_blobs::{BlobsError, Content, Key, Precondition, Writer};
//!
//! /// Whether we are the first.
//! async fn claim(permit: &WritePermit, blobs: &dyn Writer, key: &Key) -> Result<bool, BlobsError> {
//!     match blobs.put(permit, key, &Content::new("mine"), &Precondition::IfAbsent).await {
//!         Ok(_) => Ok(true),
//!         Err(BlobsError::Stale { .. }) => Ok(false),
//!         Err(error) => Err(error),
//!     }
//! }
//! ```

mod blob;
mod directory;
mod error;
mod python_json;
mod s3;
mod state;

use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};

pub use blob::{Blob, Content, Cursor, Entry, Etag, Head, Key, Metadata, Page, Precondition};
pub use directory::Directory;
pub use error::BlobsError;
pub use s3::{Credentials, S3, S3Settings};
pub use state::{Add, Draft, State, StateCredentials, StateSettings, Stored};

/// What is read.
pub trait Reader: Send + Sync {
    /// A blob, if it is there.
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>>;

    /// All about a blob but its bytes, if it is there.
    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Head>, BlobsError>>;

    /// The first page of all blobs whose keys begin so, or the page at the cursor; in the order of the keys' bytes.
    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<Page, BlobsError>>;
}

/// What is written. Everything may run twice; a precondition that does not hold is `Stale`.
pub trait Writer: Send + Sync {
    /// Writes a blob as a whole; the tag of what is there now.
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a Key,
        content: &'a Content,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>>;

    /// Removes a blob, which must still have the tag, if one is given. One that is gone already is fine.
    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a Key,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>>;
}

/// Both halves.
pub trait Blobs: Reader + Writer {}

impl<T: Reader + Writer> Blobs for T {}

/// All blobs whose keys begin so, page after page.
pub async fn list_all(
    blobs: &(impl Reader + ?Sized),
    permit: &ReadPermit,
    prefix: &str,
) -> Result<Vec<Entry>, BlobsError> {
    let (mut entries, mut cursor) = (Vec::new(), None);
    loop {
        let page = blobs.list(permit, prefix, cursor.as_ref()).await?;
        entries.extend(page.entries);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(entries);
        }
    }
}
