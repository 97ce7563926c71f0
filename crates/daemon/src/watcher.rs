//! Tells when a file changes.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Folders of other machines, and links, may change without a word: so often it is looked all the same.
const MIN_PATIENCE: Duration = Duration::from_secs(10);
/// The shortest time between two looks where the operating system does not report changes.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// So long nothing changes any more when all of a change is there.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// After so many of them it is looked whatever goes on.
const MAX_DEBOUNCES: u32 = 20;
/// Interval between two checks whether the folders are still those that are watched.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of checks after the watches were renewed at which all files are looked at: files that appear while watches are being set up are
/// not reported.
const RECHECKS: u32 = 4;
/// More files than these are not counted one by one.
const MAX_FILES: usize = 1000;

/// Why a wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Something changed: these files, if it is known which.
    Changed(Option<BTreeSet<PathBuf>>),
    /// Something might have changed: it was long enough.
    Elapsed,
}

/// Files that changed, if it is known which.
type Told = Option<Vec<PathBuf>>;

/// Tells when something changes below some folders.
///
/// A watch is bound to a folder, not to its path. When a folder is deleted, moved or replaced, the watches are set up again on what is at the
/// path then.
pub struct RepoWatcher {
    folders: Vec<PathBuf>,
    /// The folders that are watched, in the same order; those that do not exist are not.
    watched: Vec<Option<FolderId>>,
    /// What the operating system tells; it may tell nothing at all.
    told: Option<(Receiver<Told>, RecommendedWatcher)>,
    gaps: Arc<Gaps>,
    /// How many of the next checks look at all files.
    rechecks: u32,
}

/// What a watcher missed, or will miss.
#[derive(Default)]
struct Gaps {
    /// Some events were lost, so that it is not known which files changed.
    has_lost: AtomicBool,
    /// A folder that is watched was removed or replaced.
    is_stale: AtomicBool,
}

/// Device and inode of a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FolderId(u64, u64);

impl FolderId {
    fn of(folder: &Path) -> Option<Self> {
        let about = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self(about.dev(), about.ino()))
    }
}

impl RepoWatcher {
    /// Of these folders, with all that is below them.
    pub fn new(folders: &[PathBuf]) -> Self {
        let (folders, watched) = (folders.to_vec(), Vec::new());
        let mut watcher = Self { folders, watched, told: None, gaps: Arc::default(), rechecks: 0 };
        watcher.renew();
        watcher.rechecks = 0;
        watcher
    }

    /// How long it may take until everything is looked at, whatever is reported. `took` is how long a look takes.
    pub fn patience(took: Duration) -> Duration {
        MIN_PATIENCE.max(took * 100)
    }

    /// Sets up the watches again if the folders are not those that are watched; whether that was so.
    fn renew(&mut self) -> bool {
        let now: Vec<Option<FolderId>> = self.folders.iter().map(|folder| FolderId::of(folder)).collect();
        if now == self.watched && !self.gaps.is_stale.load(Ordering::Relaxed) {
            return false;
        }
        // The watcher that goes must not report to the one that comes.
        self.gaps = Arc::default();
        self.gaps.has_lost.store(now.contains(&None), Ordering::Relaxed);
        self.watched = now;
        self.told = listen(&self.folders, &self.gaps).ok();
        self.rechecks = RECHECKS;
        true
    }

    /// Waits until something changed, or might have. `took` is how long it takes to look.
    pub fn wait(&mut self, took: Duration) -> WakeReason {
        let deadline = Instant::now() + Self::patience(took);
        loop {
            if self.renew() {
                return WakeReason::Changed(None);
            }
            let Some((told, _)) = &self.told else {
                std::thread::sleep((took * 10).max(MIN_POLL_INTERVAL));
                return WakeReason::Elapsed;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            match told.recv_timeout(left.min(CHECK_INTERVAL)) {
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
                    let next =
                        |pause| told.recv_timeout(pause).ok().into_iter().chain(told.try_iter()).collect();
                    let files = debounced(first, next);
                    return WakeReason::Changed(
                        files.filter(|_| !self.gaps.has_lost.load(Ordering::Relaxed)),
                    );
                }
            }
        }
    }
}

