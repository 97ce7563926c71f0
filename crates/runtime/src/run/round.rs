//! Rounds of observe → plan → guard → apply. All shards are planned before any step is applied, so that the
//! guards see the whole plan.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use qontract_access::{Mode, Permits};
use qontract_telemetry::activity;

use super::apply::{self, ApplyContext, ApplyOutcome};
use super::deadline::with_deadline;
use super::redaction::ShardRedactor;
use super::rehearsal;
use super::reservation::Reservations;
use super::selection::ShardSelection;
use super::unresolved::Unresolved;
use super::{Bodies, RunRequest};
use crate::contract::ReadContext;
use crate::data::Data;
use crate::fault::{Fault, Responsible};
use crate::guard::{Proposal, Refusal, RemovalGuard, ShardFacts, Verdicts};
use crate::key::ShardKey;
use crate::meta::MAX_ROUNDS;
use crate::outcome::{RunOutcome, ShardOutcome, ShardState};
use crate::plan::{Change, ChangeKind, HeldPlanChange, Plan, set_result};
use crate::round_cache::RoundCache;
use crate::secrets::ShardSecrets;
use crate::type_erasure::{AnyDeclaredState, AnyDesiredState, DesiredKind, DynIntegration, OpaqueValue};

/// Runs the rounds over all shards of one run.
pub struct RoundRunner<'r> {
    /// The integration.
    pub integration: &'r dyn DynIntegration,
    /// The input of the run.
    pub request: &'r RunRequest,
    /// The data.
    pub data: &'r Data,
    /// The permits.
    pub permits: &'r Permits,
    /// The guard that judges removals.
    pub guard: &'r RemovalGuard,
}

/// A shard that still takes part in the rounds.
struct ActiveShard<'w> {
    key: ShardKey,
    declared: &'w dyn AnyDeclaredState,
    desired: Option<AnyDesiredState>,
    secrets: ShardSecrets,
}

/// A shard with its plan of one round.
struct PlannedShard {
    plan: Plan<OpaqueValue>,
    facts: ShardFacts,
    faults: Vec<Fault>,
    /// Objects that are not planned because one of their inputs is not approved yet.
    notes: Vec<String>,
    redactor: ShardRedactor,
    mode: Mode,
    bodies: Bodies,
}

impl PlannedShard {
    /// A change for reports: redacted, and with the diff that the mode allows.
    fn reported(&self, change: &Change) -> Change {
        let mut change = self.redactor.change(change.clone());
        if self.mode == Mode::Real && !change.diff_by_name.is_empty() {
            change.diff = std::mem::take(&mut change.diff_by_name);
        }
        if self.bodies == Bodies::Shown && change.kind == ChangeKind::Add && change.diff.is_empty() {
            change.diff = std::mem::take(&mut change.body);
        }
        change
    }
}

