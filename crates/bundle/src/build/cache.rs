//! Build cache: per-file results of the last build, and the stamps of the files from which they were
//! computed.
//!
//! **Invariant:** a build with a cache makes the same bundle as a build without one.
//!
//! A cache entry is valid in two cases:
//!
//! - The file stamp (device, inode, size, mtime, ctime) is unchanged. The file is not read. As in Git's
//!   index, a stamp counts only if the file was last modified well before it was read: a file that changed
//!   within the timestamp granularity can change again without a new stamp.
//! - The content hash is unchanged. The file is read, but not parsed again.
//!
//! All entries become invalid when the digest of the schema context changes: the layout, a schema or the
//! GraphQL types.

use std::sync::Arc;
use std::time::SystemTime;

use super::context::SchemaContext;
use super::datafiles::ParsedDatafile;
use super::encode::HashCheckpoint;
use super::schemas::SchemaPatches;
use crate::digest::Sha256;
use crate::model::{Bundle, Resource};
use crate::repo::{DirCache, FileReadError, FileStamp, RepoFile};

/// The minimum number of files for which caching and more threads pay off. Below it, reading everything is as
/// fast as consulting the cache.
pub const MIN_CACHED_FILES: usize = 2_000;

/// The build cache of one data repo.
#[derive(Debug)]
pub struct BuildCache {
    pub(super) clock: fn() -> SystemTime,
    /// The digest of the schema context (layout, schemas, types) that all entries were computed with.
    pub(super) context_digest: Option<Sha256>,
    pub(super) state: CacheState,
    /// The cache on disk, if it was restored from there.
    pub(super) saved: Option<SavedCache>,
    /// Number of files that the last build read.
    pub(super) files_read: usize,
}

impl Default for BuildCache {
    fn default() -> Self {
        Self::with_clock(SystemTime::now)
    }
}

/// The cache on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedCache {
    /// The digest of the schema context of the saved cache.
    pub context_digest: Sha256,
    /// Number of files in the saved cache.
    pub files: usize,
}

/// The results of the last build.
#[derive(Debug, Default)]
pub(super) struct CacheState {
    /// Parsed datafiles, by path.
    pub datafiles: FileCache<ParsedDatafile>,
    /// Resources, by path.
    pub resources: FileCache<Resource>,
    /// Directory listings of the datafiles and of the resources.
    pub folders: [DirCache; 2],
    /// The bundle itself.
    pub last_bundle: Option<Bundle>,
    /// The state for an incremental build. Present only if the last build had no findings and no file of the
    /// data repo is a link.
    pub base: Option<IncrementalBase>,
}

/// The state that an incremental build needs besides the per-file cache.
#[derive(Debug)]
pub(super) struct IncrementalBase {
    pub context: SchemaContext,
    pub patches: SchemaPatches,
    /// Hasher checkpoints, with which only the part of the bundle from its first change to its end is rehashed.
    pub checkpoints: Vec<HashCheckpoint>,
}

impl CacheState {
    /// Number of datafiles and number of resources.
    pub fn len(&self) -> (usize, usize) {
        (self.datafiles.len(), self.resources.len())
    }
}

/// Cached files, sorted by path.
#[derive(Debug)]
pub(super) struct FileCache<T> {
    /// Sorted by path, ascending.
    files: Vec<(Arc<str>, CacheEntry<T>)>,
}

impl<T> Default for FileCache<T> {
    fn default() -> Self {
        Self { files: Vec::new() }
    }
}

impl<T> FileCache<T> {
    /// Creates a cache of these files. They must be sorted by path, without duplicates.
    pub fn new(files: Vec<(Arc<str>, CacheEntry<T>)>) -> Self {
        debug_assert!(files.is_sorted_by(|a, b| a.0 < b.0), "files are ascending");
        Self { files }
    }

