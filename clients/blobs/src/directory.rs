//! A directory that replaces a bucket, for the sandbox.
//!
//! **Invariant:** a blob is written completely or not at all, unless the store is volatile. No key resolves
//! to a path outside of the directory. A file lock serializes the writes of all processes that use the
//! directory.

mod names;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_concurrency::run_blocking;
use qontract_files::atomic::Durability;
use qontract_files::locked_folder::{self, FileError, LockedFolder};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::blob::{
    Blob, BlobContent, BlobEntry, BlobHead, BlobKey, BlobPage, Cursor, Etag, Metadata, Precondition,
};
use crate::error::BlobsError;
use crate::{BlobReader, BlobWriter};

/// Number of blobs on a page.
const PAGE_SIZE: usize = 1000;
/// Maximum size of a blob that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A directory that replaces a bucket. Clones use the same directory.
#[derive(Clone, Debug)]
pub struct Directory {
    files: Arc<BlobFiles>,
    /// Serializes the writers of this process, so that only one of them blocks a thread on the lock file.
    write_lock: Arc<Mutex<()>>,
    mode: Mode,
}

impl Directory {
    /// A store in the directory `root`, which the first write creates.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let files = Arc::new(BlobFiles(LockedFolder::new(root, Durability::Directory)));
        Self { files, write_lock: Arc::default(), mode: Mode::Real }
    }

    /// Returns this store without durability: writes do not wait for the disk, so blobs may be lost or
    /// damaged if the machine crashes.
    #[must_use]
    pub fn volatile(&self) -> Self {
        let files = Arc::new(BlobFiles(self.files.0.with_durability(Durability::None)));
        Self { files, ..self.clone() }
    }

    /// Returns this store with the mode of the run that `permit` belongs to: in a dry run, it refuses every
    /// write, even one with a write permit.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self { mode: permit.mode(), ..self.clone() }
    }

    /// Refuses a write in a dry run.
    fn refuse_dry_run(&self) -> Result<(), BlobsError> {
        match self.mode {
            Mode::Real => Ok(()),
            Mode::DryRun => Err(BlobsError::Unsupported("a dry run does not write blobs".to_owned())),
        }
    }

    /// Runs file operations on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&BlobFiles) -> Result<T, BlobsError> + Send + 'static,
    ) -> Result<T, BlobsError> {
        let files = Arc::clone(&self.files);
        run_blocking(move || act(&files)).await
    }
}

/// The files of a store. Its methods block.
#[derive(Debug)]
struct BlobFiles(LockedFolder);

