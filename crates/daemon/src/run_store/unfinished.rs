//! The rounds of runs, and the runs that have rounds and no record.

use std::collections::BTreeSet;

use jiff::Timestamp;
use qontract_journal::{RoundRecord, RunId};

use super::{RunStore, StoredRun};
use crate::unfinished_runs::{self, UnfinishedRun};

/// The runs that did not finish and that this process has looked up.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// The integrations whose unfinished runs were looked up.
    done: BTreeSet<String>,
    /// The runs of this process that were abandoned with steps in progress.
    abandoned: BTreeSet<RunId>,
}

impl RunStore {
    /// Stores the steps of a round or their results.
    pub async fn store_round(&self, round: &RoundRecord) -> anyhow::Result<()> {
        let (Some(rounds), Some(write)) = (&self.rounds, &self.permits.write) else { return Ok(()) };
        Ok(rounds.store(write, round).await?)
    }

    /// Records that this process abandoned a run with steps in progress.
    pub fn abandon(&self, run: &RunId) {
        let mut lookups = self.lookups.lock();
        lookups.done.remove(run.integration());
        lookups.abandoned.insert(run.clone());
    }

    /// The runs since a time that have rounds and are not in `recorded`.
    pub(super) async fn unfinished(
        &self,
        since: Option<Timestamp>,
        recorded: &BTreeSet<RunId>,
    ) -> anyhow::Result<Vec<UnfinishedRun>> {
        let Some(rounds) = &self.rounds else { return Ok(Vec::new()) };
        let mut unfinished = Vec::new();
        for (run, keys) in rounds.runs(since, Timestamp::now()).await? {
            if !recorded.contains(&run) {
                let read = rounds.read(&keys).await?;
                unfinished.extend(self.of_rounds(run, read));
            }
        }
        Ok(unfinished)
    }

    /// The unfinished run with this id; `None` if the run has no rounds.
    pub(super) async fn unfinished_run(&self, run: &RunId) -> anyhow::Result<Option<UnfinishedRun>> {
        let Some(rounds) = &self.rounds else { return Ok(None) };
        let read = rounds.read(&rounds.of_run(run).await?).await?;
        Ok(self.of_rounds(run.clone(), read))
    }

    fn of_rounds(&self, run: RunId, rounds: Vec<RoundRecord>) -> Option<UnfinishedRun> {
        let is_abandoned = self.lookups.lock().abandoned.contains(&run);
        let found = UnfinishedRun::new(run, rounds, Timestamp::now())?;
        Some(if is_abandoned { found.abandoned() } else { found })
    }

    /// The runs of an integration that were killed and have no record. This process looks for such runs once, and
    /// again after it abandoned a run or found a run in progress.
    pub(crate) async fn killed_runs(
        &self,
        integration: &str,
        now: Timestamp,
    ) -> anyhow::Result<Vec<UnfinishedRun>> {
        if self.lookups.lock().done.contains(integration) {
            return Ok(Vec::new());
        }
        let since = now.checked_sub(unfinished_runs::MAX_AGE)?;
        let runs = self.stored_runs(Some(since)).await?.into_iter();
        let (running, killed): (Vec<_>, Vec<_>) = runs
            .filter_map(|stored| match stored {
                StoredRun::Unfinished(run) => Some(run).filter(|run| run.run().integration() == integration),
                StoredRun::Record(..) | StoredRun::Legacy(_) => None,
            })
            .partition(UnfinishedRun::is_in_progress);
        if running.is_empty() {
            self.lookups.lock().done.insert(integration.to_owned());
        }
        Ok(killed)
    }

    /// Claims the report about a run that was killed. Returns `false` if another process has claimed it or the claim
    /// cannot be stored.
    pub(crate) async fn claim_report(&self, run: &RunId) -> bool {
        let (Some(rounds), Some(write)) = (&self.rounds, &self.permits.write) else { return false };
        rounds.claim_report(write, run).await.unwrap_or_default()
    }
}
