//! Bundles on disk, and files that are replaced as a whole.

use std::io::{self, Write as _};
use std::path::Path;

use crate::model::Bundle;

/// Writes a bundle so that `path` has either all of it or what it had before.
pub fn write(bundle: &Bundle, path: &Path) -> io::Result<()> {
    replace(path, &|out| bundle.write_to(out))
}

/// The same, for a file that nobody else may read, whoever could before.
pub fn replace_private(
    path: &Path,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    replace_as(path, Readers::Owner, content)
}

/// Writes a file so that `path` has either all of it or what it had before.
///
/// A link stays a link: what it leads to is replaced. What is no file, such as a pipe, is written to.
pub fn replace(
    path: &Path,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    replace_as(path, Readers::AsBefore, content)
}

/// Who may read a file.
#[derive(Clone, Copy)]
enum Readers {
    /// Whoever could before; of a new file, everybody.
    AsBefore,
    /// Its owner.
    Owner,
}

fn replace_as(
    path: &Path,
    readers: Readers,
    content: &dyn Fn(&mut (dyn io::Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
        return content(&mut file);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".draft-").tempfile_in(folder)?;
    {
        let mut buffered = io::BufWriter::with_capacity(1 << 20, file.as_file_mut());
        content(&mut buffered)?;
        buffered.flush()?;
    }
    file.as_file().sync_all()?;
    // A temporary file is private; a bundle is as public as its folder.
    #[cfg(unix)]
    if matches!(readers, Readers::AsBefore) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = path.metadata().map_or(0o644, |old| old.permissions().mode());
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode & 0o777))?;
    }
    #[cfg(not(unix))]
    let _ = readers;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
