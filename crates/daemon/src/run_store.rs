//! Stores run records, one JSON file per run, and the audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_diagnostics::suggest;
use qontract_files::atomic::{self, Durability};
use qontract_files::private_files;
use qontract_runtime::record::{ShardRecord, seconds_or_timestamp};
use qontract_runtime::{RunEnd, RunRecord, RunState};
use serde::{Deserialize, Serialize};

use crate::exit::UsageError;
use crate::input_store::InputStore;

/// Maximum number of records per integration.
const MAX_RECORDS: usize = 500;

/// Size at which the audit log is rotated; one older file is kept.
const MAX_TRAIL_BYTES: u64 = 16 << 20;

/// The number of runs of a loop whose records are not stored, because they had nothing to do or nothing new to
/// report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleCounter {
    /// The integration.
    pub integration: String,
    /// Start of the first run.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub first: Timestamp,
    /// Start of the last run.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub last: Timestamp,
    /// Number of runs with nothing to do.
    pub count: u64,
    /// Number of runs with nothing to do that were degraded in the same way as the run before.
    #[serde(default)]
    pub degraded_runs: u64,
    /// The degradations that the last record contains, by slot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub degraded: BTreeMap<String, BTreeSet<String>>,
}

/// Whether the record of a run is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStorage {
    /// It is stored.
    Stored,
    /// The run is only counted.
    Counted,
}

/// Selects the records to list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Selects only runs of this integration.
    pub integration: Option<String>,
    /// Selects only runs in one of these states; empty means any state.
    pub states: Vec<RunState>,
    /// Selects runs in which guards held changes, in addition to those in `states`.
    pub held: bool,
    /// Selects only runs that started at this time or later.
    pub since: Option<Timestamp>,
    /// Whether to list runs that had nothing to do because the change did not affect them.
    pub unaffected: bool,
}

impl RunFilter {
    /// Whether a record matches.
    pub fn matches(&self, record: &RunRecord) -> bool {
        self.integration.as_ref().is_none_or(|name| *name == record.integration)
            && self.has_state(record)
            && self.since.is_none_or(|since| record.began >= since)
            && (self.unaffected || record.ended != RunEnd::EarlyExit)
    }

    fn has_state(&self, record: &RunRecord) -> bool {
        let is_any = self.states.is_empty() && !self.held;
        is_any || self.states.contains(&record.state()) || (self.held && has_held(record))
    }
}

/// Whether guards held changes in a run, regardless of its result.
fn has_held(record: &RunRecord) -> bool {
    record.state() == RunState::Held
        || record.shards.values().any(|shard| shard.held_by_guards().next().is_some())
}

/// Records that match a filter.
#[derive(Debug)]
pub struct RunPage {
    /// The records, the newest last.
    pub records: Vec<RunRecord>,
    /// Whether older records match as well.
    pub has_more: bool,
}

/// Runs that are newer than the last one that held changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewerRuns {
    /// Number of runs that held nothing.
    pub without_held: usize,
    /// Number of runs that ended as held, because their data no longer declares what an earlier run held.
    pub unplanned: usize,
}

/// The run whose held removals an approval covers.
#[derive(Debug)]
pub struct HeldRun {
    /// The record.
    pub record: RunRecord,
    /// The newer runs, if the run was selected by its integration.
    pub newer: Option<NewerRuns>,
}

/// The directory of run records.
#[derive(Debug)]
pub struct RunStore {
    folder: PathBuf,
    max_trail_bytes: u64,
    max_records: usize,
}

