//! The audit log of one machine: a file with one line per write.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use qontract_files::{lock, private_files};

/// Size at which the audit log is rotated; one older file is kept.
pub const MAX_BYTES: u64 = 16 << 20;

/// The audit log in a directory.
pub struct AuditFile<'a> {
    /// The directory that contains the audit log.
    pub folder: &'a Path,
    /// Size at which the log is rotated.
    pub max_bytes: u64,
}

impl AuditFile<'_> {
    /// Locks the audit log until the file is dropped.
    pub fn lock(&self) -> anyhow::Result<File> {
        let make = || format!("cannot create `{}`", self.folder.display());
        private_files::create_folder(self.folder, self.folder).with_context(make)?;
        let file = self.folder.join(".trail.lock");
        lock::acquire(&file, lock::DEFAULT_TIMEOUT)
            .with_context(|| format!("cannot lock `{}`", file.display()))
    }

    /// Appends a line. A lock ensures that only one process at a time appends a line, so that the log is rotated only
    /// once and lines do not interleave.
    pub fn append(&self, line: &str) -> anyhow::Result<()> {
        let _held = self.lock()?;
        let file = self.folder.join("trail.jsonl");
        let writing = || format!("cannot write `{}`", file.display());
        if fs::metadata(&file).is_ok_and(|metadata| metadata.len() > self.max_bytes) {
            let old = self.folder.join("trail.old.jsonl");
            fs::rename(&file, &old).with_context(|| format!("cannot write `{}`", old.display()))?;
        }
        let mut trail = private_files::options().append(true).open(&file).with_context(writing)?;
        trail.write_all(format!("{line}\n").as_bytes()).with_context(writing)
    }
}
