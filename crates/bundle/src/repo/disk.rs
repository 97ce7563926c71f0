//! Opens files and folders of a data repo on disk: below its root, without following links, without blocking.
//!
//! **Invariant:** every file of a data repo on disk is opened here. Whatever takes the place of a file between the listing
//! and the reading, nothing outside of the root is opened, and no FIFO or device is waited for.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{MOST_BYTES, Sight};

/// How anything is opened.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// How many bytes the files of one listing may have together, as a bundle writes them.
const MAX_TOTAL: u64 = 1 << 30;

/// The folder below which everything is opened.
#[derive(Debug)]
pub struct Root {
    folder: OwnedFd,
    path: PathBuf,
    /// How many bytes were read below it.
    read: AtomicU64,
}

/// A file or folder below a root: a path without links.
#[derive(Clone, Debug)]
pub struct DiskPath {
    root: Arc<Root>,
    relative: PathBuf,
}

/// The bytes of a file that was opened.
pub struct Opened {
    /// How it looked before it was read.
    pub sight: Option<Sight>,
    /// Its bytes, or how many it has if there are too many.
    pub bytes: Result<Vec<u8>, u64>,
}

impl Root {
    /// Opens a folder whose path has no links.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let folder = rustix::fs::open(path, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Arc::new(Self { folder, path: path.to_owned(), read: AtomicU64::new(0) }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts bytes that were read, and fails once there are too many of them.
    fn count(&self, bytes: &[u8]) -> io::Result<()> {
        let size = encoded_size(bytes);
        if self.read.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MAX_TOTAL {
            let why = format!("the files have more than {} MiB together", MAX_TOTAL >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(())
    }

    /// Opens a path below the root that has no links and no `..`.
    fn open_below(&self, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if relative.as_os_str().is_empty() {
            return rustix::fs::openat(&self.folder, ".", flags, Mode::empty());
        }
        match self.open_at_once(relative, flags) {
            // Kernels and sandboxes without this call, and a rename during it.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => self.open_step_by_step(relative, flags),
            opened => opened,
        }
    }

    #[cfg(target_os = "linux")]
    fn open_at_once(&self, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.folder, relative, flags, Mode::empty(), resolve)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_at_once(&self, _relative: &Path, _flags: OFlags) -> rustix::io::Result<OwnedFd> {
        Err(Errno::NOSYS)
    }

    /// Opens one folder after the other, so that none of them can be a link.
    fn open_step_by_step(&self, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut components = relative.components().peekable();
        let mut folder: Option<OwnedFd> = None;
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else { return Err(Errno::XDEV) };
            let flags = if components.peek().is_some() { FLAGS | OFlags::DIRECTORY } else { flags };
            let at = folder.as_ref().unwrap_or(&self.folder);
            folder = Some(rustix::fs::openat(at, name, flags, Mode::empty())?);
        }
        folder.ok_or(Errno::NOENT)
    }
}

/// About how many bytes a text has in a bundle: a control character is an escape of six there.
fn encoded_size(bytes: &[u8]) -> u64 {
    let is_control = |byte: &&u8| **byte < b' ' && !matches!(**byte, b'\t' | b'\n' | b'\r');
    bytes.len() as u64 + 5 * bytes.iter().filter(is_control).count() as u64
}

impl DiskPath {
    /// A path below a root.
    pub fn new(root: &Arc<Root>, relative: impl Into<PathBuf>) -> Self {
        Self { root: Arc::clone(root), relative: relative.into() }
    }

    /// What `path` names, which has no links, if it is below the root.
    pub fn of(root: &Arc<Root>, path: &Path) -> Option<Self> {
        Some(Self::new(root, path.strip_prefix(root.path()).ok()?))
    }

    /// An entry of this folder.
    pub fn join(&self, name: &str) -> Self {
        Self { root: Arc::clone(&self.root), relative: self.relative.join(name) }
    }

    /// The whole path.
    pub fn path(&self) -> PathBuf {
        self.root.path.join(&self.relative)
    }

    /// What the file system says about it; of a link about the link itself.
    pub fn metadata(&self) -> io::Result<Metadata> {
        // Only looks are compared with this, so that it does not matter how the path is walked.
        fs::symlink_metadata(self.path())
    }

    /// How it looks, if looks tell anything.
    pub fn sight(&self) -> Option<Sight> {
        Sight::of(&self.metadata().ok()?)
    }

