//! Runs with rounds but without a record: such a run is in progress or was killed. The next real run of the
//! integration reports the runs that were killed and stores their records.

use jiff::{SignedDuration, Timestamp};
use qontract_child::ProcessIdentity;
use qontract_diagnostics::pluralize;
use qontract_journal::{LeaseProcess, RoundRecord, RunId};
use qontract_runtime::audit::IntendedChange;
use qontract_runtime::record::{ChangeRecord, LocatedText, RECORD_VERSION, RunRecord, ShardRecord};
use qontract_runtime::{ApprovalForm, ChangeKind, RunEnd, StepResult};
use qontract_telemetry::log::{Level, LineFormat, LogLine};

use crate::run_store::RunStore;

/// The exit code of a process that was ended by `SIGKILL`. It is recorded for runs whose end is unknown.
const KILLED_EXIT_CODE: u8 = 137;

/// Maximum number of changes that a warning names.
const MAX_NAMED_STEPS: usize = 3;

/// Time after the start of the last round after which a run on another machine is assumed to be killed.
const MAX_SILENCE: SignedDuration = SignedDuration::from_hours(2);

/// Maximum age of unfinished runs that the next run looks for.
pub const MAX_AGE: SignedDuration = SignedDuration::from_hours(48);

/// A run with rounds but without a record.
#[derive(Debug)]
pub struct UnfinishedRun {
    run: RunId,
    /// The rounds of the run, in the order in which they were made; never empty.
    rounds: Vec<RoundRecord>,
    /// The time at which the run was found to be in progress; `None` if it was killed.
    in_progress_at: Option<Timestamp>,
}

impl UnfinishedRun {
    /// Creates the run of these rounds; `None` if `rounds` is empty.
    pub fn new(run: RunId, rounds: Vec<RoundRecord>, now: Timestamp) -> Option<Self> {
        let last = rounds.last()?;
        let in_progress_at = is_in_progress(last, now).then_some(now);
        Some(Self { run, rounds, in_progress_at })
    }

    /// Treats the run as killed, because this process has abandoned it.
    #[must_use]
    pub fn abandoned(self) -> Self {
        Self { in_progress_at: None, ..self }
    }

    /// The id of the run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Whether the run is in progress. If it is not, it was killed.
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

    /// The record in place of the one that the run could not write itself.
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

/// Adds the changes of a round: those with known results, and those that may be partially applied. If the run is in
/// progress, its changes are added as planned.
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

/// Whether a run whose last round is `last` is in progress.
fn is_in_progress(last: &RoundRecord, now: Timestamp) -> bool {
    let LeaseProcess { pid, started, machine, .. } = last.process.clone();
    let process = ProcessIdentity { pid, started, machine };
    if process.is_local() { !process.is_gone() } else { now.duration_since(last.at) <= MAX_SILENCE }
}

/// Finds the runs of an integration that did not finish and writes a record and audit log lines for each of these
/// runs. Returns a warning for each run. A run is reported only once.
///
/// A process looks once for the runs of each integration, and again after it abandoned a run or found a run in
/// progress.
pub async fn report(runs: &RunStore, integration: &str, now: Timestamp) -> Vec<String> {
    // If the journal cannot be read, the next run looks again.
    let Ok(found) = runs.killed_runs(integration, now).await else { return Vec::new() };
    let mut warnings = Vec::new();
    for unfinished in found {
        if !runs.claim_report(&unfinished.run).await {
            continue;
        }
        for line in unfinished.audit_lines() {
            // An error is ignored, because the record also names the changes.
            drop(runs.append_audit(&line.format(LineFormat::Json, now)));
        }
        if let Some(record) = unfinished.record() {
            // If the record cannot be stored, the rounds remain in the journal.
            drop(runs.store(&record).await);
        }
        warnings.push(unfinished.warning());
    }
    warnings
}

#[cfg(test)]
mod tests;
