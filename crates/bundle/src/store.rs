//! Writes bundles to disk.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use qontract_files::atomic::{AtomicFile, Durability};

use crate::model::Bundle;

/// Writes a bundle atomically: `path` has either the whole bundle or its previous content.
pub fn write(bundle: &Bundle, path: &Path) -> io::Result<()> {
    BundleFile::create(path)?.finish(bundle)
}

/// Writes a bundle atomically to a file that only its owner may read.
pub fn write_private(bundle: &Bundle, path: &Path) -> io::Result<()> {
    let mut file = AtomicFile::private(path, Durability::Content)?;
    bundle.write_to(&mut file)?;
    file.commit()
}

/// A bundle that replaces a file when it is finished. It can be written while it is encoded.
#[derive(Debug)]
pub struct BundleFile {
    path: PathBuf,
    file: AtomicFile,
    /// Whether a complete bundle was written.
    is_complete: bool,
}

impl BundleFile {
    /// Creates a temporary file for the bundle at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: AtomicFile::output(path)?, is_complete: false })
    }

    /// The output for a bundle that is written while it is encoded. `None` if `path` is not a regular file:
    /// the reader of a pipe would consume a bundle that is not validated yet.
    pub(crate) fn stream(&mut self) -> Option<BundleStream<'_>> {
        let Self { file, is_complete, .. } = self;
        file.is_atomic().then_some(BundleStream { file, is_complete })
    }

    /// Moves the bundle to its path. If the bundle was not written while it was encoded, writes it first.
    pub fn finish(mut self, bundle: &Bundle) -> io::Result<()> {
        if !self.is_complete {
            // A partial write is discarded.
            if self.file.is_atomic() {
                self.file = AtomicFile::output(&self.path)?;
            }
            bundle.write_to(&mut self.file)?;
        }
        self.file.commit()
    }
}

/// Receives a bundle while it is encoded.
pub(crate) struct BundleStream<'f> {
    file: &'f mut AtomicFile,
    is_complete: &'f mut bool,
}

impl BundleStream<'_> {
    /// Writes a part of the bundle.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Marks the bundle as complete.
    pub fn complete(self) {
        *self.is_complete = true;
    }
}
