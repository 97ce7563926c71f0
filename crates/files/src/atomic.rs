//! Replaces files atomically.
//!
//! **Invariant:** the path has either its previous content or the whole new content, no matter when this
//! process or another writer ends. The content is written to a temporary file in the same directory, whose
//! name begins with a dot, and the file is then renamed. If an error occurs, the temporary file is removed.
//!
//! Three things differ between callers:
//!
//! - *Who may read the file.* [`AtomicFile::private`] creates files of mode 0600, regardless of the
//!   permissions of the previous file, and replaces a symbolic link itself, so nothing is written outside of
//!   the directory. [`AtomicFile::output`] is for paths that the user chose: it keeps the permissions of the
//!   previous file, writes to the target of a link, and writes directly to a target that is not a regular
//!   file, such as a pipe.
//! - *What survives a power failure*: see [`Durability`].
//! - *Leftover temporary files of a killed process.* The name of the temporary file is unique, so concurrent
//!   writers do not share it. Callers that hold a lock use [`AtomicFile::locked`], whose temporary file has a
//!   fixed name, so that the next write removes the file that a killed process left.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, IntoInnerError, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The prefix of the names of temporary files.
pub const TEMPORARY_PREFIX: &str = ".draft-";
/// The size of the write buffer. Memory is only used for the pages that the content fills.
const BUFFER_BYTES: usize = 1 << 20;

/// The changes that a power failure or a crash of the operating system can undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// None. The content and the directory are on disk before the replacement returns.
    Directory,
    /// The replacement, but not the content. After the failure, the path has either the complete old content
    /// or the complete new content.
    Content,
    /// All changes: after the failure, the file can be incomplete. Used for files that have a checksum or
    /// that can be created again.
    None,
}

/// The permissions of a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Only the owner may read the file.
    Private,
    /// The permissions of the previous file; a new file is readable by everyone.
    Preserved,
}

/// A file that replaces another file when it is committed.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    out: Output,
    access: Access,
    durability: Durability,
}

#[derive(Debug)]
enum Output {
    /// A temporary file.
    Temporary(BufWriter<NamedTempFile>),
    /// The target itself, because it is not a regular file (a pipe, for example). Opened at the first write,
    /// because opening a pipe can block.
    Direct { target: PathBuf, opened: Option<File> },
}

/// Replaces a file that only its owner may read.
pub fn write_private(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let mut file = AtomicFile::private(path, durability)?;
    file.write_all(content)?;
    file.commit()
}

/// Replaces a file at a path that the user chose.
pub fn write_output(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::output(path)?;
    file.write_all(content)?;
    file.commit()
}

