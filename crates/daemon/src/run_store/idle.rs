//! Counts the loop runs whose records are not stored, because they had nothing to do or nothing new to report.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_files::atomic::{self, Durability};
use qontract_files::{lock, private_files};
use qontract_runtime::RunRecord;
use qontract_runtime::record::seconds_or_timestamp;
use serde::{Deserialize, Serialize};

use super::RecordStorage;

/// The number of runs of a loop whose records are not stored, because they had nothing to do or nothing new to
/// report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleCounter {
    /// The integration of the loop.
    pub integration: String,
    /// Start of the first run.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub first: Timestamp,
    /// Start of the last run.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub last: Timestamp,
    /// Number of runs with nothing to do.
    pub count: u64,
    /// Number of runs that had nothing to do and in which the same objects were degraded as in the previous run.
    #[serde(default)]
    pub degraded_runs: u64,
    /// The degradations in the last stored record, by slot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub degraded: BTreeMap<String, BTreeSet<String>>,
}

impl IdleCounter {
    fn new(record: &RunRecord) -> Self {
        Self {
            integration: record.integration.clone(),
            first: record.began,
            last: record.began,
            count: 0,
            degraded_runs: 0,
            degraded: BTreeMap::new(),
        }
    }

    fn is_as_degraded(&self, record: &RunRecord, degraded: &BTreeSet<String>) -> bool {
        self.degraded.get(&record.slot).map_or(degraded.is_empty(), |before| before == degraded)
    }

    fn add(&mut self, record: &RunRecord, degraded: BTreeSet<String>, storage: RecordStorage) {
        if storage == RecordStorage::Counted {
            let counter = if degraded.is_empty() { &mut self.count } else { &mut self.degraded_runs };
            *counter += 1;
            self.last = record.began;
        }
        self.degraded.insert(record.slot.clone(), degraded);
        self.degraded.retain(|_, degraded| !degraded.is_empty());
    }
}

/// The counters of all integrations. They are in files of a directory or, if records are in a bucket, in memory,
/// because a run with nothing to do sends no requests to a bucket.
#[derive(Debug)]
pub struct IdleCounters {
    folder: Option<PathBuf>,
    memory: Mutex<BTreeMap<String, IdleCounter>>,
}

impl IdleCounters {
    /// Opens the counters in the directory `idle` of `runs`; without `runs`, they are in memory.
    pub fn new(runs: Option<&Path>) -> Self {
        Self { folder: runs.map(|runs| runs.join("idle")), memory: Mutex::default() }
    }

    /// Whether a run is degraded in the same way as the last run of its slot.
    pub fn is_as_degraded(&self, record: &RunRecord, degraded: &BTreeSet<String>) -> bool {
        let counter = match &self.folder {
            Some(folder) => load(folder, &record.integration),
            None => self.memory.lock().get(&record.integration).cloned(),
        };
        counter.map_or(degraded.is_empty(), |counter| counter.is_as_degraded(record, degraded))
    }

    /// Counts a run and stores its degradations.
    pub fn count(
        &self,
        record: &RunRecord,
        degraded: BTreeSet<String>,
        storage: RecordStorage,
    ) -> anyhow::Result<()> {
        let Some(folder) = &self.folder else {
            let mut memory = self.memory.lock();
            let counter =
                memory.entry(record.integration.clone()).or_insert_with(|| IdleCounter::new(record));
            counter.add(record, degraded, storage);
            return Ok(());
        };
        let counting = || format!("cannot count the run in `{}`", folder.display());
        private_files::create_folder(folder.parent().unwrap_or(folder), folder).with_context(counting)?;
        // The lock is needed because the processes of several slots count the runs of one integration.
        let _held = lock::acquire(&folder.join(".lock"), lock::DEFAULT_TIMEOUT).with_context(counting)?;
        let mut counter = load(folder, &record.integration).unwrap_or_else(|| IdleCounter::new(record));
        counter.add(record, degraded, storage);
        let text = serde_json::to_vec_pretty(&counter)?;
        atomic::write_private(&file(folder, &record.integration), &text, Durability::Content)
            .with_context(counting)
    }

    /// The counters of all integrations.
    pub fn all(&self) -> anyhow::Result<Vec<IdleCounter>> {
        let Some(folder) = &self.folder else { return Ok(self.memory.lock().values().cloned().collect()) };
        let doing = || format!("cannot list `{}`", folder.display());
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>().with_context(doing)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(doing),
        };
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| is_counter(file));
        files.sort();
        files
            .iter()
            .map(|file| {
                let bytes = fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
                serde_json::from_slice(&bytes).with_context(|| format!("cannot parse `{}`", file.display()))
            })
            .collect()
    }
}

fn file(folder: &Path, integration: &str) -> PathBuf {
    folder.join(format!("{integration}.json"))
}

/// The counter of an integration. An unreadable file is replaced, because the counter is not needed for auditing.
fn load(folder: &Path, integration: &str) -> Option<IdleCounter> {
    serde_json::from_slice(&fs::read(file(folder, integration)).ok()?).ok()
}

/// Whether a file is a complete counter and not a temporary file.
fn is_counter(file: &Path) -> bool {
    let is_hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && file.extension().is_some_and(|ending| ending == "json")
}
