//! Stores run records and the audit log.
//!
//! Records are in the [journal](qontract_journal::RunRecords): in its bucket if one is configured, and otherwise in
//! the directory of this machine. A dry run does not write to the bucket, so its record stays on this machine.
//! Records that older versions stored as files in the directory are also listed.

mod audit_file;
mod idle;
mod legacy;
mod unfinished;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use qontract_access::{Mode, Permits, WritePermit};
use qontract_client_blobs::Directory;
use qontract_diagnostics::suggest;
use qontract_journal::{PrunedRuns, Retention, Rounds, RunId, RunKey, RunRecords, RunSummary};
use qontract_runtime::record::ShardRecord;
use qontract_runtime::{RunRecord, RunState};

use crate::exit::UsageError;
use crate::input_store::InputStore;
use crate::journal;
use crate::run_summary;
use crate::unfinished_runs::UnfinishedRun;
use audit_file::AuditFile;
use idle::IdleCounters;
use legacy::LegacyRecords;
use unfinished::Lookups;

pub use idle::IdleCounter;

/// Maximum number of records per integration on one machine.
const MAX_RECORDS: usize = 500;

/// Maximum age of records.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// The retention of records in a bucket, which all processes share.
const SHARED_RETENTION: Retention = Retention { max_records: 10_000, max_age: MAX_AGE };

/// Maximum number of records that a process keeps until they can be stored.
const MAX_UNSTORED: usize = 100;

/// Interval at which a process removes old records from a bucket.
const PRUNE_INTERVAL: Duration = Duration::from_hours(24);

/// The period whose runs are listed first, because listing them needs few requests.
const RECENT: SignedDuration = SignedDuration::from_hours(24);

/// Whether the record of a run is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordStorage {
    /// The record is stored.
    Stored,
    /// The record is not stored; the run is only counted.
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
    /// Whether a run matches the filter.
    fn matches(&self, run: &RunId, summary: &RunSummary) -> bool {
        self.has_integration(run)
            && self.has_state(summary)
            && (self.unaffected || !summary.facts.is_unaffected)
    }

    fn has_integration(&self, run: &RunId) -> bool {
        self.integration.as_ref().is_none_or(|name| *name == run.integration())
    }

    fn has_state(&self, summary: &RunSummary) -> bool {
        let is_any = self.states.is_empty() && !self.held;
        is_any || self.states.contains(&summary.state) || (self.held && summary.facts.has_held)
    }
}

/// A run in a listing.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The id of the run.
    pub run: RunId,
    /// The summary of the run.
    pub summary: RunSummary,
}

/// Runs that match a filter.
#[derive(Debug)]
pub struct RunPage {
    /// The runs, the newest last.
    pub runs: Vec<ListedRun>,
    /// Whether older runs also match the filter.
    pub has_more: bool,
}

/// Numbers of runs that are newer than the last run that held changes.
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
    /// The record of the run.
    pub record: RunRecord,
    /// The newer runs of the integration; `None` unless the run was found by the name of its integration.
    pub newer: Option<NewerRuns>,
}

/// The store of run records.
#[derive(Debug)]
pub struct RunStore {
    /// The directory of this machine; `None` if records are stored only in a bucket.
    folder: Option<PathBuf>,
    /// The records in the directory.
    local: Option<RunRecords>,
    /// The records in the bucket of the journal.
    shared: Option<RunRecords>,
    idle: IdleCounters,
    max_trail_bytes: u64,
    max_records: usize,
    permits: Permits,
    /// The time at which this process last removed old records from the bucket.
    pruned: Mutex<Option<Instant>>,
    /// The rounds of real runs.
    rounds: Option<Rounds>,
    lookups: Mutex<Lookups>,
    /// Records of loop runs that could not be stored, the oldest first.
    unstored: Mutex<VecDeque<RunRecord>>,
}

/// A stored record.
enum StoredRun<'s> {
    Record(&'s RunRecords, RunKey),
    Legacy(legacy::RecordFile),
    /// A run without a record.
    Unfinished(UnfinishedRun),
}

