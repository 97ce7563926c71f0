//! Leases in a staged run: each shard with steps is applied under its lease. If another run holds the lease of a
//! shard, the shard waits until the lease expires or fails as soon as the lease is renewed.

use futures_util::future::join_all;
use qontract_diagnostics::pluralize;
use qontract_telemetry::activity;

use super::apply::{self, ApplyContext, ApplyOutcome};
use super::planned_shard::PlannedShard;
use super::round::{ActiveShard, Pass, RoundRunner};
use crate::audit::{IntendedChange, IntendedRound, IntendedStep};
use crate::contract::WriteContext;
use crate::guard::{JudgedShard, JudgedStep};
use crate::key::ShardKey;
use crate::lease::{HolderLiveness, Lease, LeaseAcquisition, LeaseHolder, LeaseRequest, UnfencedLease};
use crate::meta::MAX_ROUNDS;
use crate::outcome::RunOutcome;
use crate::plan::Change;

/// The outcome of applying the plan of a shard under its lease.
#[derive(Debug)]
pub(super) enum LeasedApply {
    /// The plan was applied under the lease or has no steps.
    Applied(ApplyOutcome),
    /// The plan was applied without a lease, because leases were not available for this reason.
    Unleased(ApplyOutcome, String),
    /// Nothing was applied, because another run holds the lease.
    Held(LeaseHolder),
}

/// A shard that waits until the lease of another run expires.
pub(super) struct HeldShard<'w> {
    pub(super) shard: ActiveShard<'w>,
    pub(super) holder: LeaseHolder,
}

impl RoundRunner<'_> {
    /// Applies the steps of a shard that are not held, under the lease of the shard. A shard without such steps needs
    /// no lease.
    pub(super) async fn apply_leased(
        &self,
        write: &WriteContext<'_>,
        shard: &JudgedShard<'_, PlannedShard>,
    ) -> LeasedApply {
        let planned = shard.shard();
        if !shard.steps().any(|step| JudgedStep::permitted(step).is_some()) {
            return LeasedApply::Applied(self.apply_fenced(write, shard, &UnfencedLease).await);
        }
        let acquired = tokio::select! {
            biased;
            acquired = self.request.leases.acquire(self.lease_request(write, &planned.key)) => acquired,
            () = self.request.shutdown.requested() => {
                return LeasedApply::Applied(ApplyOutcome { stopped: true, ..ApplyOutcome::default() });
            }
        };
        match acquired {
            LeaseAcquisition::Acquired(lease) => {
                let done = tokio::select! {
                    biased;
                    done = self.apply_fenced(write, shard, &*lease) => done,
                    never = lease.maintain(write.read, write.permit) => match never {},
                };
                lease.release(write.read, write.permit).await;
                LeasedApply::Applied(done)
            }
            LeaseAcquisition::Held(holder) => LeasedApply::Held(holder),
            LeaseAcquisition::Unavailable(reason) => {
                LeasedApply::Unleased(self.apply_fenced(write, shard, &UnfencedLease).await, reason)
            }
        }
    }

    async fn apply_fenced(
        &self,
        write: &WriteContext<'_>,
        shard: &JudgedShard<'_, PlannedShard>,
        lease: &dyn Lease,
    ) -> ApplyOutcome {
        let context = ApplyContext {
            integration: self.integration,
            write,
            request: self.request,
            limits: self.limits,
            redactor: &shard.shard().redactor,
            lease,
        };
        let Some(intended) = intended_round(shard) else { return apply::apply_plan(context, shard).await };
        let audit = &self.request.audit;
        let round = audit.begin_round(&intended).await;
        let done = apply::apply_plan(context, shard).await;
        let tried: Vec<Change> = done
            .results
            .iter()
            .map(|(change, result)| Change { result: *result, ..change.clone() })
            .collect();
        audit.end_round(round, &tried).await;
        done
    }

    fn lease_request<'a>(&'a self, write: &WriteContext<'a>, shard: &'a ShardKey) -> LeaseRequest<'a> {
        LeaseRequest {
            integration: &self.integration.meta().name,
            shard,
            run: &self.request.run,
            read: write.read,
            write: write.permit,
        }
    }

    /// Decides whether a shard whose lease another run holds waits until the lease expires. If it does not wait, the
    /// fault is recorded.
    pub(super) fn waits_for_lease(
        shard: &ActiveShard<'_>,
        holder: &LeaseHolder,
        outcome: &mut RunOutcome,
    ) -> bool {
        let waits = holder.liveness == HolderLiveness::Unknown && shard.rounds < MAX_ROUNDS;
        if !waits {
            report_holder(&shard.key, holder, outcome);
        }
        waits
    }

    /// Waits until leases expire or are released and returns the shards that can be planned again. A fault is
    /// recorded for each of the other shards, because its lease was renewed or newer data is available. After a
    /// shutdown request, no shards are returned.
    pub(super) async fn await_leases<'w>(
        &self,
        held: Vec<HeldShard<'w>>,
        outcome: &mut RunOutcome,
    ) -> Vec<ActiveShard<'w>> {
        let Some(permit) = &self.permits.write else { return Vec::new() };
        let write =
            WriteContext { permit, read: &self.permits.read, run: &self.request.run, now: self.request.now };
        let _activity = activity::begin(format!("wait for {}", pluralize(held.len(), "lease")));
        let waits =
            held.iter().map(|held| self.request.leases.wait(self.lease_request(&write, &held.shard.key)));
        let waited = tokio::select! {
            waited = join_all(waits) => waited,
            () = self.request.shutdown.requested() => return Vec::new(),
            () = self.request.newer_data_available() => held.iter().map(|held| Err(held.holder.clone())).collect(),
        };
        let mut free = Vec::new();
        for (HeldShard { mut shard, .. }, waited) in held.into_iter().zip(waited) {
            match waited {
                Ok(()) => {
                    // The former holder may have changed the target since the shard was planned, so the shard is
                    // planned again.
                    shard.pass = Pass::Round;
                    free.push(shard);
                }
                Err(holder) => report_holder(&shard.key, &holder, outcome),
            }
        }
        free
    }
}

/// The redacted steps of a shard that are not held; `None` if all steps are held.
fn intended_round(judged: &JudgedShard<'_, PlannedShard>) -> Option<IntendedRound> {
    let planned = judged.shard();
    let (mut steps, mut places) = (Vec::new(), Vec::new());
    for (group_index, group) in judged.groups().iter().enumerate() {
        for (step_index, step) in group.steps().iter().enumerate() {
            let Some(permitted) = step.permitted() else { continue };
            let digest = planned.outline.digest_of(|group, step| (group, step) == (group_index, step_index));
            places.extend(permitted.changes.iter().filter_map(|change| change.place.clone()));
            let changes = permitted.changes.iter().map(|change| planned.redactor.change(change.clone()));
            let changes = changes.map(|change| IntendedChange::from(&change)).collect();
            steps.push(IntendedStep { digest, changes });
        }
    }
    (!steps.is_empty()).then(|| IntendedRound { shard: planned.key.clone(), steps, places })
}

fn report_holder(key: &ShardKey, holder: &LeaseHolder, outcome: &mut RunOutcome) {
    if let Some(shard) = outcome.shards.get_mut(key) {
        shard.faults.push(holder.fault(key));
    }
}