impl RunStore {
    /// The records in `folder`, by default below the user's state directory.
    pub fn new(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder
            .or_else(default_folder)
            .context("no directory for records: set `--runs`, `QONTRACT_RUNS`, `XDG_STATE_HOME` or `HOME`")?;
        Ok(Self { folder, max_trail_bytes: MAX_TRAIL_BYTES, max_records: MAX_RECORDS })
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a record, and removes the oldest records of its integration.
    pub fn store(&self, record: &RunRecord) -> anyhow::Result<()> {
        self.write(&self.file(&record.run)?, record)?;
        self.prune(&record.integration)
    }

    /// Checks that records and the audit log can be written, before a run writes to its targets.
    pub fn check_writable(&self) -> anyhow::Result<()> {
        self.lock_audit().map(drop).context("cannot store run records; set `--runs` to another directory")
    }

    /// Locks the audit log until the file is closed.
    fn lock_audit(&self) -> anyhow::Result<fs::File> {
        let make = || format!("cannot create `{}`", self.folder.display());
        private_files::create_folder(&self.folder, &self.folder).with_context(make)?;
        let lock = self.folder.join(".trail.lock");
        let locking = || format!("cannot lock `{}`", lock.display());
        let held = private_files::options().write(true).truncate(false).open(&lock).with_context(locking)?;
        held.lock().with_context(locking)?;
        Ok(held)
    }

    /// Appends a line to the audit log. A lock file serialises the processes, so that the log is rotated once
    /// and lines do not interleave.
    pub fn append_audit(&self, line: &str) -> anyhow::Result<()> {
        let _held = self.lock_audit()?;
        let file = self.folder.join("trail.jsonl");
        let writing = || format!("cannot write `{}`", file.display());
        if fs::metadata(&file).is_ok_and(|metadata| metadata.len() > self.max_trail_bytes) {
            let old = self.folder.join("trail.old.jsonl");
            fs::rename(&file, &old).with_context(|| format!("cannot write `{}`", old.display()))?;
        }
        let mut trail = private_files::options().append(true).open(&file).with_context(writing)?;
        trail.write_all(format!("{line}\n").as_bytes()).with_context(writing)
    }

    /// Stores the record of a loop run. A run that had nothing to do is only counted; if objects are degraded,
    /// only as long as they are the same ones as before.
    pub fn record_loop_run(&self, record: &RunRecord) -> anyhow::Result<RecordStorage> {
        let file = self.folder.join("idle").join(format!("{}.json", record.integration));
        // An unreadable file is replaced: the counter is not needed for auditing.
        let previous = read::<IdleCounter>(&file).ok();
        let degraded = degradations(record);
        let before = previous.as_ref().and_then(|idle| idle.degraded.get(&record.slot));
        let is_same = before.map_or(degraded.is_empty(), |before| *before == degraded);
        let storage = if is_idle(record) && is_same { RecordStorage::Counted } else { RecordStorage::Stored };
        if storage == RecordStorage::Stored {
            self.store(record)?;
        }
        if storage == RecordStorage::Stored && is_same {
            return Ok(storage);
        }
        let mut idle = previous.unwrap_or_else(|| IdleCounter {
            integration: record.integration.clone(),
            first: record.began,
            last: record.began,
            count: 0,
            degraded_runs: 0,
            degraded: BTreeMap::new(),
        });
        if storage == RecordStorage::Counted {
            let counter = if degraded.is_empty() { &mut idle.count } else { &mut idle.degraded_runs };
            *counter += 1;
            idle.last = record.began;
        }
        idle.degraded.insert(record.slot.clone(), degraded);
        idle.degraded.retain(|_, degraded| !degraded.is_empty());
        self.write(&file, &idle)?;
        Ok(storage)
    }

    /// The last records that match the filter, the newest last.
    pub fn list(&self, filter: &RunFilter, last: usize) -> anyhow::Result<RunPage> {
        let (mut records, mut has_more) = (Vec::new(), false);
        for file in self.record_files(filter.integration.as_deref())?.iter().rev() {
            // An unreadable record does not hide the others.
            let Ok(record) = read::<RunRecord>(file) else { continue };
            if filter.since.is_some_and(|since| record.began < since) {
                break;
            }
            if !filter.matches(&record) {
                continue;
            }
            if records.len() == last {
                has_more = true;
                break;
            }
            records.push(record);
        }
        records.reverse();
        Ok(RunPage { records, has_more })
    }

    /// The ids of all records of the filter's integration.
    pub fn ids(&self, filter: &RunFilter) -> anyhow::Result<BTreeSet<String>> {
        let names = self.record_files(filter.integration.as_deref())?;
        Ok(names.iter().filter_map(|file| id(file)).map(str::to_owned).collect())
    }

    /// The record that a word names: `last`, the id of a run, an integration (its last run), or an
    /// unambiguous prefix of an id.
    pub fn resolve(&self, word: &str) -> anyhow::Result<RunRecord> {
        let exact = self.file(word)?;
        if exact.is_file() {
            return read(&exact);
        }
        let all = self.record_files(None)?;
        let ids: Vec<&str> = all.iter().filter_map(|file| id(file)).collect();
        let of_integration: Vec<&str> =
            ids.iter().copied().filter(|id| integration_of(id) == Some(word)).collect();
        let starting: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(word)).collect();
        let found = match (word, of_integration.last(), starting.as_slice()) {
            ("last", ..) => ids.last().copied(),
            (_, Some(last), _) => Some(*last),
            (_, None, [one]) => Some(*one),
            (_, None, []) => None,
            (_, None, [first, .., last]) => {
                let count = starting.len();
                let text = format!(
                    "`{word}` is a prefix of {count} runs, from `{first}` to `{last}`: use a longer prefix"
                );
                return Err(UsageError(text).into());
            }
        };
        if let Some(found) = found {
            return self.read(found);
        }
        let integrations: BTreeSet<&str> = ids.iter().filter_map(|id| integration_of(id)).collect();
        let near = suggest::nearest(word, integrations).or_else(|| suggest::nearest(word, ["last"]));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(UsageError(format!("no run `{word}` in `{}`{near}", self.folder.display())).into())
    }

