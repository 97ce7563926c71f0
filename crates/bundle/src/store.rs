//! Writes bundles to disk, and replaces files atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::model::Bundle;

/// Writes a bundle atomically: `path` has either the whole bundle or its previous content.
pub fn write(bundle: &Bundle, path: &Path) -> io::Result<()> {
    replace(path, &|out| bundle.write_to(out))
}

/// Replaces a file atomically, and makes it readable only by its owner, whatever its permissions were.
pub fn replace_private(
    path: &Path,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    replace_as(path, ReadPermission::OwnerOnly, content)
}

/// Replaces a file atomically: `path` has either the whole new content or its previous content.
///
/// A symbolic link is kept: its target is replaced. Anything but a regular file, such as a pipe, is written
/// to directly.
pub fn replace(
    path: &Path,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    replace_as(path, ReadPermission::Preserved, content)
}

/// The read permission of a replaced file.
#[derive(Clone, Copy, Debug)]
enum ReadPermission {
    /// The permissions of the previous file; a new file is readable by everyone.
    Preserved,
    /// Only the owner.
    OwnerOnly,
}

fn replace_as(
    path: &Path,
    readers: ReadPermission,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = AtomicFile::create_as(path, readers)?;
    content(&mut file.out)?;
    file.persist()
}

/// A temporary file that atomically replaces another file when it is finished.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    out: Output,
    readers: ReadPermission,
    /// Whether a complete bundle was written to it.
    is_complete: bool,
}

#[derive(Debug)]
enum Output {
    /// A temporary file in the same directory.
    Temporary(io::BufWriter<tempfile::NamedTempFile>),
    /// The target itself, because it is not a regular file (a pipe, for example). Opened at the first write,
    /// as opening a pipe can block.
    Direct(PathBuf, Option<fs::File>),
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Temporary(out) => out.write(bytes),
            Output::Direct(_, Some(out)) => out.write(bytes),
            Output::Direct(path, out) => {
                let opened = fs::OpenOptions::new().write(true).open(path)?;
                out.insert(opened).write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Temporary(out) => out.flush(),
            Output::Direct(_, out) => out.as_mut().map_or(Ok(()), io::Write::flush),
        }
    }
}

/// Removes the path of the temporary file from an error, because it means nothing to the user; the caller
/// names the file.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    }
}

impl AtomicFile {
    /// Creates a temporary file for the bundle at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_as(path, ReadPermission::Preserved)
    }

    fn create_as(path: &Path, readers: ReadPermission) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let out = if path.metadata().is_ok_and(|there| !there.is_file()) {
            Output::Direct(path.clone(), None)
        } else {
            let folder = match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let file = tempfile::Builder::new().prefix(".draft-").tempfile_in(folder);
            let file = file.map_err(without_path)?;
            Output::Temporary(io::BufWriter::with_capacity(1 << 20, file))
        };
        Ok(Self { path, out, readers, is_complete: false })
    }

    /// The output for a bundle that is written while it is encoded. `None` if it must be validated first: the
    /// reader of a pipe would consume it at once.
    pub(crate) fn stream(&mut self) -> Option<(&mut (dyn io::Write + Send), &mut bool)> {
        match &mut self.out {
            Output::Temporary(out) => Some((out, &mut self.is_complete)),
            Output::Direct(..) => None,
        }
    }

    /// Moves the bundle to its path. Writes it first, unless it was written while it was encoded.
    pub fn finish(mut self, bundle: &Bundle) -> io::Result<()> {
        if !self.is_complete {
            // A partial write is discarded.
            if matches!(self.out, Output::Temporary(_)) {
                self = Self::create_as(&self.path, self.readers)?;
            }
            bundle.write_to(&mut self.out)?;
        }
        self.persist()
    }

    fn persist(self) -> io::Result<()> {
        let Self { path, out, readers, .. } = self;
        let file = match out {
            Output::Temporary(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?,
            Output::Direct(_, out) => return out.map_or(Ok(()), |mut out| out.flush()),
        };
        file.as_file().sync_all()?;
        // A temporary file is private; a replaced file keeps its permissions, a new one is world-readable.
        #[cfg(unix)]
        if matches!(readers, ReadPermission::Preserved) {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = path.metadata().map_or(0o644, |old| old.permissions().mode());
            file.as_file().set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        }
        #[cfg(not(unix))]
        let _ = readers;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}
