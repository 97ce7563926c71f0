//! On-disk cache of a data repo, for incremental bundling and validation across processes.
//!
//! Location of the disk cache: the user's cache directory (`$XDG_CACHE_HOME/qontract/repos`, by default
//! `~/.cache/qontract/repos`), with one directory per data repo. `QONTRACT_CACHE` names another directory; `off`
//! disables the cache. Entries of another build of this program are ignored. Small data repos are not cached, because
//! reading them is as fast as loading a cache.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_bundle::repo::Revision;
use qontract_bundle::{BuildCache, BuildOptions, Pool, Repo, Sha256};
use qontract_files::atomic::{self, Durability};
use qontract_files::private_files;
use qontract_validate::ValidationCache;

/// Age after which the cache of a data repo is removed if it was not written again.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// Maximum number of data repos with a cache.
const MAX_REPOS: usize = 8;
/// Age after which a temporary file counts as left over and is removed.
const MAX_DRAFT_AGE: Duration = Duration::from_hours(1);

/// The cache of one data repo.
#[derive(Default)]
pub struct RepoCache {
    /// Parsed documents by file.
    pub files: BuildCache,
    /// The results of validation by file, loaded on first use.
    pub validation: LazyValidationCache,
}

/// Cache of validation results, loaded on first use.
#[derive(Default)]
pub struct LazyValidationCache {
    results: Option<ValidationCache>,
    /// The size and the dependencies of the results when they were loaded.
    loaded: LoadedState,
    /// Whether the results are saved even if only a few entries are new. Set when the parsed documents were saved.
    is_save_due: bool,
    /// The directory on disk; `None` if nothing is saved.
    folder: Option<CacheFolder>,
}

/// The size and the dependencies of cached validation results, to determine whether they have changed.
#[derive(Clone, Copy, Default)]
struct LoadedState {
    /// The number of cached results.
    entries: usize,
    /// The hashes of the schemas and of the other inputs on which all results depend.
    dependencies: [Option<Sha256>; 2],
}

impl LoadedState {
    fn of(results: &ValidationCache) -> Self {
        Self { entries: results.len(), dependencies: results.dependencies() }
    }
}

struct CacheFolder {
    folder: PathBuf,
    build_id: String,
}

/// The source digest of a commit of the data repo in a directory; `None` if the commit cannot be read. The digest of
/// the last commit is cached, because computing it reads all files of the commit.
pub fn source_digest(repo: &Repo, commit: &str) -> Option<Sha256> {
    let cache = CacheFolder::of(repo).filter(CacheFolder::is_private);
    if let Some(cached) = cache.as_ref().and_then(|cache| cache.load_commit(commit)) {
        return Some(cached);
    }
    let revision = Revision::open(repo.folder()?, commit).ok()?;
    let digest = Repo::revision(revision, repo.layout().clone()).source_digest().ok()?;
    if let Some(cache) = cache {
        let text = cache.commit_line(commit, &digest.to_string());
        let _ = atomic::write_private(&cache.commit_file(), text.as_bytes(), Durability::Content);
    }
    Some(digest)
}

impl RepoCache {
    /// Loads the cache of a data repo; for a Git revision, the cache is empty. Validation results are loaded on first
    /// use.
    pub fn load(repo: &Repo, pool: &Pool) -> Self {
        let folder = CacheFolder::of(repo);
        let files = CacheFolder::load_files(folder.as_ref(), pool);
        Self { files, validation: LazyValidationCache { folder, ..LazyValidationCache::default() } }
    }

    /// Loads the cache of a data repo and, in parallel, the validation results, for a caller that always validates.
    pub fn with_validation(repo: &Repo, pool: &Pool) -> Self {
        let folder = CacheFolder::of(repo);
        let (files, results) = rayon::join(
            || CacheFolder::load_files(folder.as_ref(), pool),
            || folder.as_ref().and_then(CacheFolder::load_validation).unwrap_or_default(),
        );
        Self { files, validation: LazyValidationCache::new(results, folder) }
    }

    /// The options of a build that uses this cache.
    pub fn build_options(&mut self) -> BuildOptions<'_> {
        BuildOptions { cache: Some(&mut self.files), ..BuildOptions::default() }
    }

    /// Saves the cache for the next process. Failures are ignored, because the next process recomputes missing
    /// entries. `written` is the file that the bundle was written to, if any.
    pub fn save(&mut self, written: Option<&Path>) {
        if self.save_files(written) {
            self.validation.save();
        }
    }

    /// Saves the parsed documents for the next process and frees them, for a caller that does not bundle
    /// again. Validation results can still be saved afterwards.
    pub fn release_files(&mut self) {
        if !self.save_files(None) {
            // Without the documents, the validation results would be useless, so they are not saved.
            self.validation.folder = None;
        }
        self.files = BuildCache::default();
    }

    /// Saves the parsed documents if enough of them are new. Returns whether the next process can use the cache.
    fn save_files(&mut self, written: Option<&Path>) -> bool {
        let Some(cache) = &self.validation.folder else { return false };
        if self.files.is_worth_saving() {
            let made =
                private_files::create_folder(&cache.folder, &cache.folder).is_ok() && cache.is_private();
            if !made || self.files.save(&cache.folder, &cache.build_id, written).is_err() {
                return false;
            }
            cache.prune();
            self.validation.is_save_due = true;
        }
        true
    }
}