    /// The newest run of any integration that held changes.
    pub fn last_held(&self) -> Option<RunRecord> {
        let files = self.record_files(None).unwrap_or_default();
        files.iter().rev().filter_map(|file| read::<RunRecord>(file).ok()).find(has_held)
    }

    /// The run to approve: if the word is an integration, its newest run that held changes, else the run that
    /// the word names.
    pub fn resolve_held(&self, word: &str) -> anyhow::Result<HeldRun> {
        // Neither `last` nor an id is the name of an integration.
        let names = self.record_files(Some(word))?;
        let (mut newer, mut without_approval) = (NewerRuns::default(), None);
        for file in names.iter().rev() {
            // An unreadable record does not hide the others.
            let Ok(record) = read::<RunRecord>(file) else { continue };
            if record.approval.is_some() {
                return Ok(HeldRun { record, newer: Some(newer) });
            }
            let is_unplanned = record.unplanned_holds > 0;
            if without_approval.is_none() && has_held(&record) {
                without_approval = Some(HeldRun { record, newer: Some(newer) });
            }
            if is_unplanned {
                newer.unplanned += 1;
            } else {
                newer.without_held += 1;
            }
        }
        without_approval.map_or_else(|| Ok(HeldRun { record: self.resolve(word)?, newer: None }), Ok)
    }

    /// The counters of loop runs that had nothing to do.
    pub fn idle(&self) -> anyhow::Result<Vec<IdleCounter>> {
        let mut files = entries(&self.folder.join("idle"))?;
        files.retain(|file| is_record(file));
        files.sort();
        files.iter().map(|file| read(file)).collect()
    }

    /// The files of records, the newest last. Names begin with the time in seconds; files of the same second
    /// are ordered by modification time.
    fn record_files(&self, integration: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
        let is_one = |file: &PathBuf| {
            let name = id(file).unwrap_or_default();
            is_record(file) && integration.is_none_or(|integration| integration_of(name) == Some(integration))
        };
        let mut files: Vec<PathBuf> = entries(&self.folder)?.into_iter().filter(is_one).collect();
        let second = |file: &PathBuf| Some(file.file_name()?.to_str()?.split_once('-')?.0.to_owned());
        let written = |file: &PathBuf| fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
        files.sort_by_cached_key(|file| (second(file), written(file), file.clone()));
        Ok(files)
    }

    fn prune(&self, integration: &str) -> anyhow::Result<()> {
        let names = self.record_files(Some(integration))?;
        for file in &names[..names.len().saturating_sub(self.max_records)] {
            ignore_missing(fs::remove_file(file), file)?;
            InputStore::new(&self.folder).remove(id(file).unwrap_or_default());
        }
        Ok(())
    }

    /// The record of a run.
    pub fn read(&self, run: &str) -> anyhow::Result<RunRecord> {
        let file = self.file(run)?;
        if !file.is_file() {
            let text = format!("no run `{run}` in `{}`", self.folder.display());
            return Err(UsageError(text).into());
        }
        read(&file)
    }

