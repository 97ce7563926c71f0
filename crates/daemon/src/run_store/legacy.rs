//! Records of older versions: files in the directory of run records. They are listed and read, and old ones are
//! removed. This version writes no such files, but a process of an older version may still write some.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_access::WritePermit;
use qontract_journal::{Retention, RunId};
use qontract_runtime::RunRecord;

/// The record files in a directory.
pub struct LegacyRecords<'a> {
    folder: &'a Path,
}

/// A record file.
#[derive(Debug)]
pub struct RecordFile {
    /// The id of the run.
    pub run: RunId,
    /// The time at which the file was written, in milliseconds since 1970.
    pub written: i64,
    path: PathBuf,
}

impl RecordFile {
    /// Reads the record in the file.
    pub fn read(&self) -> anyhow::Result<RunRecord> {
        let path = &self.path;
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("cannot parse `{}`", path.display()))
    }
}

impl<'a> LegacyRecords<'a> {
    /// Creates access to the record files in `folder`.
    pub fn new(folder: &'a Path) -> Self {
        Self { folder }
    }

    /// The files of the runs that started at this time or later.
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

    /// The file of a run, if it exists.
    pub fn find(&self, run: &RunId) -> Option<RecordFile> {
        let path = self.folder.join(format!("{run}.json"));
        if path.is_file() { record_file(path) } else { None }
    }

    /// Removes the files that exceed the retention and returns their runs. Without a permit, only returns the runs.
    /// `newer` is the number of records that each integration has in addition to these files; those records are
    /// newer.
    pub fn prune(
        &self,
        write: Option<&WritePermit>,
        retention: Retention,
        newer: &BTreeMap<String, usize>,
        now: Timestamp,
    ) -> anyhow::Result<Vec<RunId>> {
        let mut files = self.list(None)?;
        files.sort_by(|a, b| (b.run.second(), b.written).cmp(&(a.run.second(), a.written)));
        let oldest = now.checked_sub(retention.max_age).unwrap_or(Timestamp::MIN);
        let mut counts = newer.clone();
        files.retain(|file| {
            let count = counts.entry(file.run.integration().to_owned()).or_default();
            *count += 1;
            *count > retention.max_records || file.run.start().is_some_and(|start| start < oldest)
        });
        for file in files.iter().filter(|_| write.is_some()) {
            let path = &file.path;
            match fs::remove_file(path) {
                // Another process may have removed the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.with_context(|| format!("cannot remove `{}`", path.display()))?,
            }
        }
        Ok(files.into_iter().map(|file| file.run).collect())
    }
}

/// The record file at a path; `None` if the file is not a record file.
fn record_file(path: PathBuf) -> Option<RecordFile> {
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let run = RunId::parse(path.file_stem()?.to_str()?).filter(|_| is_json)?;
    let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
    let written = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(RecordFile { run, written: i64::try_from(written.as_millis()).unwrap_or_default(), path })
}
