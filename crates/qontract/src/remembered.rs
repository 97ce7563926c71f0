//! What is known of a data repo from the last time: in this process, or in another one before.
//!
//! Processes leave it to each other in the user's cache folder (`QONTRACT_CACHE` names another one, and `off` means none). Small data
//! repos leave nothing: they are read as fast.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use qontract_bundle::{Layout, Memory, Pool, Sha256};
use qontract_validate::Known;

/// What nobody has written anew for so long is removed.
const OLD: Duration = Duration::from_hours(30 * 24);

/// What is known.
#[derive(Default)]
pub struct Remembered {
    /// What was made of files.
    pub files: Memory,
    /// What was found to be right.
    pub right: Known,
    /// Where it is kept for other processes.
    kept: Option<Kept>,
}

struct Kept {
    folder: PathBuf,
    by: String,
    /// How much was known to be right.
    right: usize,
}

impl Remembered {
    /// What the last process knew of the data repo in `folder`.
    pub fn of(folder: &Path, layout: &Layout, pool: &Pool) -> Self {
        let Some(kept) = Kept::of(folder, layout) else { return Self::default() };
        let (files, right) = rayon::join(
            || Memory::default().restored(&kept.folder, &kept.by, pool),
            || {
                std::fs::read(kept.right_file())
                    .ok()
                    .and_then(|bytes| Known::from_bytes(&bytes))
                    .unwrap_or_default()
            },
        );
        let kept = Kept { right: right.len(), ..kept };
        Self { files, right, kept: Some(kept) }
    }

    /// Keeps what the next process will need. That it cannot be kept does not matter: it is found out again.
    /// `written` is where the bundle was written, if it was.
    pub fn keep(&self, written: Option<&Path>) {
        let Some(kept) = &self.kept else { return };
        if self.files.is_worth_saving() {
            let private = kept.folder.parent().is_some_and(|parent| make_private(parent).is_ok());
            if !private || self.files.save(&kept.folder, &kept.by, written).is_err() {
                return;
            }
            kept.remove_old();
        }
        let learnt = self.right.len().abs_diff(kept.right);
        if learnt > self.right.len() / 50 && kept.folder.is_dir() {
            let _ = std::fs::write(kept.right_file(), self.right.to_bytes());
        }
    }
}

impl Kept {
    fn of(folder: &Path, layout: &Layout) -> Option<Self> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let cache = match variable("QONTRACT_CACHE") {
            Some(off) if off.as_os_str() == "off" => return None,
            Some(other) => other,
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))?
                .join("qontract/repos"),
        };
        let place = format!("{}\n{layout:?}", folder.canonicalize().ok()?.display());
        // Another build of this program may make something else of the same files.
        let program = std::env::current_exe().ok()?.metadata().ok()?;
        let built = program.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let by = format!("{} {} {built}", env!("QONTRACT_VERSION"), program.len());
        Some(Self { folder: cache.join(Sha256::of(place.as_bytes()).to_string()), by, right: 0 })
    }

    /// The file of what is right.
    fn right_file(&self) -> PathBuf {
        self.folder.join("right")
    }

    /// Removes what was kept of data repos that are gone, or hardly ever asked for.
    fn remove_old(&self) {
        let others = self.folder.parent().and_then(|parent| std::fs::read_dir(parent).ok());
        for other in others.into_iter().flatten().flatten() {
            let written = other.path().join("index.json").metadata().and_then(|about| about.modified());
            let is_ours = other.file_name().to_str().is_some_and(|name| Sha256::parse(name).is_some());
            if is_ours && written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD)) {
                let _ = std::fs::remove_dir_all(other.path());
            }
        }
    }
}

/// Makes a folder that only its owner can look into: data repos may not be public.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
