//! The data that each loop last reconciled fully: a pointer for each loop, and the bundles that the pointers name.
//!
//! | blob | content |
//! |---|---|
//! | `reconciled/loops/LOOP` | the pointer of a loop |
//! | `reconciled/bundles/SHA` | a bundle, as its caller encodes it |
//! | `reconciled/removing/SHA/REMOVER` | a process that is about to remove a bundle, and when it started |
//!
//! **Invariant:** a bundle that a stored pointer names is not removed. A process that removes a bundle first
//! announces the removal and then reads all pointers again. A process that stores a pointer looks for announcements
//! afterwards. Of two such processes, the later one detects the write of the earlier one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use qontract_access::{ReadPermit, WritePermit};
use qontract_bundle::Sha256;
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Etag, Precondition};
use serde::{Deserialize, Serialize};

/// The key prefixes.
const LOOPS: &str = "reconciled/loops/";
const BUNDLES: &str = "reconciled/bundles/";
const REMOVING: &str = "reconciled/removing/";

/// The version of the format of pointers.
const VERSION: u32 = 1;

/// Age from which an announcement counts as left over from a process that was killed.
const MAX_REMOVAL: SignedDuration = SignedDuration::from_hours(1);

/// The data that a loop last reconciled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconciledPointer {
    version: u32,
    /// The identity of the data source.
    pub data: String,
    /// The SHA-256 of the reconciled bundle.
    pub sha: String,
    /// The time at which the pointer was stored.
    pub at: Timestamp,
}

impl ReconciledPointer {
    /// Creates a pointer to a bundle.
    pub fn new(data: String, sha: String, at: Timestamp) -> Self {
        Self { version: VERSION, data, sha, at }
    }
}

/// A pointer that was read from the store.
#[derive(Debug)]
pub struct StoredPointer {
    /// The pointer, or the reason why the pointer cannot be used; `None` if the loop has none.
    pub pointer: Option<Result<ReconciledPointer, ReconciledError>>,
    /// The tag of the blob of the pointer.
    pub etag: Option<Etag>,
}

/// A pointer that replaces another one.
#[derive(Clone, Copy, Debug)]
pub struct PointerUpdate<'p> {
    /// The loop.
    pub of_loop: &'p str,
    /// The new pointer.
    pub pointer: &'p ReconciledPointer,
    /// The tag of the pointer that was read; `None` if the loop had none.
    pub over: Option<&'p Etag>,
}

/// An error of the pointers and bundles in a store.
#[derive(Debug, thiserror::Error)]
pub enum ReconciledError {
    /// A blob cannot be read or written.
    #[error(transparent)]
    Store(#[from] BlobsError),
    /// A pointer is damaged, or another version wrote it.
    #[error("`{0}` has unsupported content")]
    Pointer(String),
    /// Another process replaced the pointer since it was read.
    #[error("another process has replaced the pointer")]
    Replaced,
    /// Another process is removing the bundle. The next attempt to store the pointer stores the bundle again.
    #[error("another process is removing the bundle {0}")]
    BundleRemoved(String),
}

/// Access to the pointers and bundles in a store.
#[derive(Clone)]
pub struct ReconciledBundles {
    blobs: Arc<dyn Blobs>,
    read: ReadPermit,
}

impl fmt::Debug for ReconciledBundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconciledBundles").finish_non_exhaustive()
    }
}