impl LazyValidationCache {
    fn new(results: ValidationCache, folder: Option<CacheFolder>) -> Self {
        let loaded = LoadedState::of(&results);
        Self { loaded, results: Some(results), is_save_due: false, folder }
    }

    /// The cached validation results, loaded on first use.
    pub fn results(&mut self) -> &mut ValidationCache {
        let Self { results, loaded, folder, .. } = self;
        results.get_or_insert_with(|| {
            let results = folder.as_ref().and_then(CacheFolder::load_validation).unwrap_or_default();
            *loaded = LoadedState::of(&results);
            results
        })
    }

    /// Saves the validation results if enough of them changed. If the results were never loaded, the results on disk
    /// are not changed.
    pub fn save(&mut self) {
        let (Some(results), Some(cache)) = (&self.results, &self.folder) else { return };
        let LoadedState { entries, dependencies } = self.loaded;
        let has_changed =
            results.dependencies() != dependencies || results.len().abs_diff(entries) > results.len() / 50;
        if (self.is_save_due || has_changed) && cache.is_private() {
            let bytes = results.to_bytes(&cache.build_id);
            let _ = atomic::write_private(&cache.validation_file(), &bytes, Durability::Content);
            self.is_save_due = false;
        }
    }
}

impl CacheFolder {
    fn of(repo: &Repo) -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let cache = match variable("QONTRACT_CACHE") {
            Some(off) if off.as_os_str() == "off" => return None,
            Some(other) => std::path::absolute(other).ok()?,
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))?
                .join("qontract/repos"),
        };
        let place = format!("{}\n{:?}", repo.folder()?.canonicalize().ok()?.display(), repo.layout());
        // The key of the cache includes the executable, because another build may produce other documents from equal
        // files.
        let program = std::env::current_exe().ok()?;
        let metadata = program.metadata().ok()?;
        let built = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let version = env!("CARGO_PKG_VERSION");
        let build_id = format!("{version} {} {} {built}", program.display(), metadata.len());
        let folder = cache.join(Sha256::of(place.as_bytes()).to_string());
        Some(Self { folder, build_id })
    }

    /// Loads the parsed documents.
    fn load_files(cache: Option<&Self>, pool: &Pool) -> BuildCache {
        match cache.filter(|cache| cache.is_private()) {
            Some(cache) => BuildCache::default().restored_from(&cache.folder, &cache.build_id, pool),
            None => BuildCache::default(),
        }
    }

    /// Loads the validation results.
    fn load_validation(&self) -> Option<ValidationCache> {
        let bytes = self.is_private().then(|| std::fs::read(self.validation_file()).ok())??;
        ValidationCache::from_bytes(&bytes, &self.build_id)
    }

    /// The file of validation results.
    fn validation_file(&self) -> PathBuf {
        self.folder.join("validation")
    }

    /// Loads the source digest of a commit.
    fn load_commit(&self, commit: &str) -> Option<Sha256> {
        let text = std::fs::read_to_string(self.commit_file()).ok()?;
        Sha256::parse(text.strip_prefix(&self.commit_line(commit, ""))?)
    }

    /// The file of the source digest of the last commit.
    fn commit_file(&self) -> PathBuf {
        self.folder.join("commit")
    }

    /// The content of the file of the source digest.
    fn commit_line(&self, commit: &str, digest: &str) -> String {
        format!("{}\n{commit} {digest}", self.build_id)
    }

    /// Whether only this user can write to the directory. If others can write to it, it is neither read nor written.
    fn is_private(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let me = rustix::process::geteuid().as_raw();
        let is_private = |mode: u32| mode | 0o7700 | 0o170_000 == 0o177_700;
        let about = self.folder.symlink_metadata();
        about.is_ok_and(|about| about.is_dir() && about.uid() == me && is_private(about.mode()))
    }

    /// Removes leftover temporary files, the caches of repos that have not been used for a long time, and the
    /// oldest caches above the limit.
    fn prune(&self) {
        let age = |path: &Path| path.metadata().ok()?.modified().ok()?.elapsed().ok();
        for draft in entries(&self.folder) {
            let is_draft = draft
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(atomic::TEMPORARY_PREFIX));
            if is_draft && age(&draft).is_some_and(|age| age > MAX_DRAFT_AGE) {
                let _ = std::fs::remove_file(draft);
            }
        }
        let is_repo = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| Sha256::parse(name).is_some())
        };
        let repos = self.folder.parent().map(entries).unwrap_or_default().into_iter().filter(is_repo);
        let mut repos: Vec<(Duration, PathBuf)> = repos
            .filter_map(|repo| Some((age(&BuildCache::index_path(&repo)).or_else(|| age(&repo))?, repo)))
            .collect();
        repos.sort();
        for (number, (age, repo)) in repos.into_iter().enumerate() {
            if (number >= MAX_REPOS || age > MAX_AGE) && repo != self.folder {
                let _ = std::fs::remove_dir_all(repo);
            }
        }
    }
}

/// The entries of a directory.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
