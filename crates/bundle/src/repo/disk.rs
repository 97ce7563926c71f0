//! Opens files and directories of a data repo on disk: below its root, without following links, without
//! blocking.
//!
//! **Invariant:** every file of a data repo on disk is opened here. Even if a file is replaced between
//! listing and reading, nothing outside of the root is opened, and no FIFO or device blocks.

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

use super::{FileReadError, FileStamp, MAX_FILE_BYTES};

/// Flags of every open.
const OPEN_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Maximum total size of the files of one listing, measured as they are encoded in a bundle.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// The directory below which everything is opened.
#[derive(Debug)]
pub struct RootDir {
    folder: OwnedFd,
    path: PathBuf,
    /// Number of bytes that were read below the root so far.
    bytes_read: AtomicU64,
}

/// A file or directory below a root: a path without links.
#[derive(Clone, Debug)]
pub struct DiskPath {
    root: Arc<RootDir>,
    relative: PathBuf,
}

impl RootDir {
    /// Opens a directory whose path has no links.
    pub fn open(path: &Path) -> io::Result<Arc<Self>> {
        let folder = rustix::fs::open(path, OPEN_FLAGS | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Arc::new(Self { folder, path: path.to_owned(), bytes_read: AtomicU64::new(0) }))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts bytes that were read; fails once the total is too large.
    fn count(&self, bytes: &[u8]) -> io::Result<()> {
        let size = encoded_size(bytes);
        if self.bytes_read.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MAX_TOTAL_BYTES {
            let why = format!("the files have more than {} MiB in total", MAX_TOTAL_BYTES >> 20);
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
            // The kernel or a sandbox does not allow `openat2`, or an entry was renamed during the call.
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

    /// Opens one directory after another, so that no component can be a link.
    fn open_step_by_step(&self, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut components = relative.components().peekable();
        let mut folder: Option<OwnedFd> = None;
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else { return Err(Errno::XDEV) };
            let flags = if components.peek().is_some() { OPEN_FLAGS | OFlags::DIRECTORY } else { flags };
            let at = folder.as_ref().unwrap_or(&self.folder);
            folder = Some(rustix::fs::openat(at, name, flags, Mode::empty())?);
        }
        folder.ok_or(Errno::NOENT)
    }
}

/// Approximate size of a string in a bundle, where a control character becomes an escape of six bytes.
fn encoded_size(bytes: &[u8]) -> u64 {
    let is_control = |byte: &&u8| **byte < b' ' && !matches!(**byte, b'\t' | b'\n' | b'\r');
    bytes.len() as u64 + 5 * bytes.iter().filter(is_control).count() as u64
}

impl DiskPath {
    /// Creates a path below a root.
    pub fn new(root: &Arc<RootDir>, relative: impl Into<PathBuf>) -> Self {
        Self { root: Arc::clone(root), relative: relative.into() }
    }

    /// Creates the path for `path`, which has no links, if it is below the root.
    pub fn of(root: &Arc<RootDir>, path: &Path) -> Option<Self> {
        Some(Self::new(root, path.strip_prefix(root.path()).ok()?))
    }

    /// An entry of this directory.
    pub fn join(&self, name: &str) -> Self {
        Self { root: Arc::clone(&self.root), relative: self.relative.join(name) }
    }

    /// The absolute path.
    pub fn path(&self) -> PathBuf {
        self.root.path.join(&self.relative)
    }

    /// The metadata of the path; for a link, of the link itself.
    pub fn metadata(&self) -> io::Result<Metadata> {
        // The metadata is used only to compare stamps, so it does not matter how the path is resolved.
        fs::symlink_metadata(self.path())
    }

    /// The file stamp, if the platform has stamps.
    pub fn file_stamp(&self) -> Option<FileStamp> {
        FileStamp::of(&self.metadata().ok()?)
    }

    /// Reads the bytes of the file. Also returns the stamp that the file had before the read. Fails if the
    /// path is not a regular file.
    pub fn read_with_stamp(&self) -> Result<(Vec<u8>, Option<FileStamp>), FileReadError> {
        let file = self.root.open_below(&self.relative, OPEN_FLAGS).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => io::Error::other("it was replaced by a link"),
            // Opening a FIFO or a socket fails with this error.
            Errno::NXIO => io::Error::other("it is not a regular file"),
            error => error.into(),
        })?;
        let mut file = fs::File::from(file);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file").into());
        }
        let (size, stamp) = (about.len(), FileStamp::of(&about));
        if size > MAX_FILE_BYTES {
            return Err(FileReadError::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        (&mut file).take(size).read_to_end(&mut bytes)?;
        // Some file systems report size 0 for files with content, and the file may have grown; the limit
        // applies in both cases.
        if bytes.is_empty() {
            file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > MAX_FILE_BYTES {
                return Err(FileReadError::TooLarge(bytes.len() as u64));
            }
        }
        self.root.count(&bytes)?;
        Ok((bytes, stamp))
    }

    /// The names and kinds of the entries of this directory, in no particular order.
    pub fn entries(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let folder = self.root.open_below(&self.relative, OPEN_FLAGS | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not return the kind with the name.
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

    /// Reads a path with `openat2` and with the fallback.
    fn check(scratch: &Scratch, path: &str, expect: Result<&str, Errno>) {
        let root = RootDir::open(&scratch.path().canonicalize().unwrap()).unwrap();
        let ways = [RootDir::open_below, RootDir::open_step_by_step];
        for open in ways {
            let opened = open(&root, Path::new(path), OPEN_FLAGS).map(|file| {
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
    fn files_above_the_total_size_limit_are_not_read() {
        let scratch = Scratch::new();
        scratch.write("a", "four");
        let root = RootDir::open(&scratch.path().canonicalize().unwrap()).unwrap();
        root.bytes_read.store(MAX_TOTAL_BYTES - 4, Ordering::Relaxed);
        assert!(DiskPath::new(&root, "a").read_with_stamp().is_ok(), "exactly at the limit");
        let error = DiskPath::new(&root, "a").read_with_stamp().err().unwrap();
        assert_eq!(error.to_string(), "the files have more than 1024 MiB in total");
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
        let root = RootDir::open(&scratch.path().canonicalize().unwrap()).unwrap();
        for path in ["folder/b/file", "../x", "/etc/passwd"] {
            assert!(root.open_below(Path::new(path), OPEN_FLAGS).is_err(), "{path}");
            assert!(root.open_step_by_step(Path::new(path), OPEN_FLAGS).is_err(), "{path}");
        }
    }

    #[test]
    fn a_fifo_and_a_folder_are_not_regular_files() {
        let scratch = Scratch::new();
        scratch.write("folder/file", "text");
        let fifo = scratch.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let root = RootDir::open(&scratch.path().canonicalize().unwrap()).unwrap();
        for name in ["fifo", "folder"] {
            let error = DiskPath::new(&root, name).read_with_stamp().err().unwrap();
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
        }
        let mut entries = DiskPath::new(&root, "").entries().unwrap();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(entries, [("fifo".into(), FileType::Fifo), ("folder".into(), FileType::Directory)]);
    }

    #[test]
    fn a_file_above_the_size_limit_is_not_read() {
        let scratch = Scratch::new();
        let size = usize::try_from(MAX_FILE_BYTES).unwrap();
        scratch.write("most", vec![b'x'; size]);
        scratch.write("more", vec![b'x'; size + 1]);
        let root = RootDir::open(&scratch.path().canonicalize().unwrap()).unwrap();
        let read = |name| DiskPath::new(&root, name).read_with_stamp();
        assert_eq!(read("most").unwrap().0.len(), size);
        assert!(matches!(read("more"), Err(FileReadError::TooLarge(more)) if more == MAX_FILE_BYTES + 1));
    }
}