impl RoundRunner<'_> {
    /// Runs rounds until no shard needs another one.
    pub async fn run_rounds(&self, work: ShardSelection, outcome: &mut RunOutcome) {
        let ShardSelection { head, base, keys, orphans } = &work;
        let mut live: Vec<ActiveShard<'_>> = Vec::new();
        for key in keys {
            let Some(declared) = head.as_deref() else { continue };
            outcome.shards.insert(key.clone(), ShardOutcome::new(ShardState::Ran));
            let secrets = self.allowed_secrets(base.as_deref(), key);
            live.push(ActiveShard { key: key.clone(), declared, desired: None, secrets });
        }
        for key in orphans {
            let Some(declared) = base.as_deref() else { continue };
            outcome.shards.insert(key.clone(), ShardOutcome::new(ShardState::Orphaned));
            live.push(ActiveShard {
                key: key.clone(),
                declared,
                desired: Some(self.integration.nothing_desired()),
                secrets: ShardSecrets::default(),
            });
        }
        for round in 1..=MAX_ROUNDS {
            let again = self.run_round(&mut live, outcome).await;
            // The end state of the run reports the interruption.
            if self.request.shutdown.is_requested() {
                return;
            }
            let more = round < self.integration.meta().rounds;
            let last = round == MAX_ROUNDS;
            for (key, done) in &again {
                if done.stale && last {
                    let fault = Fault::remote(format!(
                        "`{key}` was modified concurrently in all {MAX_ROUNDS} rounds; the next run plans it again"
                    ));
                    if let Some(shard) = outcome.shards.get_mut(key) {
                        shard.faults.push(fault);
                    }
                }
            }
            live.retain(|shard| {
                again.get(&shard.key).is_some_and(|done| done.stale || (more && done.applied > 0))
            });
            if live.is_empty() || last {
                return;
            }
        }
    }

    /// The secrets that a shard may read: in a dry run with a base, those that base names for it.
    fn allowed_secrets(&self, base: Option<&dyn AnyDeclaredState>, key: &ShardKey) -> ShardSecrets {
        if !self.request.distrusts_head() {
            return ShardSecrets::default();
        }
        // If base cannot be read, it names no secrets, so no secret may be read.
        ShardSecrets::only(base.map(|base| self.integration.secret_lookups(base, key)).unwrap_or_default())
    }

    /// Runs one round and returns the outcome of each shard.
    async fn run_round(
        &self,
        live: &mut [ActiveShard<'_>],
        outcome: &mut RunOutcome,
    ) -> BTreeMap<ShardKey, ApplyOutcome> {
        let width = self.request.limits.max_shards.max(1);
        let (permit, data) = (self.permits.read.clone(), self.data.clone());
        let (memo, today, secrets) = (RoundCache::default(), self.request.today, ShardSecrets::default());
        let read = &ReadContext { permit, data, cache: memo, today, secrets };
        let mut planning: Vec<BoxFuture<'_, _>> = Vec::new();
        for shard in live.iter_mut() {
            let key = shard.key.clone();
            let planned = self.redacted_plan(read, shard);
            planning.push(planned.map(|planned| (key, planned)).boxed());
        }
        let mut planned: Vec<(ShardKey, Result<PlannedShard, Fault>)> =
            futures_util::stream::iter(planning).buffer_unordered(width).collect().await;
        planned.sort_by(|a, b| a.0.cmp(&b.0));
        let mut ready = Vec::new();
        for (key, result) in planned {
            let Some(shard) = outcome.shards.get_mut(&key) else { continue };
            shard.rounds += 1;
            match result {
                Ok(planned) => ready.push((key, planned)),
                Err(fault) if fault.is_interrupted => {}
                Err(fault) => shard.faults.push(fault),
            }
        }
        if self.request.shutdown.is_requested() {
            // Do not reserve removals that will not be applied.
            return BTreeMap::new();
        }
        let verdicts = self.verdicts(&ready).await;
        for ((key, planned), verdict) in ready.iter().zip(&verdicts) {
            let Some(shard) = outcome.shards.get_mut(key) else { continue };
            record_plan(shard, planned, verdict, |change| self.guard.counts(&planned.facts.deletes, change));
        }
        let Some(permit) = &self.permits.write else {
            tokio::select! {
                () = self.rehearse(read, &ready, &verdicts, outcome) => {}
                () = self.request.shutdown.requested() => {}
            }
            return BTreeMap::new();
        };
        let write =
            crate::contract::WriteContext { permit, read: &self.permits.read, run: &self.request.run };
        let mut applying: Vec<BoxFuture<'_, _>> = Vec::new();
        for ((key, planned), verdict) in ready.iter().zip(&verdicts) {
            let redactor = &planned.redactor;
            let hand = ApplyContext {
                integration: self.integration,
                write: &write,
                key,
                request: self.request,
                redactor,
            };
            let done = apply::apply_plan(hand, &planned.plan, verdict);
            applying.push(done.map(|done| (key.clone(), done)).boxed());
        }
        let done: Vec<(ShardKey, ApplyOutcome)> =
            futures_util::stream::iter(applying).buffer_unordered(width).collect().await;
        let mut all = BTreeMap::new();
        for (key, mut done) in done {
            if let Some(shard) = outcome.shards.get_mut(&key) {
                shard.applied += done.applied;
                shard.faults.append(&mut done.faults);
                for (change, result) in std::mem::take(&mut done.results) {
                    set_result(&mut shard.changes, &change, result);
                }
            }
            all.insert(key, done);
        }
        all
    }

    /// Plans a shard, and redacts the secrets that it has read so far.
    async fn redacted_plan(
        &self,
        read: &ReadContext,
        shard: &mut ActiveShard<'_>,
    ) -> Result<PlannedShard, Fault> {
        let (secrets, declared, key) = (shard.secrets.clone(), shard.declared, shard.key.clone());
        let read = &ReadContext { secrets: secrets.clone(), ..read.clone() };
        let planning = async {
            tokio::select! {
                biased;
                planned = self.plan_shard(read, shard) => planned,
                // Planning does not change the target, so a shutdown does not wait for it.
                () = self.request.shutdown.requested() => Err(Fault::interrupted("interrupted")),
            }
        };
        let planned = with_deadline(self.request.limits.phase_timeout * 3, "planning", planning).await;
        let redactor = ShardRedactor::new(secrets.redactor(|| self.integration.public_texts(declared, &key)));
        match planned {
            Ok(mut planned) => {
                redactor.redact_diffs(&mut planned.plan);
                Ok(PlannedShard { redactor, ..planned })
            }
            Err(fault) => Err(redactor.fault(fault)),
        }
    }

    async fn plan_shard(
        &self,
        read: &ReadContext,
        shard: &mut ActiveShard<'_>,
    ) -> Result<PlannedShard, Fault> {
        let (phase, key, declared) = (self.request.limits.phase_timeout, &shard.key, shard.declared);
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
        let (mut facts, mut unresolved) = (ShardFacts::default(), Unresolved::default());
        let mut unapproved = Unresolved::default();
        let mut faults = Vec::new();
        for (scope, count) in &current.scopes {
            match count {
                Ok(count) => {
                    facts.counts.insert(scope.clone(), *count);
                }
                Err(fault) => {
                    facts.blocked.insert(scope.clone(), format!("`{scope}` could not be read"));
                    faults.push(fault.clone().while_doing(&format!("cannot read `{scope}`")));
                }
            }
        }
        for (object, place, kind) in desired.facts.iter().chain(&current.facts) {
            match kind {
                DesiredKind::Present => {}
                DesiredKind::Delete => {
                    facts.deletes.insert(object.clone());
                }
                DesiredKind::Unresolved(fault) => {
                    let why = format!("the desired state of {object} is unknown");
                    facts.blocked.insert(object.scope.clone(), why);
                    // An object that waits for an approval is not planned, which is not a failure.
                    let list =
                        if fault.whose == Responsible::Guard { &mut unapproved } else { &mut unresolved };
                    list.add(object, place.as_ref(), fault);
                }
            }
        }
        faults.extend(unresolved.into_faults());
        let notes = unapproved.into_faults().map(|fault| format!("not planned: {}", fault.text)).collect();
        let mut plan = self.integration.plan(&desired, &current);
        faults.append(&mut plan.faults);
        for group in &mut plan.groups {
            // A step without changes would not be shown in the plan, so it is not applied.
            let before = group.steps.len();
            group.steps.retain(|step| !step.changes.is_empty());
            if group.steps.len() < before {
                faults.push(Fault::internal(format!("a step of `{}` lists no changes", group.name)));
            }
        }
        shard.desired = Some(desired);
        let (redactor, mode, bodies) = (ShardRedactor::default(), self.request.mode, self.request.bodies);
        if mode == Mode::DryRun {
            plan.drop_secret_losses();
        }
        Ok(PlannedShard { plan, facts, faults, notes, redactor, mode, bodies })
    }

    /// Rehearses the steps that are not held.
    async fn rehearse(
        &self,
        read: &ReadContext,
        ready: &[(ShardKey, PlannedShard)],
        verdicts: &[Vec<Option<Refusal>>],
        outcome: &mut RunOutcome,
    ) {
        let width = self.request.limits.max_shards.max(1);
        let mut rehearsing: Vec<BoxFuture<'_, _>> = Vec::new();
        for ((key, planned), verdict) in ready.iter().zip(verdicts) {
            let report =
                rehearsal::rehearse_plan(self.integration, read, &planned.plan, verdict, self.request.limits);
            rehearsing.push(report.map(move |report| (key, report.redacted(&planned.redactor))).boxed());
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

    async fn verdicts(&self, ready: &[(ShardKey, PlannedShard)]) -> Vec<Verdicts> {
        let proposals: Vec<Proposal<'_>> = ready
            .iter()
            .map(|(key, planned)| {
                let steps = planned.plan.groups.iter().flat_map(|group| &group.steps);
                let steps = steps.map(|step| step.changes.as_slice()).collect();
                let groups = planned.plan.groups.iter().map(|group| group.steps.len()).collect();
                Proposal { key, facts: &planned.facts, steps, groups }
            })
            .collect();
        Reservations::new(self.guard, self.request, self.permits).judge(&proposals).await
    }
}

/// Records the plan of a round in the outcome of the shard.
fn record_plan(
    shard: &mut ShardOutcome,
    planned: &PlannedShard,
    verdict: &[Option<Refusal>],
    counts: impl Fn(&Change) -> bool,
) {
    let redactor = &planned.redactor;
    shard.held = planned.plan.held.iter().map(|held| redactor.held(held.clone())).collect();
    shard.waits = planned.plan.waits.iter().map(|wait| redactor.wait(wait.clone())).collect();
    let reported: BTreeSet<String> = shard.faults.iter().map(|fault| fault.text.clone()).collect();
    let faults = planned.faults.iter().map(|fault| redactor.fault(fault.clone()));
    shard.faults.extend(faults.filter(|fault| !reported.contains(&fault.text)));
    let notes = planned.notes.iter().map(|note| redactor.text(note.clone()));
    let notes: Vec<String> = notes.filter(|note| !shard.notes.contains(note)).collect();
    shard.notes.extend(notes);
    let steps = planned.plan.groups.iter().flat_map(|group| &group.steps);
    for (step, refusal) in steps.zip(verdict) {
        for change in &step.changes {
            let Some(refusal) = refusal else {
                shard.removed += usize::from(counts(change));
                // A change that is planned again because it was stale is reported once.
                let change = planned.reported(change);
                if !shard.changes.iter().any(|reported| reported.is_same(&change)) {
                    shard.changes.push(change);
                }
                continue;
            };
            let (change, why) = (planned.reported(change), redactor.text(refusal.why()));
            shard.held.push(HeldPlanChange { change, why, hold: refusal.hold() });
        }
    }
}
