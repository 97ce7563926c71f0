//! Rounds of observe → plan → guard → apply. Guards see the whole plan, because all shards are planned before any
//! step is applied.
//!
//! A *pass* over a shard is either a round or, while the run waits for an operation in the target, an observation. An
//! observation plans like a round and applies the steps that have become possible, but it does not count as a round
//! and does not resolve the desired state again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_access::{Mode, Permits};
use qontract_diagnostics::pluralize;
use qontract_telemetry::activity;
use qontract_telemetry::measure::Measurement;
use tokio::time::Instant;

use super::apply::ApplyOutcome;
use super::orphaned_shard::{OrphanedShard, SuspectError};
use super::planned_shard::{PlannedShard, record_plan};
use super::rehearsal;
use super::renamed_target::{ObservedObjects, TargetComparison};
use super::selection::ShardSelection;
use super::shard_lease::{HeldShard, LeasedApply};
use super::unresolved::{UNCHANGED, Unresolved};
use super::waiting::{NextPass, WaitBudget};
use crate::contract::{ReadContext, WriteContext};
use crate::data::Data;
use crate::deadline::with_deadline;
use crate::fault::{Fault, Responsible};
use crate::guard::{JudgedShard, ShardFacts, ShardPlans};
use crate::key::ShardKey;
use crate::lease::{LeaseHolder, warn_unavailable};
use crate::meta::{MAX_ROUNDS, Resolution};
use crate::outcome::{RunOutcome, ShardOutcome, ShardState};
use crate::plan::{PlanOutline, set_result};
use crate::recording::{DeclaringSide, RecordedShard};
use crate::redaction::ShardRedactor;
use crate::replay::{RecordedPlan, drop_empty_steps, finish_recording, record_shard};
use crate::reservation::Reservations;
use crate::round_cache::RoundCache;
use crate::run_request::{RunLimits, RunRequest};
use crate::secrets::{SecretLookup, ShardSecrets};
use crate::trust::AddressTrust;
use crate::type_erasure::{
    AnyCurrentState, AnyDeclaredState, AnyDesiredState, DesiredFact, DesiredKind, DynIntegration,
};
use crate::unplanned::{AFTER_MERGE, UnplannedItem};

/// Runs the rounds over all shards of one run.
pub struct RoundRunner<'r> {
    /// The start time of the run on the monotonic clock.
    pub started: Instant,
    /// Timeout and concurrency limits, adjusted by those that the integration sets.
    pub limits: RunLimits,
    /// The data before a proposed change.
    pub base: Option<&'r Data>,
    /// The integration that runs.
    pub integration: &'r dyn DynIntegration,
    /// The input of the run.
    pub request: &'r RunRequest,
    /// The data of head.
    pub data: &'r Data,
    /// The permits of the run.
    pub permits: &'r Permits,
    /// Judges the plans and reserves removals in the ledger.
    pub reservations: Reservations<'r>,
}

/// A shard that still takes part in the rounds.
pub(super) struct ActiveShard<'w> {
    pub(super) key: ShardKey,
    pub(super) declared: &'w dyn AnyDeclaredState,
    desired: Option<AnyDesiredState>,
    /// The first plan of the shard in this run.
    first_plan: Option<Arc<PlanOutline>>,
    /// Whether the shard exists only in base, so that its desired state is empty.
    pub(super) is_orphan: bool,
    /// The reason why nothing of the shard may be changed.
    postponed: Option<String>,
    pub(super) secrets: ShardSecrets,
    pub(super) trust: AddressTrust,
    /// Number of rounds so far.
    pub(super) rounds: u32,
    /// The kind of the shard's next pass.
    pub(super) pass: Pass,
}

/// The kind of a pass over a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// The pass is a round.
    Round,
    /// The pass is an observation of an operation that the run waits for.
    Observation,
}

/// The outcome of a pass over a shard.
#[derive(Debug, Default)]
pub(super) struct PassOutcome {
    /// Number of applied steps.
    pub(super) applied: usize,
    /// Whether a step was stale: the target changed since it was planned.
    pub(super) stale: bool,
    /// Whether the pass had a fault.
    pub(super) failed: bool,
    /// Whether the plan has operations in progress that the run waits for.
    pub(super) waits: bool,
    /// The lease of the shard.
    pub(super) lease: PassLease,
}