impl StoredRun<'_> {
    fn run(&self) -> &RunId {
        match self {
            Self::Record(_, key) => &key.run,
            Self::Legacy(file) => &file.run,
            Self::Unfinished(run) => run.run(),
        }
    }

    /// The key by which runs are sorted: by start, and by end if several runs started in the same second.
    fn order(&self) -> (&str, i64, &str) {
        match self {
            Self::Record(_, key) => key.order(),
            Self::Legacy(file) => (file.run.second(), file.written, file.run.as_str()),
            // An unfinished run is sorted as if it ended after all others.
            Self::Unfinished(run) => (run.run().second(), i64::MAX, run.run().as_str()),
        }
    }

    /// The summary; `None` if the record cannot be read, so that an unreadable record does not prevent listing the
    /// others.
    async fn summary(&self) -> Option<RunSummary> {
        if let Self::Record(_, RunKey { summary: Some(summary), .. }) = self {
            return Some(summary.clone());
        }
        let record = self.read().await.ok()??;
        Some(run_summary::of(&record, self.order().1))
    }

    /// The record; `None` if it was removed since it was listed.
    async fn read(&self) -> anyhow::Result<Option<RunRecord>> {
        match self {
            Self::Record(records, key) => Ok(records.read(key).await?),
            Self::Legacy(file) => file.read().map(Some),
            Self::Unfinished(run) => Ok(run.record()),
        }
    }
}

impl RunStore {
    /// Opens the store with records in `folder`, by default below the user's state directory.
    pub fn new(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let folder = folder
            .or_else(default_folder)
            .context("no directory for records: set `--runs`, `QONTRACT_RUNS`, `XDG_STATE_HOME` or `HOME`")?;
        Ok(Self::of(Some(folder), None))
    }

    /// Opens the store with records of real runs in the bucket of the journal. Records of dry runs are in `folder`
    /// or, by default, below the user's state directory if the user has one.
    pub fn in_bucket(records: RunRecords, folder: Option<PathBuf>) -> Self {
        Self::of(folder.or_else(default_folder), Some(records))
    }

    fn of(folder: Option<PathBuf>, shared: Option<RunRecords>) -> Self {
        let local = folder.as_deref().map(|folder| {
            let journal = journal::folder_in(folder);
            RunRecords::new(std::sync::Arc::new(Directory::new(&journal)), folder.display().to_string())
        });
        let rounds = shared.as_ref().or(local.as_ref()).map(RunRecords::rounds);
        let idle = IdleCounters::new(folder.as_deref().filter(|_| shared.is_none()));
        Self {
            folder,
            local,
            shared,
            idle,
            max_trail_bytes: audit_file::MAX_BYTES,
            max_records: MAX_RECORDS,
            permits: journal::permits(),
            pruned: Mutex::default(),
            rounds,
            lookups: Mutex::default(),
            unstored: Mutex::default(),
        }
    }

    /// The directory of this machine, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The retention of the records of real runs.
    pub fn retention(&self) -> Retention {
        let local = Retention { max_records: self.max_records, max_age: SignedDuration::MAX };
        if self.shared.is_some() { SHARED_RETENTION } else { local }
    }

    /// Removes the records of real runs that exceed the retention and returns their runs. In dry-run mode, only
    /// returns the runs.
    pub async fn prune(&self, retention: Retention, mode: Mode) -> anyhow::Result<Vec<RunId>> {
        let write = self.permits.write.as_ref().filter(|_| mode == Mode::Real);
        match (&self.shared, &self.local) {
            (Some(shared), _) => self.prune_shared(shared, write, retention).await,
            (None, Some(local)) => self.prune_local(local, write, retention).await,
            (None, None) => anyhow::bail!("there are no run records"),
        }
    }

    /// The location of the records of real runs.
    pub fn place(&self) -> &str {
        self.shared.as_ref().or(self.local.as_ref()).map_or("", RunRecords::place)
    }

    /// Stores a record and removes old records.
    pub async fn store(&self, record: &RunRecord) -> anyhow::Result<()> {
        let summary = run_summary::of(record, Timestamp::now().as_millisecond());
        let write = self.permits.write.as_ref().context("records are written in every run")?;
        match (&self.shared, &self.local) {
            (Some(shared), _) if record.mode == Mode::Real => {
                shared.store(write, record, summary).await?;
                if self.is_prune_due() {
                    // A failure is ignored, because other processes also remove old records.
                    drop(self.prune_shared(shared, Some(write), SHARED_RETENTION).await);
                }
            }
            (_, Some(local)) => {
                local.store(write, record, summary).await?;
                if self.shared.is_none() {
                    // The rounds are removed, because the record and the audit log contain all of their information.
                    let run: Vec<RunId> = RunId::parse(&record.run).into_iter().collect();
                    self.remove_rounds(write, &run).await?;
                }
                let retention = Retention { max_records: self.max_records, max_age: SignedDuration::MAX };
                self.prune_local(local, Some(write), retention).await?;
            }
            // The record of a dry run is not stored on a machine without a directory.
            (_, None) => {}
        }
        Ok(())
    }

