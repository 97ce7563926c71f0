//! A private directory whose files are replaced atomically, and whose lock file serializes the writers of all
//! processes.

use std::fs::{self, File, ReadDir};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::atomic::{AtomicFile, Durability};
use crate::{lock, private_files};

/// The lock file, whose lock the writing process holds.
const LOCK: &str = ".lock";
/// The temporary file of the process that holds the lock.
const TEMPORARY: &str = ".draft";

/// A failed file operation.
#[derive(Debug)]
pub struct FileError {
    /// The operation and the path, such as "read `a/b`".
    pub what: String,
    /// The cause.
    pub source: io::Error,
}

impl FileError {
    /// The error of an operation on a path.
    pub fn new(verb: &str, path: &Path, source: io::Error) -> Self {
        Self { what: format!("{verb} `{}`", path.display()), source }
    }
}

/// A private directory whose writers hold its lock.
#[derive(Clone, Debug)]
pub struct LockedFolder {
    root: PathBuf,
    durability: Durability,
}

impl LockedFolder {
    /// The directory `root`, which the first lock creates.
    pub fn new(root: impl Into<PathBuf>, durability: Durability) -> Self {
        Self { root: root.into(), durability }
    }

    /// Returns this directory with another durability.
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { durability, ..self.clone() }
    }

    /// The path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the lock of the directory. The lock is held until the returned file is dropped.
    pub fn lock(&self) -> Result<File, FileError> {
        create_private_folder(&self.root)?;
        let path = self.root.join(LOCK);
        lock::acquire(&path, lock::DEFAULT_TIMEOUT).map_err(|error| FileError::new("lock", &path, error))
    }

    /// Replaces a file. The caller holds the lock, so nothing else uses the temporary file.
    pub fn replace(&self, file: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let write = || {
            let mut out = AtomicFile::locked(file, &self.root.join(TEMPORARY), self.durability)?;
            out.write_all(bytes)?;
            out.commit()
        };
        write().map_err(|error| FileError::new("write", file, error))
    }
}

/// Creates a directory that only its owner may read.
pub fn create_private_folder(folder: &Path) -> Result<(), FileError> {
    private_files::create_folder(folder, folder).map_err(|error| FileError::new("create", folder, error))
}

/// Reads a regular file of at most `max` bytes, and no link; `None` if the file is missing. The error of a larger
/// file has the kind [`ErrorKind::FileTooLarge`].
pub fn read_regular(path: &Path, max: u64) -> Result<Option<Vec<u8>>, FileError> {
    let read = || {
        let file = File::options().read(true).custom_flags(lock::SAFE_OPEN_FLAGS).open(path)?;
        let (file, mut bytes) = (lock::require_regular(file)?, Vec::new());
        file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            let text = format!("it has more than {} MiB", max >> 20);
            return Err(io::Error::new(ErrorKind::FileTooLarge, text));
        }
        Ok(bytes)
    };
    present(read()).map_err(|error| FileError::new("read", path, error))
}

/// Lists a directory; `None` if it is missing.
pub fn list(folder: &Path) -> Result<Option<ReadDir>, FileError> {
    present(fs::read_dir(folder)).map_err(|error| FileError::new("list", folder, error))
}

/// Removes a file, unless it is missing.
pub fn remove(file: &Path) -> Result<(), FileError> {
    let removed = present(fs::remove_file(file));
    removed.map(drop).map_err(|error| FileError::new("remove", file, error))
}

/// `None` if the file is missing, or if a file is in place of its directory.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_read_and_removed() {
        let scratch = qontract_testkit::Scratch::new();
        let folder = LockedFolder::new(scratch.path().join("a/b"), Durability::None);
        let file = folder.root().join("x");
        assert_eq!((read_regular(&file, 9).unwrap(), list(folder.root()).unwrap().is_none()), (None, true));
        let _lock = folder.lock().unwrap();
        for text in ["one", "two"] {
            folder.replace(&file, text.as_bytes()).unwrap();
            assert_eq!(read_regular(&file, 3).unwrap().unwrap(), text.as_bytes());
        }
        let names = list(folder.root()).unwrap().unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [LOCK, "x"]);
        assert_eq!(read_regular(&file, 2).unwrap_err().source.kind(), ErrorKind::FileTooLarge);
        remove(&file).unwrap();
        remove(&file).unwrap();
        remove(&file.join("below")).unwrap();
        assert_eq!(read_regular(&file, 3).unwrap(), None);
    }

    #[test]
    fn links_and_directories_are_not_read() {
        let scratch = qontract_testkit::Scratch::new();
        let root = scratch.path();
        fs::write(root.join("x"), "x").unwrap();
        symlink(root.join("x"), root.join("link")).unwrap();
        let error = read_regular(&root.join("link"), 9).unwrap_err();
        assert_eq!(error.what, format!("read `{}`", root.join("link").display()));
        let error = read_regular(root, 9).unwrap_err().source.to_string();
        assert_eq!(error, "it is not a regular file");
    }
}
