//! File watching (inotify): watches the files of a data repo for changes, with debouncing (debounce). If files cannot
//! be watched, they are polled.
//!
//! **Invariant:** a wait ends only once the data repo has settled: no event has arrived for a while, and no Git
//! command is updating the work tree. A bundle of a half-updated work tree lacks files, so a loop would remove
//! objects that are still declared (`a_half_updated_work_tree_removes_nothing`).
//!
//! Each directory has its own watch, down to the depth at which files are read. The recursive watches of the library
//! are not used, because they take quadratic time in the depth, and a deep tree would delay the events of all other
//! files.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use qontract_bundle::repo::MAX_DEPTH;

/// Minimum interval of polls in addition to watches, which do not report changes on network file systems and
/// behind links.
const MIN_FULL_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum interval of polls where the operating system does not report changes.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Debounce time: the time without events after which a change counts as complete.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Debounce time after files have disappeared or unknown files have changed: a tool may be about to write them again,
/// or to write them under another name.
pub const DEBOUNCE_REMOVALS: Duration = Duration::from_millis(500);
/// Maximum time to wait until the data repo has settled, after which the data is read even if files still change.
pub const MAX_SETTLE: Duration = Duration::from_mins(1);
/// Age at which a lock file of Git counts as left over from a command that was killed.
const MAX_LOCK_AGE: Duration = Duration::from_mins(10);
/// Interval at which it is checked whether the watched directories were replaced.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of checks that poll all files after the watches were renewed, because files that appear while
/// watches are being set up are not reported.
const RECHECKS: u32 = 4;
/// Maximum number of changed files that are tracked individually.
const MAX_FILES: usize = 1000;

/// The reason why a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Files changed; `None` if the changed files are unknown.
    Changed(Option<BTreeSet<PathBuf>>),
    /// The poll interval elapsed.
    Elapsed,
}

/// The files of an event; `None` if the changed files are unknown.
type ChangedFiles = Option<Vec<PathBuf>>;

/// Watches directories recursively.
///
/// A watch is bound to a directory, not to its path. When a directory is deleted, moved or replaced, the
/// watches are set up again on the new directory at that path.
pub struct RepoWatcher {
    folders: Vec<PathBuf>,
    /// The identities of the watched directories, in the order of their paths; `None` for a directory that does not
    /// exist.
    watched: Vec<Option<FolderId>>,
    /// Events of the operating system; `None` if the operating system cannot watch all directories.
    events: Option<(Receiver<ChangedFiles>, RecommendedWatcher)>,
    gaps: Arc<WatchGaps>,
    /// Number of remaining checks that poll all files.
    rechecks: u32,
    /// An event that was received and not handled yet.
    pending: Option<ChangedFiles>,
    /// The lock file of Git, if the data repo is in a repository.
    git_lock: Option<PathBuf>,
}

/// Gaps in the events of a watcher.
#[derive(Default)]
struct WatchGaps {
    /// Events were lost, so the changed files are unknown.
    has_lost: AtomicBool,
    /// A watched directory was removed or replaced.
    is_stale: AtomicBool,
}

/// Device and inode of a directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FolderId(u64, u64);

