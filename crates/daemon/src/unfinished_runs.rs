//! Runs with rounds but without a record: they are in progress, or were killed. The next real run of the
//! integration reports those that were killed, and stores their records.

use jiff::{SignedDuration, Timestamp};
use qontract_child::ProcessIdentity;
use qontract_diagnostics::pluralize;
use qontract_journal::{LeaseProcess, RoundRecord, RunId};
use qontract_runtime::audit::IntendedChange;
use qontract_runtime::record::{ChangeRecord, LocatedText, RECORD_VERSION, RunRecord, ShardRecord};
use qontract_runtime::{ApprovalForm, ChangeKind, RunEnd, StepResult};
use qontract_telemetry::log::{Level, LineFormat, LogLine};

use crate::run_store::RunStore;

/// The exit code of a process that was ended by `SIGKILL`, assumed for runs whose end is unknown.
const KILLED_EXIT_CODE: u8 = 137;

/// Maximum number of changes that a warning names.
const MAX_NAMED_STEPS: usize = 3;

/// A run on another machine that has not begun a round for this time is assumed to be killed.
const MAX_SILENCE: SignedDuration = SignedDuration::from_hours(2);

/// Maximum age of unfinished runs that the next run looks for.
pub const MAX_AGE: SignedDuration = SignedDuration::from_hours(48);

/// A run with rounds but without a record.
#[derive(Debug)]
pub struct UnfinishedRun {
    run: RunId,
    /// Its rounds, in the order in which they were made; never empty.
    rounds: Vec<RoundRecord>,
    /// The time until which it is assumed to be in progress; `None` if it was killed.
    in_progress_at: Option<Timestamp>,
}

impl UnfinishedRun {
    /// The run of these rounds; `None` if there are none.
    pub fn new(run: RunId, rounds: Vec<RoundRecord>, now: Timestamp) -> Option<Self> {
        let last = rounds.last()?;
        let in_progress_at = is_in_progress(last, now).then_some(now);
        Some(Self { run, rounds, in_progress_at })
    }

    /// The run, which this process has abandoned.
    #[must_use]
    pub fn abandoned(self) -> Self {
        Self { in_progress_at: None, ..self }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Whether it is in progress. If not, it was killed.
    pub fn is_in_progress(&self) -> bool {
        self.in_progress_at.is_some()
    }

    /// The changes that may be partially applied, with their shards.
    fn changes(&self) -> impl Iterator<Item = (&str, &IntendedChange)> {
        self.rounds
            .iter()
            .flat_map(|round| round.uncertain_changes().map(|change| (round.shard.as_str(), change)))
    }

    /// The warning that the next run logs.
    fn warning(&self) -> String {
        let run = &self.run;
        let texts: Vec<&str> = self.changes().map(|(_, change)| change.text.as_str()).collect();
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

    /// An audit log line for each change whose result is unknown.
    fn audit_lines(&self) -> Vec<LogLine> {
        let sha = self.rounds.first().map(|round| round.head.sha.clone()).unwrap_or_default();
        let line = |(shard, change): (&str, &IntendedChange)| {
            let text = format!("interrupted: {} may be partially applied", change.text);
            let line = LogLine::new(Level::Warning, text).with("integration", self.run.integration());
            let line = line.with("run", self.run.as_str()).with_detail("bundle", sha.as_str());
            line.with_detail("shard", shard).with_detail("done", false)
        };
        self.changes().map(line).collect()
    }

    /// The record that the run could not write itself.
    pub fn record(&self) -> Option<RunRecord> {
        let (first, last) = (self.rounds.first()?, self.rounds.last()?);
        let took = self.in_progress_at.unwrap_or(last.at).duration_since(first.began).as_millis();
        let note = if self.is_in_progress() {
            "the run is in progress; the steps of its last round may be partially applied"
        } else {
            "the run was killed or stalled; the steps of its last round may be partially applied"
        };
        let mut record = RunRecord {
            version: RECORD_VERSION,
            run: self.run.to_string(),
            began: first.began,
            now: None,
            milliseconds: u64::try_from(took).unwrap_or_default(),
            integration: self.run.integration().to_owned(),
            mode: qontract_access::Mode::Real,
            head: first.head.clone(),
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
            warnings: vec![note.to_owned()],
            plan_digest: None,
            approval: None,
            approval_form: ApprovalForm::default(),
            unplanned_holds: 0,
            in_progress: self.is_in_progress(),
            ended: RunEnd::Interrupted,
            exit: KILLED_EXIT_CODE,
        };
        for round in &self.rounds {
            let shard = record.shards.entry(round.shard.clone()).or_default();
            shard.rounds += 1;
            add_round(shard, round, self.is_in_progress());
        }
        Some(record)
    }
}

/// Adds the changes of a round: those with known results, and those that may be partially applied. The
/// changes of a run in progress are only planned.
fn add_round(shard: &mut ShardRecord, round: &RoundRecord, is_in_progress: bool) {
    let results = round.results.as_deref().unwrap_or_default();
    for change in round.steps.iter().flat_map(|step| &step.changes) {
        let known = results.iter().find(|result| result.text == change.text).map(|result| result.result);
        let result = match (&round.results, known) {
            (None, _) if is_in_progress => StepResult::Planned,
            (None, _) => StepResult::Interrupted,
            (Some(_), Some(result)) => result,
            (Some(_), None) => StepResult::NotTried,
        };
        if result == StepResult::Interrupted {
            let text = format!("interrupted: {} may be partially applied", change.text);
            shard.faults.push(LocatedText {
                text,
                details: Vec::new(),
                hint: None,
                cause: None,
                whose: None,
                places: Vec::new(),
            });
        }
        shard.applied += usize::from(result == StepResult::Done);
        shard.changes.push(recorded(change.kind, change.text.clone(), result));
    }
}

fn recorded(change: ChangeKind, text: String, result: StepResult) -> ChangeRecord {
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
        result,
    }
}

/// Whether a run with this last round is in progress.
fn is_in_progress(last: &RoundRecord, now: Timestamp) -> bool {
    let LeaseProcess { pid, started, machine, .. } = last.process.clone();
    let process = ProcessIdentity { pid, started, machine };
    if process.is_local() { !process.is_gone() } else { now.duration_since(last.at) <= MAX_SILENCE }
}

/// Finds the runs of an integration that did not finish, and writes a record and audit log lines for each. Returns a
/// warning for each; every run is reported once.
///
/// A process looks once for each integration, and again after it abandoned a run or found one in progress.
pub async fn report(runs: &RunStore, integration: &str, now: Timestamp) -> Vec<String> {
    // Without the journal, the next run looks again.
    let Ok(found) = runs.killed_runs(integration, now).await else { return Vec::new() };
    let mut warnings = Vec::new();
    for unfinished in found {
        if !runs.claim_report(&unfinished.run).await {
            continue;
        }
        for line in unfinished.audit_lines() {
            // The record names the changes as well.
            drop(runs.append_audit(&line.format(LineFormat::Json, now)));
        }
        if let Some(record) = unfinished.record() {
            // Without a record, the rounds remain.
            drop(runs.store(&record).await);
        }
        warnings.push(unfinished.warning());
    }
    warnings
}

#[cfg(test)]
mod tests;
