//! Write-ahead file of the steps in progress of a run. The next run uses it to detect that a run was killed.
//!
//! From its first step to its end, a real run has a file `unfinished/RUN.jsonl` in the directory of run
//! records, and holds a lock on it. The kernel releases the lock however the process ends. **Invariant:** an
//! unlocked file belongs to a run that did not finish.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_diagnostics::pluralize;
use qontract_files::private_files;
use qontract_journal::RunId;
use qontract_runtime::record::{
    BundleRecord, ChangeRecord, LocatedText, RECORD_VERSION, ShardRecord, seconds_or_timestamp,
};
use qontract_runtime::{ApprovalForm, Change, ChangeKind, RunEnd, RunRecord, StepResult};
use qontract_telemetry::log::{Level, LineFormat, LogLine};
use serde::{Deserialize, Serialize};

use crate::run_store::RunStore;

/// The exit code of a process that was ended by `SIGKILL`, assumed for runs whose end is unknown.
const KILLED_EXIT_CODE: u8 = 137;

/// Maximum number of changes that a warning names.
const MAX_NAMED_STEPS: usize = 3;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepFileEntry {
    /// The first line.
    Run(RunInfo),
    Began(RecordedStep),
    Ended(RecordedStep),
}

/// The run to which a file belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run.
    pub run: String,
    /// The integration.
    pub integration: String,
    /// The start time, in whole seconds.
    #[serde(deserialize_with = "seconds_or_timestamp")]
    pub began: Timestamp,
    /// The bundle that it ran on.
    pub head: BundleRecord,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedStep {
    shard: String,
    changes: Vec<StepChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StepChange {
    kind: ChangeKind,
    text: String,
}

impl RecordedStep {
    fn new(shard: String, changes: &[Change]) -> Self {
        let change = |change: &Change| StepChange { kind: change.kind, text: change.to_string() };
        Self { shard, changes: changes.iter().map(change).collect() }
    }
}

/// The file of a run in progress.
#[derive(Debug)]
pub struct StepFile {
    /// `None` on a machine without a directory for run records.
    folder: Option<PathBuf>,
    info: RunInfo,
    state: Mutex<StepFileState>,
}

#[derive(Debug, Default)]
struct StepFileState {
    file: Option<File>,
    steps_in_progress: usize,
}

impl StepFile {
    /// The file of a run. It is created with the first step.
    pub fn new(runs: &RunStore, info: RunInfo) -> Self {
        Self { folder: runs.folder().map(folder), info, state: Mutex::default() }
    }

    /// Records the beginning of a step.
    pub fn begin(&self, shard: String, changes: &[Change]) -> io::Result<()> {
        let mut state = self.state.lock();
        let Some(folder) = &self.folder else { return Ok(()) };
        if state.file.is_none() {
            state.file = Some(self.create(folder)?);
        }
        state.steps_in_progress += 1;
        append(state.file.as_ref(), &StepFileEntry::Began(RecordedStep::new(shard, changes)))
    }

    /// Records that the result of a step is known.
    pub fn end(&self, shard: String, changes: &[Change]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.steps_in_progress = state.steps_in_progress.saturating_sub(1);
        append(state.file.as_ref(), &StepFileEntry::Ended(RecordedStep::new(shard, changes)))
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.jsonl", self.info.run))
    }

    /// Creates and locks the file under a temporary name, and then renames it. It is not an
    /// [`AtomicFile`](qontract_files::atomic::AtomicFile): it stays open and locked, and grows until the run ends.
    fn create(&self, folder: &Path) -> io::Result<File> {
        private_files::create_folder(folder, folder)?;
        let temporary = folder.join(format!(".{}", self.info.run));
        let file = private_files::options().append(true).open(&temporary)?;
        let created = file.lock().and_then(|()| {
            append(Some(&file), &StepFileEntry::Run(self.info.clone()))?;
            fs::rename(&temporary, self.path(folder))
        });
        if created.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        created.map(|()| file)
    }
}

impl Drop for StepFile {
    fn drop(&mut self) {
        let Some(path) = self.folder.as_deref().map(|folder| self.path(folder)) else { return };
        let state = self.state.get_mut();
        // The task of a stalled run is dropped with its steps in progress: the file stays, and the next run
        // reports it.
        if state.file.is_some() && state.steps_in_progress == 0 {
            let _ = fs::remove_file(path);
        }
    }
}

fn folder(runs: &Path) -> PathBuf {
    runs.join("unfinished")
}

fn append(file: Option<&File>, entry: &StepFileEntry) -> io::Result<()> {
    let Some(mut file) = file else { return Ok(()) };
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// A run that did not finish.
#[derive(Debug)]
struct UnfinishedRun {
    info: RunInfo,
    /// Steps whose result is unknown.
    steps: Vec<RecordedStep>,
    milliseconds: u64,
}

impl UnfinishedRun {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let StepFileEntry::Run(info) = serde_json::from_str(lines.next()?).ok()? else { return None };
        let mut steps: Vec<RecordedStep> = Vec::new();
        // The last line may be incomplete.
        for entry in lines.map_while(|line| serde_json::from_str(line).ok()) {
            match entry {
                StepFileEntry::Run(_) => {}
                StepFileEntry::Began(step) => steps.push(step),
                StepFileEntry::Ended(step) => {
                    if let Some(index) = steps.iter().position(|one| *one == step) {
                        steps.remove(index);
                    }
                }
            }
        }
        Some(Self { info, steps, milliseconds: 0 })
    }

    /// The warning that the next run logs.
    fn warning(&self) -> String {
        let run = &self.info.run;
        let texts: Vec<&str> = self.changes().map(|change| change.text.as_str()).collect();
        let named = texts[..texts.len().min(MAX_NAMED_STEPS)].join("; ");
        let what = match texts.len() {
            0 => "no step was in progress".to_owned(),
            count if count > MAX_NAMED_STEPS => {
                format!("{} may be partially applied: {named}; …", pluralize(count, "change"))
            }
            _ => format!("may be partially applied: {named}"),
        };
        format!("run {run} did not finish: it was killed or stalled; {what}; see `qontract runs show {run}`")
    }

    fn changes(&self) -> impl Iterator<Item = &StepChange> {
        self.steps.iter().flat_map(|step| &step.changes)
    }

    /// An audit log line for each change whose result is unknown.
    fn audit_lines(&self) -> Vec<LogLine> {
        let RunInfo { run, integration, head, .. } = &self.info;
        let line = |shard: &str, change: &StepChange| {
            let text = format!("interrupted: {} may be partially applied", change.text);
            let line = LogLine::new(Level::Warning, text).with("integration", integration.as_str());
            let line = line.with("run", run.as_str()).with_detail("bundle", head.sha.as_str());
            line.with_detail("shard", shard).with_detail("done", false)
        };
        let of_step =
            |step: &RecordedStep| step.changes.iter().map(|one| line(&step.shard, one)).collect::<Vec<_>>();
        self.steps.iter().flat_map(of_step).collect()
    }

    /// The record that the run could not write itself.
    fn record(self) -> RunRecord {
        let Self { info: RunInfo { run, integration, began, head }, steps, milliseconds } = self;
        let mut record = RunRecord {
            version: RECORD_VERSION,
            run,
            began,
            now: None,
            milliseconds,
            integration,
            mode: qontract_access::Mode::Real,
            head,
            base: None,
            options: std::collections::BTreeMap::new(),
            slot: "0 of 1".to_owned(),
            only_shards: Vec::new(),
            decisions: Vec::new(),
            causes: Vec::new(),
            renamed: std::collections::BTreeMap::new(),
            shards: std::collections::BTreeMap::new(),
            released: Vec::new(),
            faults: Vec::new(),
            warnings: vec![
                "the run was killed or stalled; the steps that it finished are in `trail.jsonl`".to_owned(),
            ],
            plan_digest: None,
            approval: None,
            approval_form: ApprovalForm::default(),
            unplanned_holds: 0,
            ended: RunEnd::Interrupted,
            exit: KILLED_EXIT_CODE,
        };
        for RecordedStep { shard, changes } in steps {
            let shard = record
                .shards
                .entry(shard)
                .or_insert_with(|| ShardRecord { rounds: 1, ..ShardRecord::default() });
            for StepChange { kind, text } in changes {
                let message = format!("interrupted: {text} may be partially applied");
                shard.faults.push(LocatedText {
                    text: message,
                    details: Vec::new(),
                    hint: None,
                    cause: None,
                    whose: None,
                    places: Vec::new(),
                });
                shard.changes.push(interrupted(kind, text));
            }
        }
        record
    }
}

fn interrupted(change: ChangeKind, text: String) -> ChangeRecord {
    ChangeRecord {
        change,
        text,
        scope: std::collections::BTreeMap::new(),
        kind: String::new(),
        name: String::new(),
        diff: Vec::new(),
        why: None,
        approvable: false,
        hold: None,
        plan: None,
        remedy: None,
        place: None,
        result: StepResult::Interrupted,
    }
}

/// Finds the runs of an integration that did not finish, and writes a record and audit log lines for each.
/// Returns a warning for each; every run is reported once.
pub async fn report(runs: &RunStore, integration: &str, now: Timestamp) -> Vec<String> {
    let entries =
        runs.folder().and_then(|runs| fs::read_dir(folder(runs)).ok()).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let mut warnings = Vec::new();
    for path in paths {
        warnings.extend(report_file(runs, &path, integration, now).await);
    }
    warnings
}

/// Reports the run of a file, and removes the file.
async fn report_file(runs: &RunStore, path: &Path, integration: &str, now: Timestamp) -> Option<String> {
    let read = || UnfinishedRun::parse(&fs::read_to_string(path).ok()?);
    // Checked before locking, because the lock would prevent a run of the other integration from reporting
    // the file.
    read().filter(|unfinished| unfinished.info.integration == integration)?;
    let file = File::open(path).ok()?;
    match file.try_lock() {
        Ok(()) => {}
        // The run is still in progress.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
    }
    let meta = file.metadata().ok()?;
    // Another process may have reported it between the two calls.
    fs::metadata(path).ok().filter(|now| now.ino() == meta.ino())?;
    let mut unfinished = read()?;
    let ended = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let began = u128::try_from(unfinished.info.began.as_millisecond()).unwrap_or_default();
    let milliseconds = ended.map_or(0, |ended| ended.as_millis().saturating_sub(began));
    unfinished.milliseconds = u64::try_from(milliseconds).unwrap_or_default();
    let has_record = match RunId::parse(&unfinished.info.run) {
        Some(run) => runs.has(&run).await,
        None => false,
    };
    let warning = unfinished.warning();
    // A run that wrote its record and was killed before it could remove the file has finished.
    let is_finished = has_record && unfinished.steps.is_empty();
    for line in unfinished.audit_lines() {
        runs.append_audit(&line.format(LineFormat::Json, now)).ok()?;
    }
    if !has_record {
        runs.store(&unfinished.record()).await.ok()?;
    }
    fs::remove_file(path).ok()?;
    (!is_finished).then_some(warning)
}

#[cfg(test)]
mod tests;
