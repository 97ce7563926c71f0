//! Tells when a file changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// Folders of other machines, and links, may change without a word: so often it is looked all the same.
const AT_LEAST: Duration = Duration::from_secs(10);
/// The shortest time between two looks where nobody tells of changes.
const SHORTEST: Duration = Duration::from_millis(200);
/// So long nothing changes any more when all of a change is there.
const SETTLED: Duration = Duration::from_millis(20);
/// After so many of them it is looked whatever goes on.
const UNSETTLED: u32 = 20;
/// More files than these are not counted one by one.
const MANY: usize = 1000;

/// Why a wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something changed: these files, if it is known which.
    Told(Option<BTreeSet<PathBuf>>),
    /// Something might have changed: it was long enough.
    ByItself,
}

/// Files that changed, if it is known which.
type Told = Option<Vec<PathBuf>>;

/// Tells when something changes below some folders.
pub struct Alarm {
    /// What the operating system tells; it may tell nothing at all.
    told: Option<(Receiver<Told>, RecommendedWatcher)>,
    /// Whether it may have left something out, once and so from then on: nobody knows then which files changed.
    has_gaps: Arc<AtomicBool>,
}

impl Alarm {
    /// Of these folders, with all that is below them.
    pub fn new(folders: &[PathBuf]) -> Self {
        // What is not there yet is not watched.
        let has_gaps = Arc::new(AtomicBool::new(!folders.iter().all(|folder| folder.is_dir())));
        Self { told: listen(folders, &has_gaps).ok(), has_gaps }
    }

    /// How long it may take until everything is looked at, whatever is told. `took` is how long it takes to look.
    pub fn patience(took: Duration) -> Duration {
        AT_LEAST.max(took * 100)
    }

    /// Waits until something changed, or might have. `took` is how long it takes to look.
    pub fn wait(&self, took: Duration) -> Woken {
        let Some((told, _)) = &self.told else {
            std::thread::sleep((took * 10).max(SHORTEST));
            return Woken::ByItself;
        };
        match told.recv_timeout(Self::patience(took)) {
            Err(RecvTimeoutError::Timeout) => Woken::ByItself,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep((took * 10).max(SHORTEST));
                Woken::ByItself
            }
            Ok(first) => {
                let mut files = Some(BTreeSet::new());
                let mut add = |told: Told| {
                    if let (Some(all), Some(more)) = (&mut files, told) {
                        all.extend(more);
                    } else {
                        files = None;
                    }
                    files.take_if(|files| files.len() > MANY);
                };
                add(first);
                for _ in 0..UNSETTLED {
                    match told.recv_timeout(SETTLED) {
                        Ok(more) => add(more),
                        Err(_) => break,
                    }
                    told.try_iter().for_each(&mut add);
                }
                Woken::Told(files.filter(|_| !self.has_gaps.load(Ordering::Relaxed)))
            }
        }
    }
}

fn listen(
    folders: &[PathBuf],
    has_gaps: &Arc<AtomicBool>,
) -> notify::Result<(Receiver<Told>, RecommendedWatcher)> {
    let (sender, told) = mpsc::channel();
    let (roots, has_gaps) = (folders.to_vec(), Arc::clone(has_gaps));
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // That something is read, which we do ourselves, changes nothing. Whatever cannot be told apart may be a change.
        let told = match event {
            Ok(event) if event.need_rescan() || event.paths.is_empty() => None,
            Ok(event) => match event.kind {
                EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write) => return,
                EventKind::Access(_) | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) => {
                    // What comes in the place of a folder that is watched is not.
                    let is_about_looks = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
                    if !is_about_looks && event.paths.iter().any(|path| roots.contains(path)) {
                        has_gaps.store(true, Ordering::Relaxed);
                    }
                    Some(event.paths)
                }
                EventKind::Any | EventKind::Other => None,
            },
            Err(_) => {
                has_gaps.store(true, Ordering::Relaxed);
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