impl FolderId {
    fn of(folder: &Path) -> Option<Self> {
        let metadata = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

impl RepoWatcher {
    /// Creates a watcher that watches these directories recursively.
    pub fn new(folders: &[PathBuf]) -> Self {
        let git_lock = folders.iter().find_map(|folder| qontract_git::index_lock(folder));
        let (folders, watched) = (folders.to_vec(), Vec::new());
        let (events, gaps, pending) = (None, Arc::default(), None);
        let mut watcher = Self { folders, watched, events, gaps, rechecks: 0, pending, git_lock };
        watcher.renew();
        watcher.rechecks = 0;
        watcher
    }

    /// The interval of polls in addition to watches. `took` is the duration of the last poll.
    pub fn full_poll_interval(took: Duration) -> Duration {
        MIN_FULL_POLL_INTERVAL.max(took * 100)
    }

    /// Sets up the watches again if a directory was replaced. Returns whether a directory was replaced.
    fn renew(&mut self) -> bool {
        let now: Vec<Option<FolderId>> = self.folders.iter().map(|folder| FolderId::of(folder)).collect();
        if now == self.watched && !self.gaps.is_stale.load(Ordering::Relaxed) {
            return false;
        }
        // The old watcher must not send events to the new one.
        self.gaps = Arc::default();
        self.gaps.has_lost.store(now.contains(&None), Ordering::Relaxed);
        self.watched = now;
        self.events = watch_folders(&self.folders, &self.gaps).ok();
        self.rechecks = RECHECKS;
        true
    }

    /// Whether a file has changed since the last wait.
    pub fn has_changed(&mut self) -> bool {
        if let (None, Some((events, _))) = (&self.pending, &self.events) {
            self.pending = events.try_recv().ok();
        }
        self.pending.is_some() || is_held(self.git_lock.as_deref())
    }

    /// Waits for a change or the poll interval. `took` is the duration of the last poll.
    pub fn wait(&mut self, took: Duration) -> WakeReason {
        let deadline = Instant::now() + Self::full_poll_interval(took);
        loop {
            if self.renew() {
                return WakeReason::Changed(None);
            }
            let Some((events, _)) = &self.events else {
                std::thread::sleep((took * 10).max(MIN_POLL_INTERVAL));
                return WakeReason::Elapsed;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let received = match self.pending.take() {
                Some(event) => Ok(event),
                None => events.recv_timeout(left.min(CHECK_INTERVAL)),
            };
            match received {
                Err(RecvTimeoutError::Timeout) if self.rechecks > 0 => {
                    self.rechecks -= 1;
                    return WakeReason::Elapsed;
                }
                Err(RecvTimeoutError::Timeout) if left <= CHECK_INTERVAL => return WakeReason::Elapsed,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep((took * 10).max(MIN_POLL_INTERVAL));
                    return WakeReason::Elapsed;
                }
                Ok(first) => {
                    let next = |pause| {
                        events.recv_timeout(pause).ok().into_iter().chain(events.try_iter()).collect()
                    };
                    let is_locked = || is_held(self.git_lock.as_deref());
                    let files = debounce(first, next, &|path| path.symlink_metadata().is_ok(), &is_locked);
                    let has_new = self.watch_new_directories(files.as_ref());
                    let is_known = !has_new && !self.gaps.has_lost.load(Ordering::Relaxed);
                    return WakeReason::Changed(files.filter(|_| is_known));
                }
            }
        }
    }
}

impl RepoWatcher {
    /// Watches the directories among the changed files, or all directories if the changed files are unknown. Returns
    /// whether there are new directories: files in them may have appeared before the directories were watched.
    fn watch_new_directories(&mut self, files: Option<&BTreeSet<PathBuf>>) -> bool {
        let Some((_, watcher)) = &mut self.events else { return false };
        let directories = match files {
            Some(files) => topmost(files.iter().filter(|path| path.is_dir())),
            None => self.folders.iter().filter(|path| path.is_dir()).collect(),
        };
        for directory in &directories {
            let depth = self.folders.iter().find_map(|folder| directory.strip_prefix(folder).ok());
            let depth = depth.map_or(0, |below| below.components().count());
            if watch_tree(watcher, directory, depth).is_err() {
                // If not all directories can be watched, the data repo is polled.
                self.events = None;
                break;
            }
        }
        !directories.is_empty()
    }
}

/// The paths that are not below another path of `paths`, which must be sorted.
fn topmost<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Vec<&'p PathBuf> {
    let mut top: Vec<&PathBuf> = Vec::new();
    for path in paths {
        if top.last().is_none_or(|last| !path.starts_with(last)) {
            top.push(path);
        }
    }
    top
}

/// Watches a directory and all directories below it. `depth` is the depth of `directory` in the data repo;
/// directories that are nested too deeply or have a hidden name are not read. Links are followed; each directory is
/// watched once.
fn watch_tree(watcher: &mut RecommendedWatcher, directory: &Path, depth: usize) -> notify::Result<()> {
    let (mut level, mut seen) = (vec![directory.to_path_buf()], BTreeSet::new());
    for _ in depth..=MAX_DEPTH {
        let mut next = Vec::new();
        for directory in level {
            let Some(id) = FolderId::of(&directory) else { continue };
            if !seen.insert(id) {
                continue;
            }
            // The directory is watched before it is listed, so that no new directory in it is missed.
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Err(_) if FolderId::of(&directory).is_none() => continue,
                watched => watched?,
            }
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
                let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
                if is_directory && !is_hidden {
                    next.push(entry.path());
                }
            }
        }
        level = next;
    }
    Ok(())
}

/// Waits until no Git command updates the work tree that contains `folder`, up to a limit.
pub fn await_git(folder: &Path) {
    let lock = qontract_git::index_lock(folder);
    let deadline = Instant::now() + MAX_SETTLE;
    while is_held(lock.as_deref()) && Instant::now() < deadline {
        std::thread::sleep(DEBOUNCE);
    }
}

/// Whether a Git command holds this lock file.
fn is_held(lock: Option<&Path>) -> bool {
    let metadata = lock.and_then(|lock| lock.symlink_metadata().ok());
    let age = metadata.map(|metadata| metadata.modified().ok().and_then(|time| time.elapsed().ok()));
    age.is_some_and(|age| age.unwrap_or_default() < MAX_LOCK_AGE)
}