    /// Replaces a file, which only its owner may read.
    fn write(&self, file: &Path, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(value)?;
        if let Some(folder) = file.parent() {
            private_files::create_folder(&self.folder, folder)
                .with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        atomic::write_private(file, &text, Durability::Content)
            .with_context(|| format!("cannot write `{}`", file.display()))
    }

    fn file(&self, run: &str) -> Result<PathBuf, UsageError> {
        let is_allowed = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
        if run.is_empty() || run.starts_with('.') || !run.chars().all(is_allowed) {
            return Err(UsageError(format!("`{run}` is not a valid run id")));
        }
        Ok(self.folder.join(format!("{run}.json")))
    }
}

/// Whether a run had nothing to do.
fn is_idle(record: &RunRecord) -> bool {
    let is_idle =
        |shard: &ShardRecord| shard.changes.is_empty() && shard.held.is_empty() && shard.waits.is_empty();
    record.ended.is_success() && record.shards.values().all(is_idle)
}

/// The degraded objects of a run, by shard.
fn degradations(record: &RunRecord) -> BTreeSet<String> {
    let of_shard = |(key, shard): (&String, &ShardRecord)| {
        shard.degraded.iter().map(|one| format!("{key}: {}", one.text)).collect::<Vec<_>>()
    };
    record.shards.iter().flat_map(of_shard).collect()
}

/// Treats a missing file as success: another process may have removed it.
fn ignore_missing(removed: io::Result<()>, path: &Path) -> anyhow::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove `{}`", path.display())),
    }
}

/// Whether a file is a complete record, and not a temporary file.
fn is_record(file: &Path) -> bool {
    let is_hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !is_hidden && file.extension().is_some_and(|ending| ending == "json")
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let doing = || format!("cannot list `{}`", folder.display());
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
            paths.with_context(doing)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(doing),
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let bytes = fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("cannot parse `{}`", file.display()))
}

fn default_folder() -> Option<PathBuf> {
    Some(state_folder()?.join("runs"))
}

/// The run id of a record file.
fn id(file: &Path) -> Option<&str> {
    file.file_stem().and_then(|name| name.to_str())
}

/// The integration that a run is named after: `TIME-INTEGRATION-OWN`.
fn integration_of(run: &str) -> Option<&str> {
    let (_, rest) = run.split_once('-')?;
    rest.rsplit_once('-').map(|(integration, _)| integration)
}

