//! Waiting for operations in progress in the target.
//!
//! A shard whose plan has waits is observed again at the poll interval of the integration until the plan has no
//! waits, the shard has a fault, or the wait timeout expires. Each observation registers an activity, from which the
//! watchdog detects progress.

use std::time::Duration;

use qontract_telemetry::activity;
use tokio::time::{Instant, sleep_until};

use super::planned_shard::PlannedShard;
use super::round::{ActiveShard, Pass, PassLease, PassOutcome, RoundRunner};
use crate::fault::Fault;
use crate::meta::{MAX_ROUNDS, Patience, Resolution};
use crate::outcome::{RunOutcome, ShardOutcome};
use crate::plan::{Degradation, RolloutProgress, Wait};
use crate::run_request::RunRequest;

/// The next pass over a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPass {
    /// No further pass: the shard is finished.
    None,
    /// Another round, immediately.
    Round,
    /// An observation, after the interval between observations.
    Observation,
    /// No further pass, because the target changed concurrently in all rounds.
    Stale,
}

impl RoundRunner<'_> {
    /// The patience of this run. If the request waits for rollouts, it sets the total time.
    pub(super) fn patience(&self) -> Patience {
        let patience = self.integration.meta().patience;
        Patience { total: self.request.await_rollouts.unwrap_or(patience.total), ..patience }
    }

    /// Decides how a shard continues after a pass.
    pub(super) fn next_pass(&self, shard: &ActiveShard<'_>, pass: &PassOutcome) -> NextPass {
        let meta = self.integration.meta();
        if matches!(pass.lease, PassLease::Lost) {
            return NextPass::None;
        }
        if pass.stale {
            return if shard.rounds < MAX_ROUNDS { NextPass::Round } else { NextPass::Stale };
        }
        let is_first_without_waits = shard.pass == Pass::Observation && !pass.waits;
        if (shard.rounds < meta.rounds && pass.applied > 0)
            // The operation has ended, so the desired state may depend on its result.
            || (is_first_without_waits && !pass.failed && meta.resolution == Resolution::EachRound)
        {
            return NextPass::Round;
        }
        // A rollout that a step of this pass causes may begin only after the pass.
        let may_roll_out = self.request.await_rollouts.is_some() && pass.applied > 0;
        let can_wait = !self.patience().total.is_zero() && !pass.failed;
        if can_wait && (pass.waits || may_roll_out) { NextPass::Observation } else { NextPass::None }
    }

    /// Whether a rollout that the run waits for has failed, so that waiting is useless.
    pub(super) fn has_failed_rollout(&self, planned: &PlannedShard) -> bool {
        let mut rollouts = planned.plan.rollouts.iter();
        self.request.await_rollouts.is_some()
            && rollouts.any(|rollout| rollout.progress == RolloutProgress::Failed)
    }

    /// Records the rollouts of a pass: as waits and faults if the run waits for rollouts, and otherwise as rollouts
    /// and degradations.
    pub(super) fn record_rollouts(&self, shard: &mut ShardOutcome, planned: &PlannedShard) {
        shard.rollouts.clear();
        for rollout in &planned.plan.rollouts {
            let rollout = planned.redactor.rollout(rollout.clone());
            let (text, place) = (rollout.to_string(), rollout.place.clone());
            let failure = format!("rollout of {} failed: {}", rollout.object, rollout.text);
            let awaits = self.request.await_rollouts.is_some();
            match rollout.progress {
                RolloutProgress::InProgress if awaits => shard.waits.push(Wait { text, place }),
                RolloutProgress::InProgress => shard.rollouts.push(rollout),
                RolloutProgress::Failed if awaits => {
                    let fault = Fault::author(failure).at(place);
                    if !shard.faults.contains(&fault) {
                        shard.faults.push(fault);
                    }
                }
                RolloutProgress::Failed => {
                    shard.degraded.push(Degradation { text: failure, place });
                }
            }
        }
    }
}

/// The time that a run may still spend waiting. The time starts with the first pause.
pub struct WaitBudget<'r> {
    patience: Patience,
    request: &'r RunRequest,
    deadline: Option<Instant>,
}

impl<'r> WaitBudget<'r> {
    pub fn new(patience: Patience, request: &'r RunRequest) -> Self {
        Self { patience, request, deadline: None }
    }

    /// Pauses until the next observation. Returns `false` if the run must stop waiting because its wait timeout has
    /// expired, a shutdown was requested, or newer data is available.
    pub async fn pause(&mut self, shards: &[ActiveShard<'_>], outcome: &RunOutcome) -> bool {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert_with(|| now + self.patience.total);
        let next = (now + self.patience.every.max(MIN_INTERVAL)).min(deadline);
        if now >= deadline {
            return false;
        }
        let waits = shards.iter().filter_map(|shard| outcome.shards.get(&shard.key));
        let waits: Vec<&Wait> = waits.flat_map(|shard| &shard.waits).collect();
        let _activity = activity::begin(match waits.as_slice() {
            [] => "wait for rollouts".to_owned(),
            [wait] => format!("wait: {}", wait.text),
            [wait, others @ ..] => format!("wait: {} and {} more", wait.text, others.len()),
        });
        tokio::select! {
            () = sleep_until(next) => true,
            () = self.request.shutdown.requested() => false,
            () = self.request.newer_data_available() => false,
        }
    }
}

/// Minimum interval between two observations.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