impl BlobFiles {
    /// The path of a blob. Fails if a component is a symbolic link.
    fn file(&self, key: &BlobKey) -> Result<PathBuf, BlobsError> {
        let mut path = self.0.root().to_path_buf();
        for name in names::file_names(key)? {
            path.push(name);
            let is_link = path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink());
            if is_link {
                let what = format!("follow `{}`", path.display());
                return Err(BlobsError::File { what, source: io::Error::other("it is a symbolic link") });
            }
        }
        Ok(path)
    }

    fn get(&self, key: &BlobKey) -> Result<Option<Blob>, BlobsError> {
        let file = self.file(key)?;
        let Some(bytes) = locked_folder::read_regular(&file, MAX_BYTES)? else { return Ok(None) };
        let etag = digest_tag(&bytes);
        let metadata_file = names::metadata_path(&file, &etag);
        let metadata: Metadata = match locked_folder::read_regular(&metadata_file, MAX_BYTES)? {
            Some(text) => serde_json::from_slice(&text).map_err(|_| BlobsError::Malformed {
                key: key.to_string(),
                why: "its metadata is not JSON",
            })?,
            None => Metadata::new(),
        };
        let head = BlobHead { etag, size: bytes.len() as u64, metadata };
        Ok(Some(Blob { bytes, head }))
    }

    /// The keys that start with `prefix`, sorted.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, BlobsError> {
        let mut keys = Vec::new();
        collect_keys(self.0.root(), "", prefix, &mut keys)?;
        keys.sort_unstable();
        Ok(keys)
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<BlobPage, BlobsError> {
        let mut keys = self
            .keys(prefix)?
            .into_iter()
            .filter(|key| after.is_none_or(|after| key.as_str() > after))
            .peekable();
        let mut entries = Vec::new();
        for key in keys.by_ref().take(PAGE_SIZE) {
            // Foreign files, and blobs that were deleted after the listing, are skipped.
            let Ok(name) = BlobKey::new(key.clone()) else { continue };
            if let Some(blob) = self.get(&name)? {
                entries.push(BlobEntry { key, etag: blob.head.etag, size: blob.head.size });
            }
        }
        let next = keys.peek().and_then(|_| entries.last().map(|last| Cursor(last.key.clone())));
        Ok(BlobPage { entries, next })
    }

    fn put(
        &self,
        key: &BlobKey,
        content: &BlobContent,
        precondition: &Precondition,
    ) -> Result<Etag, BlobsError> {
        content.check(key)?;
        let _lock = self.0.lock()?;
        let current = self.get(key)?;
        let holds = match precondition {
            Precondition::Any => true,
            Precondition::IfAbsent => current.is_none(),
            Precondition::IfMatch(etag) => current.as_ref().is_some_and(|blob| blob.head.etag == *etag),
        };
        if !holds {
            return Err(BlobsError::Stale { key: key.clone() });
        }
        let (file, etag) = (self.file(key)?, digest_tag(&content.bytes));
        if let Some(folder) = file.parent() {
            locked_folder::create_private_folder(folder)?;
        }
        // The metadata is written before the bytes, under a name derived from their digest, so that the new
        // bytes are never read without their metadata.
        let metadata_file = names::metadata_path(&file, &etag);
        if content.metadata.is_empty() {
            locked_folder::remove(&metadata_file)?;
        } else {
            let text = serde_json::to_vec(&content.metadata).expect("strings can be written as JSON");
            self.0.replace(&metadata_file, &text)?;
        }
        self.0.replace(&file, &content.bytes)?;
        if let Some(old) = current.filter(|old| old.head.etag != etag) {
            locked_folder::remove(&names::metadata_path(&file, &old.head.etag))?;
        }
        Ok(etag)
    }

    fn delete(&self, key: &BlobKey, expected: Option<&Etag>) -> Result<(), BlobsError> {
        let _lock = self.0.lock()?;
        let Some(current) = self.get(key)? else { return Ok(()) };
        if expected.is_some_and(|expected| *expected != current.head.etag) {
            return Err(BlobsError::Stale { key: key.clone() });
        }
        let file = self.file(key)?;
        let metadata_file = names::metadata_path(&file, &current.head.etag);
        locked_folder::remove(&file)?;
        Ok(locked_folder::remove(&metadata_file)?)
    }
}

impl BlobReader for Directory {
    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        let key = key.clone();
        self.run_blocking(move |folder| folder.get(&key)).boxed()
    }

    fn head<'a>(
        &'a self,
        _: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        let key = key.clone();
        self.run_blocking(move |folder| Ok(folder.get(&key)?.map(|blob| blob.head))).boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        let (prefix, after) = (prefix.to_owned(), cursor.map(|Cursor(after)| after.clone()));
        self.run_blocking(move |folder| folder.list(&prefix, after.as_deref())).boxed()
    }

    fn keys<'a>(
        &'a self,
        _: &'a ReadPermit,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, BlobsError>> {
        let prefix = prefix.to_owned();
        self.run_blocking(move |folder| folder.keys(&prefix)).boxed()
    }
}

impl BlobWriter for Directory {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        let (key, content, precondition) = (key.clone(), content.clone(), precondition.clone());
        async move {
            self.refuse_dry_run()?;
            let _turn = self.write_lock.lock().await;
            self.run_blocking(move |folder| folder.put(&key, &content, &precondition)).await
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        let (key, expected) = (key.clone(), expected.cloned());
        async move {
            self.refuse_dry_run()?;
            let _turn = self.write_lock.lock().await;
            self.run_blocking(move |folder| folder.delete(&key, expected.as_ref())).await
        }
        .boxed()
    }
}

/// Collects the keys below a directory. `above` is the key prefix of the directory: empty or with a trailing
/// slash.
fn collect_keys(folder: &Path, above: &str, prefix: &str, keys: &mut Vec<String>) -> Result<(), BlobsError> {
    let failed = |error| FileError::new("list", folder, error);
    for entry in locked_folder::list(folder)?.into_iter().flatten() {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if kind.is_dir() {
            if let Some(part) = names::decode_folder(name) {
                let below = format!("{above}{part}/");
                if below.starts_with(prefix) || prefix.starts_with(&below) {
                    collect_keys(&entry.path(), &below, prefix, keys)?;
                }
            }
        } else if kind.is_file()
            && let Some(part) = names::decode_blob(name)
        {
            keys.extend(Some(format!("{above}{part}")).filter(|key| key.starts_with(prefix)));
        }
    }
    Ok(())
}

/// The tag of a blob: the digest of its bytes.
fn digest_tag(bytes: &[u8]) -> Etag {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
    }
    Etag(text)
}
