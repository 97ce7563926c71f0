//! Installs a directory as a whole: its content is created elsewhere, and then moved into place.

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Moves the directory `fresh` to `place`, in the same file system, and removes the previous one. An interrupted call
/// leaves no directory at `place`, or the whole one.
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