    /// Whether old records are removed from a bucket now: once a day.
    fn is_prune_due(&self) -> bool {
        let mut pruned = self.pruned.lock();
        let is_due = pruned.is_none_or(|at| at.elapsed() >= PRUNE_INTERVAL);
        if is_due {
            *pruned = Some(Instant::now());
        }
        is_due
    }

    /// Removes old records from the directory and returns their runs. Without a permit, only returns the runs.
    async fn prune_local(
        &self,
        local: &RunRecords,
        write: Option<&WritePermit>,
        retention: Retention,
    ) -> anyhow::Result<Vec<RunId>> {
        let now = Timestamp::now();
        let PrunedRuns { mut removed, kept } = local.prune(write, retention, now).await?;
        if let Some(legacy) = self.legacy() {
            removed.extend(legacy.prune(write, retention, &kept, now)?);
        }
        if let Some(write) = write {
            self.remove_rest(write, &removed).await?;
        }
        Ok(removed)
    }

    /// Removes old records from the bucket, as well as rounds of runs that never had a record, and returns their
    /// runs. Without a permit, only returns the runs.
    async fn prune_shared(
        &self,
        shared: &RunRecords,
        write: Option<&WritePermit>,
        retention: Retention,
    ) -> anyhow::Result<Vec<RunId>> {
        let now = Timestamp::now();
        let PrunedRuns { removed, .. } = shared.prune(write, retention, now).await?;
        if let (Some(rounds), Some(write)) = (&self.rounds, write) {
            let oldest = now.checked_sub(retention.max_age).unwrap_or(Timestamp::MIN);
            let old = rounds.runs(None, now).await?.into_keys();
            let old: Vec<RunId> = old.filter(|run| run.start().is_some_and(|start| start < oldest)).collect();
            self.remove_rest(write, &old).await?;
            self.remove_rest(write, &removed).await?;
        }
        Ok(removed)
    }

    /// Removes the recorded inputs and the rounds of runs whose records were removed.
    async fn remove_rest(&self, write: &WritePermit, runs: &[RunId]) -> anyhow::Result<()> {
        self.remove_rounds(write, runs).await?;
        if let Some(folder) = &self.folder {
            let inputs = InputStore::new(folder);
            for run in runs {
                inputs.remove(run.as_str());
            }
        }
        Ok(())
    }

    /// Removes the rounds of runs.
    async fn remove_rounds(&self, write: &WritePermit, runs: &[RunId]) -> anyhow::Result<()> {
        let Some(rounds) = &self.rounds else { return Ok(()) };
        for run in runs {
            rounds.remove(write, run).await?;
        }
        Ok(())
    }

    /// Checks that records and the audit log can be written, before a run writes to its targets. A bucket is not
    /// checked; an error of a bucket is reported when the record is stored.
    pub fn check_writable(&self) -> anyhow::Result<()> {
        match (&self.shared, self.audit_file()) {
            (None, Some(file)) => {
                file.lock().map(drop).context("cannot store run records; set `--runs` to another directory")
            }
            _ => Ok(()),
        }
    }

