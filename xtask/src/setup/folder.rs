//! Installs a directory as a whole: its content is created elsewhere, and then moved into place.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Moves the directory `fresh` to `place`, which is in the same file system, and removes the previous
/// directory. An interrupted call leaves either no directory or a complete directory at `place`.
pub fn replace(fresh: &Path, place: &Path) -> Result<()> {
    remove(place)?;
    fs::rename(fresh, place).with_context(|| format!("cannot create {}", place.display()))
}

/// Removes a directory, if it exists.
pub fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}
