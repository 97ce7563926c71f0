//! The rounds of one run in the journal: the steps of a round are stored before the first of them is applied, and
//! their results are stored when they are known.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use qontract_journal::{ChangeResult, RoundOwner, RoundRecord};
use qontract_runtime::Change;
use qontract_runtime::audit::{IntendedRound, RoundNumber};

use crate::run_store::RunStore;

/// The rounds of a run.
pub struct RunRounds {
    runs: Arc<RunStore>,
    owner: RoundOwner,
    next: AtomicU32,
    /// The rounds whose results are not known.
    open: Mutex<BTreeMap<u32, RoundRecord>>,
}

impl fmt::Debug for RunRounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRounds").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl RunRounds {
    /// Creates the rounds of a run that starts.
    pub fn new(runs: Arc<RunStore>, owner: RoundOwner) -> Self {
        Self { runs, owner, next: AtomicU32::new(1), open: Mutex::default() }
    }

    /// Stores the steps of a round.
    pub async fn begin(&self, intended: &IntendedRound) -> (RoundNumber, anyhow::Result<()>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let round = self.owner.round(number, intended, Timestamp::now());
        self.open.lock().insert(number, round.clone());
        (RoundNumber(number), self.runs.store_round(&round).await)
    }

    /// Stores the results of a round.
    pub async fn end(&self, number: RoundNumber, tried: &[Change]) -> anyhow::Result<()> {
        let Some(mut round) = self.open.lock().remove(&number.0) else { return Ok(()) };
        let result = |change: &Change| ChangeResult { text: change.to_string(), result: change.result };
        round.results = Some(tried.iter().map(result).collect());
        self.runs.store_round(&round).await
    }
}

impl Drop for RunRounds {
    fn drop(&mut self) {
        // The task of a stalled run is dropped while its steps are in progress. The run is recorded as abandoned, so
        // that the next run of this process reports it.
        if !self.open.get_mut().is_empty() {
            self.runs.abandon(&self.owner.run);
        }
    }
}
