//! On-disk cache of a data repo, for incremental bundling and validation across processes.
//!
//! The cache is in the user's cache folder (`QONTRACT_CACHE` names another one; `off` disables it), in one
//! folder per data repo. Entries of another build of this program are ignored. Small data repos are not
//! cached: reading them is as fast.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_bundle::{BuildCache, BuildOptions, Pool, Repo, Sha256, store};
use qontract_validate::ValidationCache;

use crate::private_files;

/// Caches of repos that were not written for this long are removed.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// Maximum number of repos with a cache.
const MAX_REPOS: usize = 8;
/// Temporary files older than this are leftovers, and are removed.
const MAX_DRAFT_AGE: Duration = Duration::from_hours(1);

/// The cache of one data repo.
#[derive(Default)]
pub struct RepoCache {
    /// Parsed documents by file.
    pub files: BuildCache,
    /// Files that are known to be valid.
    pub validation: LazyValidationCache,
}

/// Cache of validation results, loaded on first use.
#[derive(Default)]
pub struct LazyValidationCache {
    results: Option<ValidationCache>,
    /// The number of entries when it was loaded, and the hashes of their dependencies.
    loaded_size: (usize, [Option<Sha256>; 2]),
    /// Whether it is saved even if few entries are new, because the cache of files was saved.
    is_save_due: bool,
    /// The folder on disk; `None` if nothing is saved.
    folder: Option<CacheFolder>,
}

struct CacheFolder {
    folder: PathBuf,
    build_id: String,
}

impl RepoCache {
    /// Loads the cache of a data repo; empty for a Git revision. Validation results are loaded on first use.
    pub fn load(repo: &Repo, pool: &Pool) -> Self {
        let kept = CacheFolder::of(repo);
        let files = CacheFolder::load_files(kept.as_ref(), pool);
        Self { files, validation: LazyValidationCache { folder: kept, ..LazyValidationCache::default() } }
    }

    /// Loads the cache of a data repo, with validation results in parallel, for a caller that validates in
    /// any case.
    pub fn with_validation(repo: &Repo, pool: &Pool) -> Self {
        let kept = CacheFolder::of(repo);
        let (files, known) = rayon::join(
            || CacheFolder::load_files(kept.as_ref(), pool),
            || kept.as_ref().and_then(CacheFolder::load_validation).unwrap_or_default(),
        );
        Self { files, validation: LazyValidationCache::read(known, kept) }
    }

    /// The options of a build that uses this cache.
    pub fn build_options(&mut self) -> BuildOptions<'_> {
        BuildOptions { cache: Some(&mut self.files), ..BuildOptions::default() }
    }

    /// Saves the cache for the next process. Failures are ignored: the next process recomputes.
    /// `written` is the file to which the bundle was written, if it was.
    pub fn save(&mut self, written: Option<&Path>) {
        if self.save_files(written) {
            self.validation.save();
        }
    }

    /// Saves the parsed documents for the next process and frees them, for a caller that does not bundle
    /// again. Validation results can still be saved afterwards.
    pub fn release_files(&mut self) {
        if !self.save_files(None) {
            // Validation results are useless without the documents that they refer to.
            self.validation.folder = None;
        }
        self.files = BuildCache::default();
    }

    /// Saves the parsed documents if enough of them are new; returns whether the next process can use the
    /// cache.
    fn save_files(&mut self, written: Option<&Path>) -> bool {
        let Some(kept) = &self.validation.folder else { return false };
        if self.files.is_worth_saving() {
            let made = private_files::create_folder(&kept.folder, &kept.folder).is_ok() && kept.is_private();
            if !made || self.files.save(&kept.folder, &kept.build_id, written).is_err() {
                return false;
            }
            kept.prune();
            self.validation.is_save_due = true;
        }
        true
    }
}

impl LazyValidationCache {
    fn read(known: ValidationCache, folder: Option<CacheFolder>) -> Self {
        Self {
            loaded_size: (known.len(), known.dependencies()),
            results: Some(known),
            is_save_due: false,
            folder,
        }
    }

    /// The files that are known to be valid, loaded on first use.
    pub fn results(&mut self) -> &mut ValidationCache {
        let Self { results: known, loaded_size: before, folder: kept, .. } = self;
        known.get_or_insert_with(|| {
            let read = kept.as_ref().and_then(CacheFolder::load_validation).unwrap_or_default();
            *before = (read.len(), read.dependencies());
            read
        })
    }

    /// Saves the validation results if enough of them changed. If they were never loaded, the saved ones stay
    /// as they are.
    pub fn save(&mut self) {
        let (Some(known), Some(kept)) = (&self.results, &self.folder) else { return };
        let (before, grounds) = self.loaded_size;
        let has_learnt = known.dependencies() != grounds || known.len().abs_diff(before) > known.len() / 50;
        if (self.is_save_due || has_learnt) && kept.is_private() {
            let bytes = known.to_bytes(&kept.build_id);
            let _ = store::replace_private(&kept.validation_file(), &|out| out.write_all(&bytes));
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
        // Another build of this program may produce other documents from the same files.
        let program = std::env::current_exe().ok()?;
        let about = program.metadata().ok()?;
        let built = about.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let by = format!("{} {} {} {built}", env!("CARGO_PKG_VERSION"), program.display(), about.len());
        let folder = cache.join(Sha256::of(place.as_bytes()).to_string());
        Some(Self { folder, build_id: by })
    }

    /// Loads the parsed documents.
    fn load_files(kept: Option<&Self>, pool: &Pool) -> BuildCache {
        match kept.filter(|kept| kept.is_private()) {
            Some(kept) => BuildCache::default().restored_from(&kept.folder, &kept.build_id, pool),
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
        self.folder.join("right")
    }

    /// Whether only this user can write to the folder. Otherwise it is neither read nor written.
    #[cfg(unix)]
    fn is_private(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let me = rustix::process::geteuid().as_raw();
        let is_private = |mode: u32| mode | 0o7700 | 0o170_000 == 0o177_700;
        let about = self.folder.symlink_metadata();
        about.is_ok_and(|about| about.is_dir() && about.uid() == me && is_private(about.mode()))
    }

    #[cfg(not(unix))]
    fn is_ours(&self) -> bool {
        self.folder.is_dir()
    }

    /// Removes leftover temporary files, and caches of repos that have not been used for long or are too
    /// many.
    fn prune(&self) {
        let age = |path: &Path| path.metadata().ok()?.modified().ok()?.elapsed().ok();
        for draft in entries(&self.folder) {
            let is_draft =
                draft.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".draft-"));
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

/// The entries of a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