/// Collects the changed files of a burst of events until the data repo has settled; `None` if the changed files are
/// unknown. `next` returns the events that arrive within a period.
fn debounce(
    first: ChangedFiles,
    mut next: impl FnMut(Duration) -> Vec<ChangedFiles>,
    exists: &dyn Fn(&Path) -> bool,
    is_locked: &dyn Fn() -> bool,
) -> Option<BTreeSet<PathBuf>> {
    let mut files = Some(BTreeSet::new());
    let mut add = |event: ChangedFiles| {
        if let (Some(all), Some(more)) = (&mut files, event) {
            all.extend(more);
        } else {
            files = None;
        }
        files.take_if(|files| files.len() > MAX_FILES);
    };
    let mut has_removals =
        |event: &ChangedFiles| event.as_ref().is_none_or(|paths| paths.iter().any(|path| !exists(path)));
    let mut pause = if has_removals(&first) { DEBOUNCE_REMOVALS } else { DEBOUNCE };
    let mut waited = Duration::ZERO;
    add(first);
    while waited < MAX_SETTLE {
        let more = next(pause);
        waited += pause;
        if more.is_empty() && !is_locked() {
            break;
        }
        if more.iter().any(&mut has_removals) {
            pause = DEBOUNCE_REMOVALS;
        }
        more.into_iter().for_each(&mut add);
    }
    files
}