impl AtomicFile {
    /// Replaces a file that only its owner may read.
    pub fn private(path: &Path, durability: Durability) -> io::Result<Self> {
        let file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder_of(path));
        Ok(Self::temporary(path, file.map_err(without_path)?, durability))
    }

    /// Replaces a file that only its owner may read, through a temporary file at `temporary`, which must be in the
    /// same file system. The caller holds a lock, so no other process uses the temporary file. A temporary file that
    /// a killed process left, or a link in its place, is removed.
    pub fn locked(path: &Path, temporary: &Path, durability: Durability) -> io::Result<Self> {
        match fs::remove_file(temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let name = temporary.file_name().unwrap_or_default();
        let file = tempfile::Builder::new().prefix(name).rand_bytes(0).tempfile_in(folder_of(temporary));
        Ok(Self::temporary(path, file.map_err(without_path)?, durability))
    }

    /// Replaces a file at a path that the user chose.
    pub fn output(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (access, durability) = (Access::Preserved, Durability::Content);
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            let out = Output::Direct { target: path.clone(), opened: None };
            return Ok(Self { path, out, access, durability });
        }
        Ok(Self { access, ..Self::private(&path, durability)? })
    }

    fn temporary(path: &Path, file: NamedTempFile, durability: Durability) -> Self {
        let out = Output::Temporary(BufWriter::with_capacity(BUFFER_BYTES, file));
        Self { path: path.to_owned(), out, access: Access::Private, durability }
    }

    /// Whether the content is invisible until it is committed. The content written to a pipe, for example, is
    /// visible at once.
    pub fn is_atomic(&self) -> bool {
        matches!(self.out, Output::Temporary(_))
    }

    /// Appends the content of another file. The operating system copies it, without passing it through this process.
    pub fn copy(&mut self, mut from: &File) -> io::Result<()> {
        match &mut self.out {
            Output::Temporary(out) => {
                out.flush().map_err(without_path)?;
                io::copy(&mut from, out.get_mut().as_file_mut())?;
            }
            Output::Direct { .. } => drop(io::copy(&mut from, self)?),
        }
        Ok(())
    }

    /// Moves the file to its path.
    pub fn commit(self) -> io::Result<()> {
        let Self { path, out, access, durability } = self;
        let file = match out {
            Output::Temporary(out) => {
                out.into_inner().map_err(IntoInnerError::into_error).map_err(without_path)?
            }
            Output::Direct { opened, .. } => return opened.map_or(Ok(()), |mut opened| opened.flush()),
        };
        if access == Access::Preserved {
            let mode = path.metadata().map_or(0o644, |old| old.permissions().mode());
            file.as_file().set_permissions(Permissions::from_mode(mode & 0o777))?;
        }
        if durability != Durability::None {
            file.as_file().sync_all()?;
        }
        file.persist(&path).map_err(|error| error.error)?;
        if durability == Durability::Directory {
            File::open(folder_of(&path))?.sync_all()?;
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Output::Temporary(out) => out.write(bytes).map_err(without_path),
            Output::Direct { opened: Some(out), .. } => out.write(bytes),
            Output::Direct { target, opened } => {
                let file = File::options().write(true).open(target)?;
                opened.insert(file).write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Output::Temporary(out) => out.flush().map_err(without_path),
            Output::Direct { opened, .. } => opened.as_mut().map_or(Ok(()), Write::flush),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes the path of the temporary file from an error, because the user does not know this path; the caller
/// names the target file.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use qontract_testkit::Scratch;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    fn names(scratch: &Scratch) -> Vec<String> {
        let entries = fs::read_dir(scratch.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_private_file_is_private_whatever_it_was() {
        let scratch = Scratch::new();
        let path = scratch.write("state.json", "old");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        for durability in [Durability::Directory, Durability::Content, Durability::None] {
            write_private(&path, b"new", durability).unwrap();
            assert_eq!((scratch.read("state.json").as_str(), mode(&path)), ("new", 0o600));
        }
        assert_eq!(names(&scratch), ["state.json"]);
    }

    #[test]
    fn a_private_file_replaces_a_link_and_an_output_follows_it() {
        let scratch = Scratch::new();
        scratch.write("target", "old");
        scratch.link("link", "target");
        let link = scratch.path().join("link");
        write_output(&link, b"new").unwrap();
        assert_eq!(scratch.read("target"), "new");
        assert!(link.is_symlink());
        write_private(&link, b"private", Durability::Content).unwrap();
        assert_eq!((scratch.read("target").as_str(), scratch.read("link").as_str()), ("new", "private"));
        assert!(!link.is_symlink());
    }

    #[test]
    fn an_output_keeps_its_permissions_and_a_new_one_is_readable_by_everyone() {
        let scratch = Scratch::new();
        let path = scratch.write("old", "");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_output(&path, b"new").unwrap();
        assert_eq!(mode(&path), 0o640);
        write_output(&scratch.path().join("new"), b"new").unwrap();
        assert_eq!(mode(&scratch.path().join("new")), 0o644);
    }

    #[test]
    fn an_uncommitted_file_leaves_nothing() {
        let scratch = Scratch::new();
        let path = scratch.write("state", "old");
        let mut file = AtomicFile::private(&path, Durability::None).unwrap();
        file.write_all(b"new").unwrap();
        assert!(file.is_atomic());
        drop(file);
        assert_eq!((scratch.read("state").as_str(), names(&scratch)), ("old", vec!["state".to_owned()]));
    }

    #[test]
    fn a_locked_replacement_removes_the_remains_of_a_killed_process() {
        let scratch = Scratch::new();
        scratch.write("elsewhere", "unchanged");
        let (path, temporary) = (scratch.path().join("state"), scratch.path().join(".state.draft"));
        for leave in [
            |scratch: &Scratch| drop(scratch.write(".state.draft", "half")),
            |scratch: &Scratch| {
                scratch.link(".state.draft", "elsewhere");
            },
        ] {
            leave(&scratch);
            let mut file = AtomicFile::locked(&path, &temporary, Durability::Directory).unwrap();
            file.write_all(b"whole").unwrap();
            file.commit().unwrap();
            assert_eq!((scratch.read("state").as_str(), mode(&path)), ("whole", 0o600));
            assert_eq!(scratch.read("elsewhere"), "unchanged");
            assert_eq!(names(&scratch), ["elsewhere", "state"]);
        }
    }

    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let scratch = Scratch::new();
        let error = write_output(&scratch.path().join("missing/file"), b"").unwrap_err();
        assert!(!error.to_string().contains("draft"), "{error}");
    }
}