/// The user's state directory.
pub fn state_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("qontract"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_log_is_rotated_once_by_concurrent_writers() {
        for round in 0..100 {
            let scratch = qontract_testkit::Scratch::new();
            scratch.write("trail.jsonl", "before\n".repeat(10));
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for number in 0..8 {
                    let (start, folder) = (&start, scratch.path().to_owned());
                    scope.spawn(move || {
                        let runs = RunStore { max_trail_bytes: 50, ..RunStore::new(Some(folder)).unwrap() };
                        start.wait();
                        runs.append_audit(&number.to_string()).unwrap();
                    });
                }
            });
            assert_eq!(scratch.read("trail.old.jsonl"), "before\n".repeat(10), "round {round}");
            let trail = scratch.read("trail.jsonl");
            let mut lines: Vec<&str> = trail.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["0", "1", "2", "3", "4", "5", "6", "7"], "round {round}");
        }
    }

    fn record(run: &str, integration: &str) -> RunRecord {
        serde_json::from_value(serde_json::json!({
            "version": 2, "run": run, "began": 0, "milliseconds": 5, "integration": integration, "mode": "real run",
            "head": {"sha": "s", "commit": null}, "base": null, "options": {}, "slot": "0 of 1", "decisions": [],
            "shards": {}, "faults": [], "warnings": [], "approval": null, "ended": "failed", "exit": 1,
        }))
        .unwrap()
    }

    #[test]
    fn the_oldest_records_of_an_integration_are_pruned() {
        let scratch = qontract_testkit::Scratch::new();
        let runs = RunStore { max_records: 2, ..RunStore::new(Some(scratch.path().to_owned())).unwrap() };
        runs.store(&record("20270115T080000Z-b-00000", "b")).unwrap();
        for second in 1..=4 {
            runs.store(&record(&format!("20270115T08000{second}Z-a-00000"), "a")).unwrap();
        }
        let ids = runs.ids(&RunFilter::default()).unwrap();
        let expect = ["20270115T080000Z-b-00000", "20270115T080003Z-a-00000", "20270115T080004Z-a-00000"];
        assert_eq!(ids.iter().map(String::as_str).collect::<Vec<_>>(), expect);
        // A run with nothing to do is counted, and prunes nothing.
        let idle = RunRecord { ended: RunEnd::Ok, exit: 0, ..record("20270115T080005Z-a-00000", "a") };
        assert_eq!(runs.record_loop_run(&idle).unwrap(), RecordStorage::Counted);
        assert_eq!(runs.ids(&RunFilter::default()).unwrap().len(), 3);
        assert_eq!(runs.idle().unwrap()[0].count, 1);
    }

    /// The record of a run of this slot that had nothing to do, with these degraded objects.
    fn degraded(run: &str, slot: &str, texts: &[&str]) -> RunRecord {
        let texts: Vec<_> = texts.iter().map(|text| serde_json::json!({"text": text})).collect();
        let shard = serde_json::json!({
            "state": "ran", "rounds": 1, "changes": [], "held": [], "waits": [], "degraded": texts, "faults": [],
            "applied": 0, "removed": 0,
        });
        let mut record = record(&format!("20270115T080000Z-a-{run}"), "a");
        record.shards.insert("s".to_owned(), serde_json::from_value(shard).unwrap());
        (record.ended, record.exit, record.slot) = (RunEnd::Degraded, 0, slot.to_owned());
        record
    }

    #[test]
    fn a_degraded_run_of_a_loop_is_recorded_when_its_degradations_change() {
        let scratch = qontract_testkit::Scratch::new();
        let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
        let check = |run: &str, slot: &str, texts: &[&str], expect: RecordStorage| {
            assert_eq!(runs.record_loop_run(&degraded(run, slot, texts)).unwrap(), expect, "{run}");
        };
        check("1", "0 of 2", &[], RecordStorage::Counted);
        check("2", "0 of 2", &["web"], RecordStorage::Stored);
        check("3", "0 of 2", &["web"], RecordStorage::Counted);
        check("4", "1 of 2", &["db"], RecordStorage::Stored);
        check("5", "0 of 2", &["web"], RecordStorage::Counted);
        check("6", "0 of 2", &["web", "db"], RecordStorage::Stored);
        // The end of a degradation is recorded as well, so that the last record does not report it forever.
        check("7", "0 of 2", &[], RecordStorage::Stored);
        check("8", "0 of 2", &[], RecordStorage::Counted);
        check("9", "1 of 2", &["db"], RecordStorage::Counted);
        let idle = &runs.idle().unwrap()[0];
        assert_eq!((idle.count, idle.degraded_runs, idle.degraded.len()), (2, 3, 1));
        assert_eq!(runs.ids(&RunFilter::default()).unwrap().len(), 4);
    }

    #[test]
    fn an_audit_log_that_cannot_be_written_is_an_error() {
        let scratch = qontract_testkit::Scratch::new();
        scratch.write("trail.jsonl/in the way", "");
        let error = RunStore::new(Some(scratch.path().to_owned())).unwrap().append_audit("x").unwrap_err();
        assert!(error.to_string().contains("trail.jsonl"), "{error:#}");
    }

    #[test]
    fn temporary_files_are_not_read_and_removing_a_missing_file_succeeds() {
        let scratch = qontract_testkit::Scratch::new();
        let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
        scratch.write("idle/.draft-x1", "{\"integ");
        scratch.write("idle/.draft-x2.json", "{\"integ");
        scratch.write("idle/a.json", r#"{"integration": "a", "first": 1, "last": 2, "count": 3}"#);
        assert_eq!(runs.idle().unwrap().len(), 1);
        assert!(ignore_missing(fs::remove_file(scratch.path().join("gone")), Path::new("gone")).is_ok());
        assert!(ignore_missing(fs::remove_file(scratch.path().join("idle")), Path::new("idle")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_stored_files() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = qontract_testkit::Scratch::new();
        let runs = RunStore::new(Some(scratch.path().to_owned())).unwrap();
        runs.append_audit("x").unwrap();
        // A file of an older version becomes private as well.
        let old = scratch.path().join("idle/x.json");
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, "{}").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        runs.write(&old, &"x").unwrap();
        for file in ["trail.jsonl", ".trail.lock", "idle/x.json"] {
            let mode = fs::metadata(scratch.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn run_ids_do_not_lead_outside_the_directory() {
        let runs = RunStore::new(Some(PathBuf::from("/nowhere"))).unwrap();
        for name in ["", "../x", "a/b", ".x"] {
            assert!(runs.file(name).is_err(), "{name}");
        }
        assert!(runs.file("20260101T000000Z-my_proc-1").is_ok());
    }
}