fn watch_folders(
    folders: &[PathBuf],
    gaps: &Arc<WatchGaps>,
) -> notify::Result<(Receiver<ChangedFiles>, RecommendedWatcher)> {
    let (sender, events) = mpsc::channel();
    let (roots, gaps) = (folders.to_vec(), Arc::clone(gaps));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Events of reads are ignored, because this process causes them itself. Events of unknown kind may be
        // changes.
        let files = match event {
            Ok(event) if event.need_rescan() || event.paths.is_empty() => None,
            Ok(event) => match event.kind {
                EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write) => return,
                EventKind::Access(_) | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => {
                    // Unless only metadata changed, a watched directory may have been replaced by one that is not
                    // watched yet.
                    let is_metadata_only = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
                    if !is_metadata_only && event.paths.iter().any(|path| roots.contains(path)) {
                        gaps.has_lost.store(true, Ordering::Relaxed);
                        gaps.is_stale.store(true, Ordering::Relaxed);
                    }
                    Some(event.paths)
                }
                EventKind::Any | EventKind::Other => None,
            },
            Err(_) => {
                gaps.has_lost.store(true, Ordering::Relaxed);
                None
            }
        };
        let _ = sender.send(files);
    })?;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        watch_tree(&mut watcher, folder, 0)?;
    }
    Ok((events, watcher))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "`None` is an event without names")]
    fn event(files: &[&str]) -> ChangedFiles {
        Some(files.iter().map(PathBuf::from).collect())
    }

    /// Checks the files and the lengths of the periods that follow from a first event and the events of each period.
    /// Files whose names begin with `gone` do not exist.
    fn check(first: ChangedFiles, follows: &[&[ChangedFiles]], expect: Option<&[&str]>, pauses: &[Duration]) {
        let mut seen = Vec::new();
        let next = |pause| {
            seen.push(pause);
            follows.get(seen.len() - 1).map(|events| events.to_vec()).unwrap_or_default()
        };
        let exists = |path: &Path| !path.to_string_lossy().starts_with("gone");
        let files = debounce(first, next, &exists, &|| false);
        assert_eq!(files, expect.map(|files| files.iter().map(PathBuf::from).collect()));
        assert_eq!(seen, pauses);
    }

    const SHORT: Duration = DEBOUNCE;
    const LONG: Duration = DEBOUNCE_REMOVALS;

    #[test]
    fn events_are_debounced() {
        check(event(&["a"]), &[], Some(&["a"]), &[SHORT]);
        let follows: [&[ChangedFiles]; 2] = [&[event(&["b"]), event(&["a"])], &[event(&["c"])]];
        check(event(&["a"]), &follows, Some(&["a", "b", "c"]), &[SHORT; 3]);
        // After an event without files, all changed files are unknown.
        check(event(&["a"]), &[&[None], &[event(&["b"])]], None, &[SHORT, LONG, LONG]);
        check(None, &[&[event(&["b"])]], None, &[LONG, LONG]);
    }

    #[test]
    fn a_file_that_disappears_may_come_back() {
        check(event(&["gone"]), &[&[event(&["a"])]], Some(&["a", "gone"]), &[LONG, LONG]);
        check(event(&["a"]), &[&[event(&["gone"])]], Some(&["a", "gone"]), &[SHORT, LONG]);
    }

    #[test]
    fn a_git_command_in_progress_is_waited_for() {
        let left = std::cell::Cell::new(5);
        let is_locked = || {
            left.set(left.get() - 1);
            left.get() > 0
        };
        let mut pauses = 0;
        let next = |_| {
            pauses += 1;
            Vec::new()
        };
        debounce(event(&["a"]), next, &|_| true, &is_locked);
        assert_eq!(pauses, 5);
    }

    #[test]
    fn files_that_never_stop_changing_are_read_anyway() {
        let mut waited = Duration::ZERO;
        let next = |pause| {
            waited += pause;
            vec![event(&["a"])]
        };
        assert_eq!(debounce(event(&["a"]), next, &|_| true, &|| true).map(|files| files.len()), Some(1));
        assert_eq!(waited, MAX_SETTLE);
    }

    #[test]
    fn only_the_topmost_of_nested_directories_are_watched() {
        let paths = ["a", "a/b", "a/b/c", "a2", "b/c"].map(PathBuf::from);
        let top: Vec<_> = topmost(paths.iter()).into_iter().map(|path| path.display().to_string()).collect();
        assert_eq!(top, ["a", "a2", "b/c"]);
    }

    /// Waits until a change of this path or of unknown files is reported.
    fn wait_for(watcher: &mut RepoWatcher, path: &Path) -> Option<BTreeSet<PathBuf>> {
        loop {
            match watcher.wait(Duration::ZERO) {
                WakeReason::Changed(Some(files)) if !files.contains(path) => {}
                WakeReason::Changed(files) => return files,
                WakeReason::Elapsed => {}
            }
        }
    }

    #[test]
    fn files_in_new_directories_are_watched() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("data/old/x.yml", "");
        let path = |name: &str| scratch.path().join("data").join(name);
        let mut watcher = RepoWatcher::new(&[scratch.path().join("data")]);
        scratch.write("data/new/deep/x.yml", "");
        assert_eq!(wait_for(&mut watcher, &path("new/deep/x.yml")), None, "files in them are unknown");
        while watcher.has_changed() {
            watcher.wait(Duration::ZERO);
        }
        for file in ["old/x.yml", "new/deep/x.yml"] {
            scratch.write(&format!("data/{file}"), "changed");
            assert_eq!(wait_for(&mut watcher, &path(file)), Some(BTreeSet::from([path(file)])));
        }
    }

    #[test]
    fn a_directory_that_was_renamed_is_watched_under_its_new_name() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("data/one/x.yml", "");
        let path = |name: &str| scratch.path().join("data").join(name);
        let mut watcher = RepoWatcher::new(&[scratch.path().join("data")]);
        std::fs::rename(path("one"), path("two")).unwrap();
        assert_eq!(wait_for(&mut watcher, &path("two")), None);
        while watcher.has_changed() {
            watcher.wait(Duration::ZERO);
        }
        scratch.write("data/two/x.yml", "changed");
        assert_eq!(wait_for(&mut watcher, &path("two/x.yml")), Some(BTreeSet::from([path("two/x.yml")])));
    }

    #[test]
    fn links_in_a_circle_are_watched_once() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("data/a/x.yml", "");
        for name in ["one", "two", "three"] {
            std::os::unix::fs::symlink(scratch.path().join("data"), scratch.path().join("data/a").join(name))
                .unwrap();
        }
        let mut watcher = RepoWatcher::new(&[scratch.path().join("data")]);
        scratch.write("data/a/x.yml", "changed");
        assert!(wait_for(&mut watcher, &scratch.path().join("data/a/x.yml")).is_some());
    }

    #[test]
    fn an_old_lock_file_is_left_over() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("index.lock", "");
        let lock = scratch.path().join("index.lock");
        assert!(is_held(Some(&lock)));
        let file = std::fs::File::options().write(true).open(&lock).unwrap();
        file.set_modified(std::time::SystemTime::now() - MAX_LOCK_AGE).unwrap();
        assert!(!is_held(Some(&lock)));
        assert!(!is_held(Some(&scratch.path().join("none"))) && !is_held(None));
    }

    #[test]
    fn too_many_files_are_not_tracked_one_by_one() {
        let names: Vec<PathBuf> = (0..=MAX_FILES).map(|number| PathBuf::from(number.to_string())).collect();
        let tracked = |count: usize| {
            let files = debounce(Some(names[..count].to_vec()), |_| Vec::new(), &|_| true, &|| false);
            files.map(|files| files.len())
        };
        assert_eq!(tracked(MAX_FILES), Some(MAX_FILES));
        assert_eq!(tracked(MAX_FILES + 1), None);
    }

    #[test]
    fn the_poll_interval_grows_with_the_duration_of_a_poll() {
        let check = |took, expect| assert_eq!(RepoWatcher::full_poll_interval(took), expect);
        check(Duration::ZERO, Duration::from_secs(10));
        check(Duration::from_millis(100), Duration::from_secs(10));
        check(Duration::from_millis(101), Duration::from_millis(10_100));
    }
}
