//! A directory that replaces a bucket, for the sandbox.
//!
//! **Invariant:** a blob is written completely or not at all, unless the store is volatile. No key resolves
//! to a path outside of the directory. A file lock serializes the writes of all processes that use the
//! directory.

mod names;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_files::atomic::{AtomicFile, Durability};
use qontract_files::{lock, private_files};
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
/// The lock file, whose lock the writing process holds.
const LOCK: &str = ".lock";

/// A directory that replaces a bucket. Clones use the same directory.
#[derive(Clone, Debug)]
pub struct Directory {
    root: Arc<Path>,
    /// Serializes the writers of this process, so that only one of them blocks a thread on the lock file.
    write_lock: Arc<Mutex<()>>,
    mode: Mode,
    durability: Durability,
}

impl Directory {
    /// A store in the directory `root`, which the first write creates.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let (write_lock, mode, durability) = (Arc::default(), Mode::Real, Durability::Directory);
        Self { root: root.into().into(), write_lock, mode, durability }
    }

    /// Returns this store without durability: writes do not wait for the disk, so blobs may be lost or
    /// damaged if the machine crashes.
    #[must_use]
    pub fn volatile(&self) -> Self {
        Self { durability: Durability::None, ..self.clone() }
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
        act: impl FnOnce(&BlockingDirectory) -> Result<T, BlobsError> + Send + 'static,
    ) -> Result<T, BlobsError> {
        let folder = BlockingDirectory { root: Arc::clone(&self.root), durability: self.durability };
        match tokio::task::spawn_blocking(move || act(&folder)).await {
            Ok(outcome) => outcome,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// The blocking implementation.
struct BlockingDirectory {
    root: Arc<Path>,
    durability: Durability,
}

impl BlockingDirectory {
    /// The path of a blob. Fails if a component is a symbolic link.
    fn file(&self, key: &BlobKey) -> Result<PathBuf, BlobsError> {
        let mut path = self.root.to_path_buf();
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
        let bytes = match read(&file) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(file_error("read", &file, error)),
        };
        let etag = digest_tag(&bytes);
        let metadata_file = names::metadata_path(&file, &etag);
        let metadata: Metadata = match read(&metadata_file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|_| BlobsError::Malformed {
                key: key.to_string(),
                why: "its metadata is not JSON",
            })?,
            Err(error) if is_absent(&error) => Metadata::new(),
            Err(error) => return Err(file_error("read", &metadata_file, error)),
        };
        let head = BlobHead { etag, size: bytes.len() as u64, metadata };
        Ok(Some(Blob { bytes, head }))
    }

    /// The keys that start with `prefix`, sorted.
    fn keys(&self, prefix: &str) -> Result<Vec<String>, BlobsError> {
        let mut keys = Vec::new();
        collect_keys(&self.root, "", prefix, &mut keys)?;
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
        let _lock = self.lock()?;
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
            create_private_dir(folder)?;
        }
        // The metadata is written before the bytes, under a name derived from their digest, so that the new
        // bytes are never read without their metadata.
        let metadata_file = names::metadata_path(&file, &etag);
        if content.metadata.is_empty() {
            ignore_absent(fs::remove_file(&metadata_file))
                .map_err(|error| file_error("remove", &metadata_file, error))?;
        } else {
            let text = serde_json::to_vec(&content.metadata).expect("strings can be written as JSON");
            self.replace(&metadata_file, &text)?;
        }
        self.replace(&file, &content.bytes)?;
        if let Some(old) = current.filter(|old| old.head.etag != etag) {
            let metadata_file = names::metadata_path(&file, &old.head.etag);
            ignore_absent(fs::remove_file(&metadata_file))
                .map_err(|error| file_error("remove", &metadata_file, error))?;
        }
        Ok(etag)
    }

    fn delete(&self, key: &BlobKey, expected: Option<&Etag>) -> Result<(), BlobsError> {
        let _lock = self.lock()?;
        let Some(current) = self.get(key)? else { return Ok(()) };
        if expected.is_some_and(|expected| *expected != current.head.etag) {
            return Err(BlobsError::Stale { key: key.clone() });
        }
        let file = self.file(key)?;
        let metadata_file = names::metadata_path(&file, &current.head.etag);
        for path in [&file, &metadata_file] {
            ignore_absent(fs::remove_file(path)).map_err(|error| file_error("remove", path, error))?;
        }
        Ok(())
    }

    /// Takes the lock of the directory. The lock is held until the returned file is dropped.
    fn lock(&self) -> Result<File, BlobsError> {
        create_private_dir(&self.root)?;
        let path = self.root.join(LOCK);
        lock::acquire(&path, lock::DEFAULT_TIMEOUT).map_err(|error| file_error("lock", &path, error))
    }

    /// Replaces a file. The caller holds the lock, so nothing else uses the temporary file.
    fn replace(&self, file: &Path, bytes: &[u8]) -> Result<(), BlobsError> {
        let write = || {
            let mut out = AtomicFile::locked(file, &self.root.join(".draft"), self.durability)?;
            out.write_all(bytes)?;
            out.commit()
        };
        write().map_err(|error| file_error("write", file, error))
    }
}

/// Creates a directory that only its owner may read.
fn create_private_dir(folder: &Path) -> Result<(), BlobsError> {
    private_files::create_folder(folder, folder).map_err(|error| file_error("create", folder, error))
}

/// Reads a regular file of at most [`MAX_BYTES`].
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(lock::SAFE_OPEN_FLAGS).open(path)?;
    let file = lock::require_regular(file)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has more than {} MiB", MAX_BYTES >> 20),
        ));
    }
    Ok(bytes)
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
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(file_error("list", folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| file_error("list", folder, error))?;
        let kind = entry.file_type().map_err(|error| file_error("list", folder, error))?;
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

/// Whether the error means that the blob does not exist, including a file in place of a directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Treats a missing file as removed.
fn ignore_absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if is_absent(&error) => Ok(()),
        other => other,
    }
}

fn file_error(what: &str, path: &Path, source: io::Error) -> BlobsError {
    BlobsError::File { what: format!("{what} `{}`", path.display()), source }
}