    /// Reads the file, unless it has too many bytes. What is not a regular file is an error.
    pub fn read(&self) -> io::Result<Opened> {
        let file = self.root.open_below(&self.relative, FLAGS).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => io::Error::other("it was replaced by a link"),
            // What a FIFO or socket in the place of the file gives.
            Errno::NXIO => io::Error::other("it is not a regular file"),
            error => error.into(),
        })?;
        let mut file = fs::File::from(file);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let (size, sight) = (about.len(), Sight::of(&about));
        if size > MOST_BYTES {
            return Ok(Opened { sight, bytes: Err(size) });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        (&mut file).take(size).read_to_end(&mut bytes)?;
        // What says that it is empty may have something all the same; it may also have grown: not past the limit.
        if bytes.is_empty() {
            file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > MOST_BYTES {
                return Ok(Opened { sight, bytes: Err(bytes.len() as u64) });
            }
        }
        self.root.count(&bytes)?;
        Ok(Opened { sight, bytes: Ok(bytes) })
    }

    /// The names and kinds of the entries of this folder, in no particular order.
    pub fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let folder = self.root.open_below(&self.relative, FLAGS | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not tell it with the name.
                FileType::Unknown => match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(about) => FileType::from_raw_mode(about.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(error) => return Err(error.into()),
                },
                kind => kind,
            };
            entries.push((OsString::from_vec(name.to_bytes().to_vec()), kind));
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qontract_testkit::Scratch;

    /// What comes of reading a path, in the way that is usual and in the way that needs no special call.
    fn check(scratch: &Scratch, path: &str, expect: Result<&str, Errno>) {
        let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
        let ways = [Root::open_below, Root::open_step_by_step];
        for open in ways {
            let opened = open(&root, Path::new(path), FLAGS).map(|file| {
                let mut text = String::new();
                fs::File::from(file).read_to_string(&mut text).unwrap();
                text
            });
            assert_eq!(opened.as_deref().map_err(|error| *error), expect, "{path}");
        }
    }

    #[test]
    fn a_control_character_counts_as_its_escape() {
        assert_eq!(encoded_size(b"a\tb\r\n c"), 7);
        assert_eq!(encoded_size(b"\0a\x1f"), 13);
    }

    #[test]
    fn files_that_have_too_many_bytes_together_are_not_read() {
        let scratch = Scratch::new();
        scratch.write("a", "four");
        let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
        root.read.store(MAX_TOTAL - 4, Ordering::Relaxed);
        assert!(DiskPath::new(&root, "a").read().is_ok(), "as many as there may be");
        let error = DiskPath::new(&root, "a").read().err().unwrap();
        assert_eq!(error.to_string(), "the files have more than 1024 MiB together");
    }

    #[test]
    fn files_below_the_root_are_opened_and_links_are_not() {
        let scratch = Scratch::new();
        scratch.write("a/b/file", "text");
        scratch.link("a/link", "b/file");
        scratch.link("folder", "a");
        scratch.link("outside", "/etc/passwd");
        check(&scratch, "a/b/file", Ok("text"));
        check(&scratch, "a/link", Err(Errno::LOOP));
        check(&scratch, "outside", Err(Errno::LOOP));
        check(&scratch, "a/b/none", Err(Errno::NOENT));
        let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
        for path in ["folder/b/file", "../x", "/etc/passwd"] {
            assert!(root.open_below(Path::new(path), FLAGS).is_err(), "{path}");
            assert!(root.open_step_by_step(Path::new(path), FLAGS).is_err(), "{path}");
        }
    }

    #[test]
    fn a_fifo_and_a_folder_are_no_files() {
        let scratch = Scratch::new();
        scratch.write("folder/file", "text");
        let fifo = scratch.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
        for name in ["fifo", "folder"] {
            let error = DiskPath::new(&root, name).read().err().unwrap();
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
        }
        let mut entries = DiskPath::new(&root, "").entries().unwrap();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(entries, [("fifo".into(), FileType::Fifo), ("folder".into(), FileType::Directory)]);
    }

    #[test]
    fn a_file_has_at_most_so_many_bytes() {
        let scratch = Scratch::new();
        let size = usize::try_from(MOST_BYTES).unwrap();
        scratch.write("most", vec![b'x'; size]);
        scratch.write("more", vec![b'x'; size + 1]);
        let root = Root::open(&scratch.path().canonicalize().unwrap()).unwrap();
        let read = |name| DiskPath::new(&root, name).read().unwrap().bytes.map(|bytes| bytes.len());
        assert_eq!((read("most"), read("more")), (Ok(size), Err(MOST_BYTES + 1)));
    }
}
