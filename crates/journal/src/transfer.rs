//! Copies a journal from one store to another, to back it up or to restore it.

use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Precondition};

/// The key that is copied last: a copy without it is not a journal.
const LAST: &str = "format";

/// An error of a copy.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The target is not empty.
    #[error("`{0}` is not empty")]
    NotEmpty(String),
    /// The source has no journal.
    #[error("no journal in `{0}`")]
    NoJournal(String),
    /// A blob cannot be read or written.
    #[error(transparent)]
    Store(#[from] BlobsError),
}

/// A store, with its location for messages.
#[derive(Clone, Copy)]
pub struct TransferEnd<'a> {
    /// The blobs of the store.
    pub blobs: &'a dyn Blobs,
    /// The location of the store.
    pub place: &'a str,
}

/// Copies every blob of `source` to the empty store `target`. Returns the number of copied blobs.
///
/// The index of the journal is copied last, so that an interrupted copy is not mistaken for a journal. Blobs that
/// other processes write during the copy may be missing.
pub async fn copy(
    source: TransferEnd<'_>,
    target: TransferEnd<'_>,
    read: &ReadPermit,
    write: &WritePermit,
) -> Result<usize, TransferError> {
    let present = target.blobs.keys(read, "").await?;
    if !present.is_empty() {
        return Err(TransferError::NotEmpty(target.place.to_owned()));
    }
    let keys = source.blobs.keys(read, "").await?;
    if !keys.iter().any(|key| key == LAST) {
        return Err(TransferError::NoJournal(source.place.to_owned()));
    }
    let (index, content): (Vec<&String>, Vec<&String>) = keys.iter().partition(|key| *key == LAST);
    let mut copied = 0;
    for key in content.into_iter().chain(index) {
        let key = BlobKey::new(key.as_str())?;
        // A blob may have been removed since the listing.
        let Some(blob) = source.blobs.get(read, &key).await? else { continue };
        let content = BlobContent { bytes: blob.bytes, metadata: blob.head.metadata };
        target.blobs.put(write, &key, &content, &Precondition::IfAbsent).await?;
        copied += 1;
    }
    Ok(copied)
}
