//! Judges a plan against the removal ledger and reserves the removals that are not held, atomically across all
//! processes.

use std::time::Duration;

use parking_lot::Mutex;
use qontract_access::Permits;

use crate::guard::{JudgedShard, LedgerError, LedgerState, PlannedSteps, RemovalGuard, StoreResult};
use crate::run_request::RunRequest;

/// Maximum number of attempts to judge a plan and store the ledger. An attempt fails if another process stores the
/// ledger concurrently.
const MAX_ATTEMPTS: u32 = 200;

/// Maximum back-off (backoff) between two of these attempts.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// Judges the plans of a run and reserves their removals.
pub struct Reservations<'r> {
    guard: &'r RemovalGuard,
    request: &'r RunRequest,
    permits: &'r Permits,
    /// The state of the ledger after the plans of this dry run. A dry run does not store it; later plans of
    /// the run are judged against it.
    rehearsed: Mutex<Option<Result<LedgerState, LedgerError>>>,
    /// The reason why the ledger could not be loaded in a real run, if it could not.
    unavailable: Mutex<Option<LedgerError>>,
}

impl<'r> Reservations<'r> {
    /// Creates the reservations of a run.
    pub fn new(guard: &'r RemovalGuard, request: &'r RunRequest, permits: &'r Permits) -> Self {
        Self { guard, request, permits, rehearsed: Mutex::default(), unavailable: Mutex::default() }
    }

    /// Judges the steps of these shards. A real run reserves every removal that is not held and counts against a
    /// budget.
    pub async fn judge_and_reserve<'p, S: PlannedSteps>(&self, shards: &'p [S]) -> Vec<JudgedShard<'p, S>> {
        let Some(permit) = &self.permits.write else { return self.rehearse(shards).await };
        let RunRequest { ledger, run, .. } = self.request;
        let integration = self.guard.integration.as_str();
        for attempt in 0..MAX_ATTEMPTS {
            let loaded = ledger.load(&self.permits.read, integration).await;
            let state = loaded.as_ref().map(|snapshot| &snapshot.state);
            let mut judged = self.guard.judge(shards, state);
            let snapshot = match loaded {
                Ok(snapshot) => snapshot,
                Err(error) => {
                    *self.unavailable.lock() = Some(error);
                    return judged;
                }
            };
            let next = self.guard.settle(&judged, run, &snapshot.state);
            if next == snapshot.state {
                return judged;
            }
            match ledger.store(permit, integration, snapshot.version.as_deref(), &next).await {
                Ok(StoreResult::Done) => return judged,
                Ok(StoreResult::Conflict) => {
                    let pause = Duration::from_millis(1) * 2_u32.saturating_pow(attempt.min(10));
                    tokio::time::sleep(pause.min(MAX_PAUSE)).await;
                }
                Err(error) => {
                    RemovalGuard::hold_unreserved(&mut judged, &error);
                    return judged;
                }
            }
        }
        let error = LedgerError::Unavailable(format!(
            "other processes changed it during each of {MAX_ATTEMPTS} attempts"
        ));
        let mut judged = self.guard.judge(shards, Err(&error));
        RemovalGuard::hold_unreserved(&mut judged, &error);
        judged
    }

    /// The warning of a real run whose ledger could not be loaded.
    pub fn warning(&self) -> Option<String> {
        let error = self.unavailable.lock().take()?;
        Some(format!("{error}; until then, nothing is removed without an approval"))
    }

    async fn rehearse<'p, S: PlannedSteps>(&self, shards: &'p [S]) -> Vec<JudgedShard<'p, S>> {
        let previous = self.rehearsed.lock().clone();
        let state = if let Some(state) = previous {
            state
        } else {
            let loaded = self.request.ledger.load(&self.permits.read, &self.guard.integration).await;
            loaded.map(|snapshot| snapshot.state)
        };
        let judged = self.guard.judge(shards, state.as_ref());
        let next = state.map(|state| self.guard.settle(&judged, &self.request.run, &state));
        *self.rehearsed.lock() = Some(next);
        judged
    }
}
