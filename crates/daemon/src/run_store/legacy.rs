//! Records of older versions: files in the directory of run records. They are listed, read and removed when they
//! are old, but no new ones are written. A process of an older version may still write some.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_journal::RunId;
use qontract_runtime::RunRecord;

/// The record files in a directory.
pub struct LegacyRecords<'a> {
    folder: &'a Path,
}

/// A record file.
#[derive(Debug)]
pub struct RecordFile {
    /// The run.
    pub run: RunId,
    /// When it was written, in milliseconds since 1970.
    pub written: i64,
    path: PathBuf,
}

impl RecordFile {
    /// Reads the record.
    pub fn read(&self) -> anyhow::Result<RunRecord> {
        let path = &self.path;
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("cannot parse `{}`", path.display()))
    }
}

impl<'a> LegacyRecords<'a> {
    /// The record files in `folder`.
    pub fn new(folder: &'a Path) -> Self {
        Self { folder }
    }

    /// The files of runs since a time.
    pub fn list(&self, since: Option<Timestamp>) -> anyhow::Result<Vec<RecordFile>> {
        let doing = || format!("cannot list `{}`", self.folder.display());
        let entries = match fs::read_dir(self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(doing),
        };
        let first = since.map(|since| since.strftime("%Y%m%dT%H%M%SZ").to_string()).unwrap_or_default();
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.with_context(doing)?.path();
            files.extend(record_file(path).filter(|file| file.run.second() >= first.as_str()));
        }
        Ok(files)
    }

    /// The file of a run, if there is one.
    pub fn find(&self, run: &RunId) -> Option<RecordFile> {
        let path = self.folder.join(format!("{run}.json"));
        if path.is_file() { record_file(path) } else { None }
    }

    /// Removes the oldest files of an integration, except the last `kept` ones; returns their runs.
    pub fn prune(&self, integration: &str, kept: usize) -> anyhow::Result<Vec<RunId>> {
        let mut files = self.list(None)?;
        files.retain(|file| file.run.integration() == integration);
        files.sort_by(|a, b| (a.run.second(), a.written).cmp(&(b.run.second(), b.written)));
        files.truncate(files.len().saturating_sub(kept));
        for file in &files {
            let path = &file.path;
            match fs::remove_file(path) {
                // Another process may have removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.with_context(|| format!("cannot remove `{}`", path.display()))?,
            }
        }
        Ok(files.into_iter().map(|file| file.run).collect())
    }
}

/// The record file at a path; `None` if it is another file.
fn record_file(path: PathBuf) -> Option<RecordFile> {
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let run = RunId::parse(path.file_stem()?.to_str()?).filter(|_| is_json)?;
    let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
    let written = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(RecordFile { run, written: i64::try_from(written.as_millis()).unwrap_or_default(), path })
}