    fn audit_file(&self) -> Option<AuditFile<'_>> {
        self.folder.as_deref().map(|folder| AuditFile { folder, max_bytes: self.max_trail_bytes })
    }

    fn legacy(&self) -> Option<LegacyRecords<'_>> {
        self.folder.as_deref().map(LegacyRecords::new)
    }

    /// Appends a line to the audit log of this machine. If the journal is in a bucket, no line is appended, and the
    /// log of the process serves as the audit log.
    pub fn append_audit(&self, line: &str) -> anyhow::Result<()> {
        match (&self.shared, self.audit_file()) {
            (None, Some(file)) => file.append(line),
            _ => Ok(()),
        }
    }

    /// Stores the records of earlier loop runs that could not be stored when they ended.
    async fn store_unstored(&self) -> anyhow::Result<()> {
        loop {
            let Some(record) = self.unstored.lock().front().cloned() else { return Ok(()) };
            self.store(&record).await?;
            self.unstored.lock().pop_front();
        }
    }

    /// Keeps the record of a loop run in memory until it can be stored.
    fn keep_unstored(&self, record: &RunRecord) {
        let mut unstored = self.unstored.lock();
        if unstored.len() == MAX_UNSTORED {
            unstored.pop_front();
        }
        unstored.push_back(record.clone());
    }

    /// Stores the record of a loop run; if this fails, a later run stores the record. A run that had nothing to do is
    /// only counted. A run with degraded objects is only counted if the same objects were degraded in the run before.
    pub async fn record_loop_run(&self, record: &RunRecord) -> anyhow::Result<RecordStorage> {
        let degraded = degradations(record);
        let is_same = self.idle.is_as_degraded(record, &degraded);
        let storage = if is_idle(record) && is_same { RecordStorage::Counted } else { RecordStorage::Stored };
        // An error is not reported here, but by the next run that stores a record.
        let is_caught_up = self.store_unstored().await.is_ok();
        if storage == RecordStorage::Stored {
            let stored = if is_caught_up { self.store(record).await } else { Err(behind()) };
            if let Err(error) = stored {
                self.keep_unstored(record);
                return Err(error);
            }
        }
        if storage == RecordStorage::Counted || !is_same {
            self.idle.count(record, degraded, storage)?;
        }
        Ok(storage)
    }

    /// All runs since a time, the newest first.
    async fn stored_runs(&self, since: Option<Timestamp>) -> anyhow::Result<Vec<StoredRun<'_>>> {
        let now = Timestamp::now();
        let mut runs = Vec::new();
        for records in self.shared.iter().chain(&self.local) {
            let keys = records.list(since, now).await?;
            runs.extend(keys.into_iter().map(|key| StoredRun::Record(records, key)));
        }
        if let Some(legacy) = self.legacy() {
            runs.extend(legacy.list(since)?.into_iter().map(StoredRun::Legacy));
        }
        let recorded: BTreeSet<RunId> = runs.iter().map(|run| run.run().clone()).collect();
        let unfinished = self.unfinished(since, &recorded).await?;
        runs.extend(unfinished.into_iter().map(StoredRun::Unfinished));
        runs.sort_by(|a, b| b.order().cmp(&a.order()));
        let mut seen = BTreeSet::new();
        runs.retain(|run| seen.insert(run.run().clone()));
        Ok(runs)
    }

    /// The last runs that match the filter, the newest last.
    pub async fn list(&self, filter: &RunFilter, last: usize) -> anyhow::Result<RunPage> {
        if filter.since.is_none() && self.shared.is_some() {
            // Usually, the last day has enough runs, so that few requests suffice.
            let page = self.list_since(filter, last, Timestamp::now().checked_sub(RECENT).ok()).await?;
            if page.has_more {
                return Ok(page);
            }
        }
        self.list_since(filter, last, filter.since).await
    }

    async fn list_since(
        &self,
        filter: &RunFilter,
        last: usize,
        since: Option<Timestamp>,
    ) -> anyhow::Result<RunPage> {
        let (mut runs, mut has_more) = (Vec::new(), false);
        for stored in self.stored_runs(since).await? {
            if !filter.has_integration(stored.run()) {
                continue;
            }
            let Some(summary) = stored.summary().await else { continue };
            if !filter.matches(stored.run(), &summary) {
                continue;
            }
            if runs.len() == last {
                has_more = true;
                break;
            }
            runs.push(ListedRun { run: stored.run().clone(), summary });
        }
        runs.reverse();
        Ok(RunPage { runs, has_more })
    }

    /// The ids of all runs of the filter's integration that started at the filter's time or later.
    pub async fn ids(&self, filter: &RunFilter) -> anyhow::Result<BTreeSet<RunId>> {
        let runs = self.stored_runs(filter.since).await?;
        Ok(runs.iter().map(StoredRun::run).filter(|run| filter.has_integration(run)).cloned().collect())
    }

    /// The run with its summary; `None` if it does not match the filter.
    pub async fn listed(&self, run: &RunId, filter: &RunFilter) -> Option<ListedRun> {
        let summary = self.find(run).await.ok()??.summary().await?;
        filter.matches(run, &summary).then(|| ListedRun { run: run.clone(), summary })
    }

    /// The record of the run that a word names: `last`, the id of a run, an integration (for its last run), or an
    /// unambiguous prefix of an id.
    pub async fn resolve(&self, word: &str) -> anyhow::Result<RunRecord> {
        check_word(word)?;
        if let Some(run) = RunId::parse(word)
            && let Some(record) = self.find_record(&run).await?
        {
            return Ok(record);
        }
        let runs = self.stored_runs(None).await?;
        let ids: Vec<&RunId> = runs.iter().map(StoredRun::run).collect();
        let starting: Vec<&RunId> = ids.iter().copied().filter(|id| id.as_str().starts_with(word)).collect();
        let last_of = ids.iter().copied().find(|id| id.integration() == word);
        let found = match (word, last_of, starting.as_slice()) {
            ("last", ..) => ids.first().copied(),
            (_, Some(last), _) => Some(last),
            (_, None, [one]) => Some(*one),
            (_, None, []) => None,
            (_, None, [last, .., first]) => {
                let count = starting.len();
                let text = format!(
                    "`{word}` is a prefix of {count} runs, from `{first}` to `{last}`: use a longer prefix"
                );
                return Err(UsageError(text).into());
            }
        };
        if let Some(found) = found {
            return self.read(found).await;
        }
        let integrations: BTreeSet<&str> = ids.iter().map(|id| id.integration()).collect();
        let near = suggest::nearest(word, integrations).or_else(|| suggest::nearest(word, ["last"]));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(UsageError(format!("no run `{word}` in `{}`{near}", self.place())).into())
    }

    /// The newest run of any integration that held changes.
    pub async fn last_held(&self) -> Option<RunId> {
        for stored in self.stored_runs(None).await.unwrap_or_default() {
            if stored.summary().await.is_some_and(|summary| summary.facts.has_held) {
                return Some(stored.run().clone());
            }
        }
        None
    }

    /// The run to approve: if the word is an integration, the newest run of the integration that held changes, and
    /// otherwise the run that the word names.
    pub async fn resolve_held(&self, word: &str) -> anyhow::Result<HeldRun> {
        check_word(word)?;
        let (mut newer, mut without_approval) = (NewerRuns::default(), None);
        // No integration is named `last` or like the id of a run, so the loop finds no run for these words.
        for stored in self.stored_runs(None).await?.iter().filter(|run| run.run().integration() == word) {
            let Some(RunSummary { facts, .. }) = stored.summary().await else { continue };
            let is_wanted = facts.has_approval || (facts.has_held && without_approval.is_none());
            let record = if is_wanted { stored.read().await.ok().flatten() } else { None };
            let held = record.map(|record| HeldRun { record, newer: Some(newer) });
            if let (true, Some(held)) = (facts.has_approval, held.as_ref()) {
                return Ok(HeldRun { record: held.record.clone(), newer: held.newer });
            }
            without_approval = without_approval.or(held);
            if facts.has_unplanned_holds {
                newer.unplanned += 1;
            } else {
                newer.without_held += 1;
            }
        }
        match without_approval {
            Some(held) => Ok(held),
            None => Ok(HeldRun { record: self.resolve(word).await?, newer: None }),
        }
    }

    /// The counters of loop runs whose records are not stored.
    pub fn idle(&self) -> anyhow::Result<Vec<IdleCounter>> {
        self.idle.all()
    }

    /// The stored record of a run, or the run without a record if it has rounds.
    async fn find(&self, run: &RunId) -> anyhow::Result<Option<StoredRun<'_>>> {
        for records in self.shared.iter().chain(&self.local) {
            if let Some(key) = records.find(run).await? {
                return Ok(Some(StoredRun::Record(records, key)));
            }
        }
        if let Some(file) = self.legacy().and_then(|legacy| legacy.find(run)) {
            return Ok(Some(StoredRun::Legacy(file)));
        }
        Ok(self.unfinished_run(run).await?.map(StoredRun::Unfinished))
    }

    async fn find_record(&self, run: &RunId) -> anyhow::Result<Option<RunRecord>> {
        match self.find(run).await? {
            Some(stored) => stored.read().await,
            None => Ok(None),
        }
    }

    /// The record of a run.
    pub async fn read(&self, run: &RunId) -> anyhow::Result<RunRecord> {
        self.find_record(run)
            .await?
            .with_context(|| UsageError(format!("no run `{run}` in `{}`", self.place())))
    }
}

/// Fails if a word can be neither an integration nor a run.
fn check_word(word: &str) -> Result<(), UsageError> {
    let is_allowed = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
    if word.is_empty() || word.starts_with('.') || !word.chars().all(is_allowed) {
        return Err(UsageError(format!("`{word}` is not a valid run id")));
    }
    Ok(())
}

fn behind() -> anyhow::Error {
    anyhow::anyhow!("earlier records cannot be stored either; all of them are stored later")
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

fn default_folder() -> Option<PathBuf> {
    Some(state_folder()?.join("runs"))
}

/// The user's state directory.
pub fn state_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("qontract"))
}

#[cfg(test)]
mod tests;