impl ReconciledBundles {
    /// Creates access to the pointers and bundles in a store.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, read: ReadPermit::for_data() }
    }

    /// The pointer of a loop, if it has one.
    pub async fn pointer(&self, of_loop: &str) -> Result<Option<ReconciledPointer>, ReconciledError> {
        self.read_pointer(of_loop).await?.pointer.transpose()
    }

    /// Reads the pointer of a loop in order to replace it.
    pub async fn read_pointer(&self, of_loop: &str) -> Result<StoredPointer, ReconciledError> {
        let key = BlobKey::new(format!("{LOOPS}{of_loop}"))?;
        let Some(blob) = self.blobs.get(&self.read, &key).await? else {
            return Ok(StoredPointer { pointer: None, etag: None });
        };
        let pointer = serde_json::from_slice::<ReconciledPointer>(&blob.bytes).ok();
        let is_supported =
            |pointer: &ReconciledPointer| pointer.version == VERSION && Sha256::parse(&pointer.sha).is_some();
        let pointer = pointer.filter(is_supported);
        let pointer = pointer.ok_or_else(|| ReconciledError::Pointer(key.to_string()));
        Ok(StoredPointer { pointer: Some(pointer), etag: Some(blob.head.etag) })
    }

    /// The names of the loops whose names begin with `prefix`.
    pub async fn loops(&self, prefix: &str) -> Result<Vec<String>, ReconciledError> {
        let keys = self.blobs.keys(&self.read, &format!("{LOOPS}{prefix}")).await?;
        Ok(keys.iter().filter_map(|key| key.strip_prefix(LOOPS)).map(str::to_owned).collect())
    }

    /// Reads the bundle with this sha, if it is stored.
    pub async fn bundle(&self, sha: &str) -> Result<Option<Vec<u8>>, ReconciledError> {
        let blob = self.blobs.get(&self.read, &bundle_key(sha)?).await?;
        Ok(blob.map(|blob| blob.bytes))
    }

    /// Stores a pointer, after the bundle that it names, unless another process has replaced the pointer that was read.
    /// Returns the new tag. `bundle` returns the bytes of the bundle; it is `None` if the bundle can be read from its
    /// source again. It is called only if no process has stored the bundle.
    pub async fn store(
        &self,
        write: &WritePermit,
        update: PointerUpdate<'_>,
        bundle: Option<impl FnOnce() -> std::io::Result<Vec<u8>>>,
    ) -> Result<Etag, ReconciledError> {
        let PointerUpdate { of_loop, pointer, over } = update;
        let (key, has_bundle) = (bundle_key(&pointer.sha)?, bundle.is_some());
        if let Some(bundle) = bundle
            && self.blobs.head(&self.read, &key).await?.is_none()
        {
            let unreadable =
                |source| BlobsError::File { what: format!("encode the bundle {}", pointer.sha), source };
            let content = BlobContent::new(bundle().map_err(unreadable)?);
            match self.blobs.put(write, &key, &content, &Precondition::IfAbsent).await {
                Ok(_) | Err(BlobsError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let content =
            BlobContent::new(serde_json::to_vec(pointer).expect("a pointer can be written as JSON"));
        let pointer_key = BlobKey::new(format!("{LOOPS}{of_loop}"))?;
        let precondition = over.map_or(Precondition::IfAbsent, |etag| Precondition::IfMatch(etag.clone()));
        let etag = match self.blobs.put(write, &pointer_key, &content, &precondition).await {
            Ok(etag) => etag,
            Err(BlobsError::Stale { .. }) => return Err(ReconciledError::Replaced),
            Err(error) => return Err(error.into()),
        };
        if has_bundle
            && (self.is_being_removed(pointer).await? || self.blobs.head(&self.read, &key).await?.is_none())
        {
            return Err(ReconciledError::BundleRemoved(pointer.sha.clone()));
        }
        Ok(etag)
    }

    /// Whether a process has announced that it removes the bundle of a pointer.
    async fn is_being_removed(&self, pointer: &ReconciledPointer) -> Result<bool, ReconciledError> {
        for key in self.blobs.keys(&self.read, &format!("{REMOVING}{}/", pointer.sha)).await? {
            let blob = self.blobs.get(&self.read, &BlobKey::new(key)?).await?;
            let since = blob.and_then(|blob| serde_json::from_slice::<Timestamp>(&blob.bytes).ok());
            if since.is_some_and(|since| pointer.at.duration_since(since) < MAX_REMOVAL) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the bundles that no pointer names. `remover` is a name that is unique to this process. Returns the
    /// number of removed bundles.
    pub async fn prune(
        &self,
        write: &WritePermit,
        remover: &str,
        now: Timestamp,
    ) -> Result<usize, ReconciledError> {
        let Some(named) = self.named_bundles().await? else { return Ok(0) };
        let mut removed = 0;
        for key in self.blobs.keys(&self.read, BUNDLES).await? {
            let Some(sha) = key.strip_prefix(BUNDLES) else { continue };
            if named.contains(sha) {
                continue;
            }
            let announcement = BlobKey::new(format!("{REMOVING}{sha}/{remover}"))?;
            let content = BlobContent::new(serde_json::to_vec(&now).expect("a time can be written as JSON"));
            self.blobs.put(write, &announcement, &content, &Precondition::Any).await?;
            if self.named_bundles().await?.is_some_and(|named| !named.contains(sha)) {
                self.blobs.delete(write, &BlobKey::new(key.as_str())?, None).await?;
                removed += 1;
            }
            self.blobs.delete(write, &announcement, None).await?;
        }
        Ok(removed)
    }

    /// The bundles that pointers name; `None` if a pointer cannot be read, because this pointer may name any bundle.
    async fn named_bundles(&self) -> Result<Option<BTreeSet<String>>, ReconciledError> {
        let mut named = BTreeSet::new();
        for name in self.loops("").await? {
            match self.pointer(&name).await {
                Ok(pointer) => named.extend(pointer.map(|pointer| pointer.sha)),
                Err(ReconciledError::Pointer(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(named))
    }
}

fn bundle_key(sha: &str) -> Result<BlobKey, BlobsError> {
    BlobKey::new(format!("{BUNDLES}{sha}"))
}

#[cfg(test)]
mod tests;