/// The lease of a shard in a pass.
#[derive(Debug, Default)]
pub(super) enum PassLease {
    /// The steps were applied under the lease, or no lease was needed.
    #[default]
    Sufficient,
    /// Nothing was applied, because another run holds the lease.
    Held(LeaseHolder),
    /// The lease was lost before all steps were started.
    Lost,
}

impl RoundRunner<'_> {
    /// Runs rounds until no shard needs another round and waits for operations in progress.
    pub async fn run_rounds(&self, work: ShardSelection, outcome: &mut RunOutcome) {
        let mut live = self.activate(&work, outcome);
        let mut waiting: Vec<ActiveShard<'_>> = Vec::new();
        let mut held: Vec<HeldShard<'_>> = Vec::new();
        let mut comparison = TargetComparison::new(&work);
        let mut patience = WaitBudget::new(self.patience(), self.request);
        loop {
            let passes = self.run_pass(&mut live, &mut comparison, outcome).await;
            // The interruption is reported only by the end state of the run.
            if self.request.shutdown.is_requested() {
                return;
            }
            let mut rounds = Vec::new();
            for mut shard in live {
                let Some(pass) = passes.get(&shard.key) else { continue };
                if let PassLease::Held(holder) = &pass.lease {
                    if Self::waits_for_lease(&shard, holder, outcome) {
                        held.push(HeldShard { shard, holder: holder.clone() });
                    }
                    continue;
                }
                match self.next_pass(&shard, pass) {
                    NextPass::Round => {
                        shard.pass = Pass::Round;
                        rounds.push(shard);
                    }
                    NextPass::Observation => {
                        shard.pass = Pass::Observation;
                        waiting.push(shard);
                    }
                    NextPass::Stale => {
                        let fault = Fault::remote(format!(
                            "`{}` was modified concurrently in all {MAX_ROUNDS} rounds; the next run plans it again",
                            shard.key
                        ));
                        outcome.shards.entry(shard.key).and_modify(|shard| shard.faults.push(fault));
                    }
                    NextPass::None => {}
                }
            }
            if rounds.is_empty() && !held.is_empty() {
                rounds = self.await_leases(std::mem::take(&mut held), outcome).await;
            }
            if rounds.is_empty() {
                if waiting.is_empty() || !patience.pause(&waiting, outcome).await {
                    return;
                }
                rounds = std::mem::take(&mut waiting);
            }
            live = rounds;
        }
    }

    /// The shards of the run, before their first round.
    pub(super) fn activate<'w>(
        &self,
        work: &'w ShardSelection,
        outcome: &mut RunOutcome,
    ) -> Vec<ActiveShard<'w>> {
        let ShardSelection { head, base, keys, orphans, trust } = work;
        let mut live = Vec::new();
        let active = |key: &ShardKey, declared, is_orphan, secrets| ActiveShard {
            key: key.clone(),
            declared,
            desired: None,
            first_plan: None,
            is_orphan,
            postponed: None,
            secrets,
            trust: trust.clone(),
            rounds: 0,
            pass: Pass::Round,
        };
        let elsewhere = self.all_secrets(base.as_deref());
        for key in keys {
            let Some(declared) = head.as_deref() else { continue };
            outcome.shards.insert(key.clone(), ShardOutcome::new(ShardState::Ran));
            let secrets = self.allowed_secrets(base.as_deref(), key).with_elsewhere(Arc::clone(&elsewhere));
            live.push(active(key, declared, false, secrets));
        }
        for OrphanedShard { key, suspect } in orphans {
            let Some(declared) = base.as_deref() else { continue };
            let shard = active(key, declared, true, ShardSecrets::default());
            let (reported, postponed) = match suspect {
                None => (ShardOutcome::new(ShardState::Orphaned), None),
                Some(error) => (postponed_shard(key, error), Some(error.reason())),
            };
            outcome.shards.insert(key.clone(), reported);
            live.push(ActiveShard { postponed, ..shard });
        }
        live
    }

    /// The secrets that a shard may read: in a dry run with a base, only the secrets that base names for the shard.
    fn allowed_secrets(&self, base: Option<&dyn AnyDeclaredState>, key: &ShardKey) -> ShardSecrets {
        if !self.request.distrusts_head() {
            return ShardSecrets::default();
        }
        // If the state of base cannot be declared, no secret may be read.
        ShardSecrets::only(base.map(|base| self.integration.secret_lookups(base, key)).unwrap_or_default())
    }

    /// The secrets that base names for any shard, in a dry run with a base.
    fn all_secrets(&self, base: Option<&dyn AnyDeclaredState>) -> Arc<BTreeSet<SecretLookup>> {
        let Some(base) = base.filter(|_| self.request.distrusts_head()) else { return Arc::default() };
        let keys = base.keys().into_iter();
        Arc::new(keys.flat_map(|key| self.integration.secret_lookups(base, key)).collect())
    }

    /// The context of the reads of a pass, without the secrets and addresses of a shard.
    pub(super) fn read_context(&self) -> ReadContext {
        ReadContext {
            permit: self.permits.read.clone(),
            data: self.data.clone(),
            base: self.base.cloned(),
            cache: RoundCache::default(),
            now: self.request.time_after(self.started.elapsed()),
            secrets: ShardSecrets::default(),
            trust: AddressTrust::default(),
        }
    }

    /// Runs one pass over the shards and returns the outcome of each shard.
    async fn run_pass(
        &self,
        live: &mut [ActiveShard<'_>],
        comparison: &mut TargetComparison,
        outcome: &mut RunOutcome,
    ) -> BTreeMap<ShardKey, PassOutcome> {
        let read = &self.read_context();
        let mut ready = self.plan_shards(read, live, outcome).await;
        self.record_inputs(&mut ready);
        if self.request.shutdown.is_requested() {
            // Removals that will not be applied must not be reserved.
            return BTreeMap::new();
        }
        comparison.mark_kept(&mut ready);
        let judged = self.reservations.judge_and_reserve(&ready).await;
        for shard in &judged {
            let planned = shard.shard();
            let Some(reported) = outcome.shards.get_mut(&planned.key) else { continue };
            record_plan(reported, shard);
            self.record_rollouts(reported, planned);
        }
        let Some(permit) = &self.permits.write else {
            tokio::select! {
                () = self.rehearse(read, &judged, outcome) => {}
                () = self.request.shutdown.requested() => {}
            }
            return BTreeMap::new();
        };
        let write = WriteContext { permit, read: &self.permits.read, run: &self.request.run, now: read.now };
        self.apply(&write, &judged, outcome).await
    }

    /// Records the inputs of the first plan of each shard, before any of the plans is applied.
    fn record_inputs(&self, planned: &mut [PlannedShard]) {
        let Some(recorder) = &self.request.inputs else { return };
        let recorded: Vec<RecordedShard> =
            planned.iter_mut().filter_map(|shard| shard.recorded.take()).collect();
        if !recorded.is_empty() {
            let has_steps = planned.iter().any(|shard| !shard.plan.groups.is_empty());
            let applies_steps = has_steps && self.request.mode == Mode::Real;
            finish_recording(recorder, &self.integration.meta().name, self.request, recorded, applies_steps);
        }
    }

    /// Plans the shards concurrently and returns the shards that could be planned, in order of their keys.
    async fn plan_shards(
        &self,
        read: &ReadContext,
        live: &mut [ActiveShard<'_>],
        outcome: &mut RunOutcome,
    ) -> Vec<PlannedShard> {
        let mut planning: Vec<BoxFuture<'_, _>> = Vec::new();
        for shard in live.iter_mut() {
            let key = shard.key.clone();
            self.begin_pass(shard, outcome);
            let planned = measured(key.clone(), self.redacted_plan(read, shard));
            planning.push(planned.map(|planned| (key, planned)).boxed());
        }
        let width = self.limits.max_shards.max(1);
        let mut planned: Vec<(ShardKey, Result<PlannedShard, Fault>)> =
            futures_util::stream::iter(planning).buffer_unordered(width).collect().await;
        planned.sort_by(|a, b| a.0.cmp(&b.0));
        let mut ready = Vec::new();
        for (key, result) in planned {
            let Some(shard) = outcome.shards.get_mut(&key) else { continue };
            match result {
                Ok(planned) => ready.push(planned),
                Err(fault) if fault.is_interrupted => {}
                Err(fault) => shard.faults.push(fault),
            }
        }
        ready
    }

    /// Applies the steps that are not held and records the results of these steps.
    async fn apply(
        &self,
        write: &WriteContext<'_>,
        judged: &[JudgedShard<'_, PlannedShard>],
        outcome: &mut RunOutcome,
    ) -> BTreeMap<ShardKey, PassOutcome> {
        let mut applying: Vec<BoxFuture<'_, _>> = Vec::new();
        for shard in judged {
            let planned = shard.shard();
            let applied = measured(planned.key.clone(), self.apply_leased(write, shard));
            applying.push(applied.map(move |done| (planned, done)).boxed());
        }
        let width = self.limits.max_shards.max(1);
        let done: Vec<(&PlannedShard, LeasedApply)> =
            futures_util::stream::iter(applying).buffer_unordered(width).collect().await;
        let mut passes = BTreeMap::new();
        for (planned, done) in done {
            let Some(shard) = outcome.shards.get_mut(&planned.key) else { continue };
            let done = match done {
                LeasedApply::Applied(done) => done,
                LeasedApply::Unleased(done, reason) => {
                    warn_unavailable(&mut outcome.warnings, &reason);
                    done
                }
                LeasedApply::Held(holder) => {
                    let lease = PassLease::Held(holder);
                    let pass = PassOutcome { failed: true, lease, ..PassOutcome::default() };
                    passes.insert(planned.key.clone(), pass);
                    continue;
                }
            };
            let ApplyOutcome { applied, stale, stopped: _, mut faults, results, failed: _, skipped, lost } =
                done;
            let lease = if lost.is_some() { PassLease::Lost } else { PassLease::Sufficient };
            faults.extend(lost.map(|loss| loss.fault(&planned.key)));
            for (scope, count) in skipped {
                let removals = pluralize(count, "removal");
                let text = format!(
                    "{removals} in `{scope}` postponed: a write that may replace them did not succeed"
                );
                shard.notes.push(planned.redactor.text(text));
            }
            let failed = !faults.is_empty() || !planned.faults.is_empty() || self.has_failed_rollout(planned);
            shard.applied += applied;
            shard.faults.append(&mut faults);
            for (change, result) in results {
                set_result(&mut shard.changes, &change, result);
            }
            let waits = !shard.waits.is_empty();
            let pass = PassOutcome { applied, stale, failed, waits, lease };
            passes.insert(planned.key.clone(), pass);
        }
        passes
    }

    /// Counts the pass and drops the desired state if this round resolves it again.
    fn begin_pass(&self, shard: &mut ActiveShard<'_>, outcome: &mut RunOutcome) {
        let Some(reported) = outcome.shards.get_mut(&shard.key) else { return };
        match shard.pass {
            Pass::Round => {
                shard.rounds += 1;
                reported.rounds += 1;
                if self.integration.meta().resolution == Resolution::EachRound {
                    shard.desired = None;
                }
            }
            Pass::Observation => reported.observations += 1,
        }
        if shard.is_orphan {
            shard.desired.get_or_insert_with(|| self.integration.nothing_desired());
        }
    }

    /// Plans a shard and redacts the secrets that it has read so far.
    async fn redacted_plan(
        &self,
        read: &ReadContext,
        shard: &mut ActiveShard<'_>,
    ) -> Result<PlannedShard, Fault> {
        let (secrets, declared, key) = (shard.secrets.clone(), shard.declared, shard.key.clone());
        let read = &ReadContext { secrets: secrets.clone(), trust: shard.trust.clone(), ..read.clone() };
        let planning = async {
            tokio::select! {
                biased;
                planned = self.plan_shard(read, shard) => planned,
                // Planning does not change the target, so a shutdown does not wait for it.
                () = self.request.shutdown.requested() => Err(Fault::interrupted("interrupted")),
            }
        };
        let planned = with_deadline(self.limits.phase_timeout * 3, "planning", planning).await;
        let redactor = ShardRedactor::new(secrets.redactor(|| self.integration.public_texts(declared, &key)));
        match planned {
            Ok(mut planned) => {
                let outline = Arc::new(redactor.redact_diffs(&mut planned.plan));
                planned.facts.plans = match &shard.first_plan {
                    None => ShardPlans::first(outline.digest()),
                    Some(first) => {
                        ShardPlans::later(outline.digest(), first.digest(), outline.equal_removals(first))
                    }
                };
                if let (Some(recorder), None) = (&self.request.inputs, &shard.first_plan) {
                    let plan = RecordedPlan {
                        integration: self.integration,
                        key: &key,
                        declared,
                        side: if shard.is_orphan { DeclaringSide::Base } else { DeclaringSide::Head },
                        secrets: &secrets,
                        planned_at: planned.planned_at,
                        plan_digest: outline.digest(),
                    };
                    let inputs = planned.inputs.take();
                    planned.recorded = Some(record_shard(recorder, plan, inputs, &redactor));
                }
                shard.first_plan.get_or_insert_with(|| Arc::clone(&outline));
                Ok(PlannedShard { outline, redactor, ..planned })
            }
            Err(fault) => Err(redactor.fault(fault)),
        }
    }

    async fn plan_shard(
        &self,
        read: &ReadContext,
        shard: &mut ActiveShard<'_>,
    ) -> Result<PlannedShard, Fault> {
        let (phase, key, declared) = (self.limits.phase_timeout, &shard.key, shard.declared);
        let desired = if let Some(desired) = shard.desired.take() {
            desired
        } else {
            let _activity = activity::phase("resolve", format!("resolve `{key}`"));
            with_deadline(phase, "resolve", self.integration.resolve(read, declared, key)).await?
        };
        let current = {
            let _activity = activity::phase("observe", format!("observe `{key}`"));
            let observing = self.integration.observe(read, declared, key, &desired);
            with_deadline(phase, "observe", activity::in_shard(key.to_string(), observing)).await?
        };
        let _activity = activity::phase("plan", format!("plan `{key}`"));
        let (consent, postponed) = (declared.consent(key), shard.postponed.clone());
        let (mut facts, mut unresolved) =
            (ShardFacts { consent, postponed, ..ShardFacts::default() }, Unresolved::default());
        let mut unapproved = Unresolved::default();
        let (mut faults, mut unread) = (Vec::new(), Vec::new());
        for (scope, count) in &current.scopes {
            match count {
                Ok(count) => {
                    facts.counts.insert(scope.clone(), *count);
                }
                // A scope at an address that is not approved yet is reported as not planned, not as a failure.
                Err(fault) if fault.whose == Responsible::Guard => {
                    facts.blocked.insert(scope.clone(), format!("`{scope}` was not read"));
                    let text = format!("`{scope}`: {}; {AFTER_MERGE}", fault.text);
                    unread.push(UnplannedItem { places: fault.places.clone(), ..UnplannedItem::new(text) });
                }
                Err(fault) => {
                    facts.blocked.insert(scope.clone(), format!("`{scope}` could not be read"));
                    faults.push(fault.clone().while_reading(scope));
                }
            }
        }
        for DesiredFact { object, place, kind } in desired.facts.iter().chain(&current.facts) {
            match kind {
                DesiredKind::Present => {
                    if object.scope.caller().is_some() {
                        facts.declared.insert(object.without_caller());
                    }
                }
                DesiredKind::Delete => {
                    facts.deletes.insert(object.clone());
                }
                DesiredKind::Approved => {
                    facts.approved.insert(object.clone());
                }
                DesiredKind::Unresolved(fault) => {
                    let why = format!("the desired state of {object} is unknown");
                    facts.blocked.insert(object.scope.clone(), why);
                    // An object whose input is not approved yet is reported as not planned, not as a failure.
                    let list =
                        if fault.whose == Responsible::Guard { &mut unapproved } else { &mut unresolved };
                    list.add(object, place.as_ref(), fault);
                }
            }
        }
        block_unattributed(&mut facts, &current);
        faults.extend(unresolved.into_faults(UNCHANGED));
        let unplanned = unapproved.into_unplanned().chain(unread).collect();
        let mut plan = self.integration.plan(&desired, &current);
        let recorder = self.request.inputs.as_ref().filter(|_| shard.first_plan.is_none());
        let inputs = recorder
            .and_then(|recorder| self.integration.record_inputs(&desired, &current, recorder.fingerprints()));
        faults.append(&mut plan.faults);
        facts.refused = std::mem::take(&mut plan.refused);
        for group in drop_empty_steps(&mut plan) {
            faults.push(Fault::internal(format!("a step of `{group}` lists no changes")));
        }
        shard.desired = Some(desired);
        let (redactor, mode, bodies) = (ShardRedactor::default(), self.request.mode, self.request.bodies);
        if mode == Mode::DryRun {
            plan.drop_secret_losses();
        }
        let key = key.clone();
        let (outline, planned_at) = (Arc::default(), read.now);
        let is_complete = current.scopes.values().all(Result::is_ok);
        let observed = ObservedObjects { incarnations: current.incarnations, is_complete };
        Ok(PlannedShard {
            key,
            plan,
            outline,
            planned_at,
            facts,
            observed,
            faults,
            unplanned,
            redactor,
            mode,
            bodies,
            inputs,
            recorded: None,
        })
    }

    /// Rehearses the steps that are not held.
    async fn rehearse(
        &self,
        read: &ReadContext,
        judged: &[JudgedShard<'_, PlannedShard>],
        outcome: &mut RunOutcome,
    ) {
        let width = self.limits.max_shards.max(1);
        let mut rehearsing: Vec<BoxFuture<'_, _>> = Vec::new();
        for shard in judged {
            let planned = shard.shard();
            let report = rehearsal::rehearse_plan(self.integration, read, shard, self.limits);
            let report = report.map(|report| (&planned.key, report.redacted(&planned.redactor)));
            rehearsing.push(report.boxed());
        }
        let mut reports: Vec<_> =
            futures_util::stream::iter(rehearsing).buffer_unordered(width).collect().await;
        reports.sort_by(|a, b| a.0.cmp(b.0));
        for (key, rehearsal::RehearsalReport { mut notes, mut faults }) in reports {
            let Some(shard) = outcome.shards.get_mut(key) else { continue };
            shard.notes.append(&mut notes);
            shard.faults.append(&mut faults);
        }
    }
}

/// The outcome of a shard whose removals are postponed because of an error. The run fails because of the error,
/// so that a later run compares with the same base again.
fn postponed_shard(key: &ShardKey, error: &SuspectError) -> ShardOutcome {
    let mut shard = ShardOutcome::new(ShardState::Postponed);
    let reason = error.reason();
    if error.is_reported {
        shard.notes.push(format!("nothing of `{key}` is removed: {reason}"));
    } else {
        let places = error.fault.places.clone();
        shard
            .faults
            .push(Fault { places, ..Fault::author(format!("nothing of `{key}` is removed: {reason}")) });
    }
    shard
}

/// Blocks all removals of the shard if an unresolved object belongs to no scope that was read. The kind or the scope
/// of this object may be misspelt, so any object of the shard may be the intended one.
fn block_unattributed(facts: &mut ShardFacts, current: &AnyCurrentState) {
    let unattributed = facts.blocked.iter().find(|(scope, _)| !current.scopes.contains_key(scope));
    let Some(why) = unattributed.map(|(_, why)| why.clone()) else { return };
    for scope in current.scopes.keys() {
        facts.blocked.entry(scope.clone()).or_insert_with(|| why.clone());
    }
}

/// Measures the time that a run spends on a shard in one phase.
async fn measured<T>(key: ShardKey, phase: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let result = phase.await;
    let dimensions = key.parts().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    activity::record_measurement(Measurement::Shard { dimensions, took: begun.elapsed() });
    result
}