    /// All files, sorted by path.
    pub fn files(&self) -> &[(Arc<str>, CacheEntry<T>)] {
        &self.files
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The index of the file at `path`, or the index at which it would be inserted.
    pub fn index_of(&self, path: &str) -> Result<usize, usize> {
        self.files.binary_search_by(|(known, _)| (**known).cmp(path))
    }

    /// The index of the file at `path`; if there is no such file, whether `path` is a directory of cached
    /// files.
    pub fn find(&self, path: &str) -> Result<usize, bool> {
        self.index_of(path).map_err(|next| {
            let folder = format!("{path}/");
            // Files whose names continue with a byte below `/` sort before the files of the directory.
            let within = self.files[next..].partition_point(|(other, _)| **other < *folder);
            self.files.get(next + within).is_some_and(|(other, _)| other.starts_with(&folder))
        })
    }

    /// The file at `path`. Looks near `place` first: most files keep their index between builds.
    pub fn find_near(&self, place: usize, path: &str) -> Option<&(Arc<str>, CacheEntry<T>)> {
        let near =
            [place, place.wrapping_sub(1), place + 1].into_iter().filter_map(|place| self.files.get(place));
        near.into_iter()
            .find(|(known, _)| **known == *path)
            .or_else(|| Some(&self.files[self.index_of(path).ok()?]))
    }

    /// Replaces the entry of the file at an index.
    pub fn set(&mut self, place: usize, entry: CacheEntry<T>) {
        self.files[place].1 = entry;
    }
}

/// A cache entry: the result computed from one file.
#[derive(Debug)]
pub(super) struct CacheEntry<T> {
    /// The stamp that the file had when it was read, if the stamp is trustworthy.
    pub file_stamp: Option<FileStamp>,
    /// SHA-256 of the bytes of the file.
    pub content_sha: Sha256,
    pub value: Arc<T>,
}

impl<T> Clone for CacheEntry<T> {
    fn clone(&self) -> Self {
        Self { file_stamp: self.file_stamp, content_sha: self.content_sha, value: Arc::clone(&self.value) }
    }
}

impl BuildCache {
    /// Creates an empty cache. Stamps of files that were modified shortly before the clock's time are not
    /// trusted.
    pub fn with_clock(clock: fn() -> SystemTime) -> Self {
        Self { clock, context_digest: None, state: CacheState::default(), saved: None, files_read: 0 }
    }

    /// Whether saving the cache pays off: the repo has at least [`MIN_CACHED_FILES`] files, and more than 2%
    /// of them differ from the saved state.
    pub fn is_worth_saving(&self) -> bool {
        let (datafiles, resources) = self.state.len();
        let files = datafiles + resources;
        let stale = match self.saved {
            Some(saved) if self.context_digest == Some(saved.context_digest) => {
                self.files_read + saved.files.abs_diff(files) > files / 50
            }
            _ => true,
        };
        files >= MIN_CACHED_FILES && stale
    }

    pub(super) fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Takes the state out, leaving the cache empty until [`put`](Self::put). Returns an empty state if it
    /// was computed with a different schema context.
    pub(super) fn take(&mut self, context_digest: Sha256) -> CacheState {
        let state = std::mem::take(&mut self.state);
        let is_valid = self.context_digest.replace(context_digest) == Some(context_digest);
        if is_valid { state } else { CacheState::default() }
    }

    /// Stores the state of a finished build, for the schema context of the last [`take`](Self::take).
    pub(super) fn put(&mut self, state: CacheState, stats: ChangeStats) {
        (self.state, self.files_read) = (state, stats.read);
    }
}

/// Number of files without a valid cache entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangeStats {
    /// Files that are new or have different bytes.
    pub changed: usize,
    /// Files that had to be read.
    pub read: usize,
}

impl ChangeStats {
    /// Counts one file: whether its result was reused, and its file stamp now and before.
    pub fn count(&mut self, is_same: bool, now: Option<FileStamp>, before: Option<FileStamp>) {
        self.changed += usize::from(!is_same);
        self.read += usize::from(!is_same || now != before);
    }
}

/// The result of a cache lookup.
pub(super) enum CacheLookup<T> {
    /// The cached result is valid.
    Hit(CacheEntry<T>),
    /// The file is new or changed.
    Miss {
        bytes: Vec<u8>,
        /// SHA-256 of the bytes.
        content_sha: Sha256,
        file_stamp: Option<FileStamp>,
    },
}

/// Looks a file up in the cache, and reads it if it may have changed. `started_at` is a time before any file
/// was read; without it no stamp is trusted, so the result is not cached by stamp.
pub(super) fn lookup<T>(
    file: &RepoFile,
    known: Option<&CacheEntry<T>>,
    started_at: Option<SystemTime>,
) -> Result<CacheLookup<T>, FileReadError> {
    if let Some(entry) = known
        && entry.file_stamp.is_some()
        && entry.file_stamp == file.file_stamp()
    {
        return Ok(CacheLookup::Hit(entry.clone()));
    }
    let (bytes, file_stamp) = file.read_with_stamp()?;
    let content_sha = Sha256::of(&bytes);
    // The stamp was taken before the bytes were read, so a later write changes it.
    let file_stamp =
        file_stamp.filter(|stamp| started_at.is_some_and(|started_at| stamp.is_trustworthy(started_at)));
    match known.filter(|entry| entry.content_sha == content_sha) {
        Some(entry) => Ok(CacheLookup::Hit(CacheEntry { file_stamp, ..entry.clone() })),
        None => Ok(CacheLookup::Miss { bytes: bytes.into_owned(), content_sha, file_stamp }),
    }
}