/// The files that changed until nothing changes any more, if it is known which. `next` has the events that come within a time, and those that are there by
/// then.
fn debounced(first: Told, mut next: impl FnMut(Duration) -> Vec<Told>) -> Option<BTreeSet<PathBuf>> {
    let mut files = Some(BTreeSet::new());
    let mut add = |told: Told| {
        if let (Some(all), Some(more)) = (&mut files, told) {
            all.extend(more);
        } else {
            files = None;
        }
        files.take_if(|files| files.len() > MAX_FILES);
    };
    add(first);
    for _ in 0..MAX_DEBOUNCES {
        let more = next(DEBOUNCE);
        if more.is_empty() {
            break;
        }
        more.into_iter().for_each(&mut add);
    }
    files
}

fn listen(folders: &[PathBuf], gaps: &Arc<Gaps>) -> notify::Result<(Receiver<Told>, RecommendedWatcher)> {
    let (sender, told) = mpsc::channel();
    let (roots, gaps) = (folders.to_vec(), Arc::clone(gaps));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reads, which we do ourselves, change nothing. Events of unknown kind may be changes.
        let told = match event {
            Ok(event) if event.need_rescan() || event.paths.is_empty() => None,
            Ok(event) => match event.kind {
                EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write) => return,
                EventKind::Access(_) | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => {
                    // What comes in the place of a folder that is watched is not.
                    let is_about_looks = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
                    if !is_about_looks && event.paths.iter().any(|path| roots.contains(path)) {
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
        let _ = sender.send(told);
    })?;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        watcher.watch(folder, RecursiveMode::Recursive)?;
    }
    Ok((told, watcher))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "`None` is an event without names")]
    fn event(files: &[&str]) -> Told {
        Some(files.iter().map(PathBuf::from).collect())
    }

    /// What comes of a first event and what follows in each pause; and how many pauses there were.
    fn check(first: Told, follows: &[&[Told]], expect: Option<&[&str]>, pauses: u32) {
        let mut count = 0;
        let next = |pause| {
            assert_eq!(pause, DEBOUNCE);
            count += 1;
            follows.get(count - 1).map(|events| events.to_vec()).unwrap_or_default()
        };
        let files = debounced(first, next);
        assert_eq!(files, expect.map(|files| files.iter().map(PathBuf::from).collect()));
        assert_eq!(u32::try_from(count).unwrap(), pauses);
    }

    #[test]
    fn events_are_collected_until_it_is_quiet_for_a_moment() {
        check(event(&["a"]), &[], Some(&["a"]), 1);
        check(event(&["a"]), &[&[event(&["b"]), event(&["a"])], &[event(&["c"])]], Some(&["a", "b", "c"]), 3);
        // An event that does not say which files leaves none known.
        check(event(&["a"]), &[&[None], &[event(&["b"])]], None, 3);
        check(None, &[&[event(&["b"])]], None, 2);
    }

    #[test]
    fn files_that_never_stop_changing_are_read_all_the_same() {
        let one = [event(&["a"])];
        let busy = vec![&one[..]; MAX_DEBOUNCES as usize + 5];
        check(event(&["a"]), &busy, Some(&["a"]), MAX_DEBOUNCES);
    }

    #[test]
    fn too_many_files_are_not_named_one_by_one() {
        let names: Vec<PathBuf> = (0..=MAX_FILES).map(|number| PathBuf::from(number.to_string())).collect();
        let known =
            |count: usize| debounced(Some(names[..count].to_vec()), |_| Vec::new()).map(|files| files.len());
        assert_eq!(known(MAX_FILES), Some(MAX_FILES));
        assert_eq!(known(MAX_FILES + 1), None);
    }

    #[test]
    fn everything_is_looked_at_after_a_while_the_later_the_longer_it_takes() {
        let check = |took, expect| assert_eq!(RepoWatcher::patience(took), expect);
        check(Duration::ZERO, Duration::from_secs(10));
        check(Duration::from_millis(100), Duration::from_secs(10));
        check(Duration::from_millis(101), Duration::from_millis(10_100));
    }
}
