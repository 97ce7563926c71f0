//! Applies a plan, stage by stage.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use super::deadline::with_deadline;
use super::redaction::ShardRedactor;
use super::{RunLimits, RunRequest};
use crate::audit::{StepAttempt, WriteRecord};
use crate::contract::{ApplyResult, WriteContext};
use crate::fault::Fault;
use crate::guard::Refusal;
use crate::key::{Scope, ShardKey};
use crate::plan::{Change, ObjectKey, Plan, StepGroup, StepResult};
use crate::reconcile_loop::ShutdownSignal;
use crate::type_erasure::{DynIntegration, OpaqueValue};
use qontract_telemetry::activity;

/// The outcome of applying a plan or a group.
#[derive(Debug, Default)]
pub struct ApplyOutcome {
    /// Number of applied steps.
    pub applied: usize,
    /// Whether a step was stale: the target changed since it was planned.
    pub stale: bool,
    /// Whether a step was not started because a shutdown was requested.
    pub stopped: bool,
    /// The faults of failed steps.
    pub faults: Vec<Fault>,
    /// The result of each attempted change.
    pub results: Vec<(Change, StepResult)>,
    /// The writes that failed or were not completed.
    pub failed: FailedWrites,
    /// Number of removals that were postponed, by scope, because a write that may replace them failed.
    pub skipped: BTreeMap<Scope, usize>,
}

/// The writes of a shard that failed or were not completed.
#[derive(Debug, Default)]
pub struct FailedWrites {
    scopes: BTreeSet<Scope>,
    /// The names of the objects. A write may replace an object of another kind that has the same name.
    names: BTreeSet<String>,
}

impl FailedWrites {
    /// Whether a failed write may be the replacement of this object.
    fn may_replace(&self, object: &ObjectKey) -> bool {
        self.scopes.contains(&object.scope) || self.names.contains(&object.name)
    }
}

/// The context for applying the steps of one shard.
pub struct ApplyContext<'r> {
    /// The integration.
    pub integration: &'r dyn DynIntegration,
    /// The write context.
    pub write: &'r WriteContext<'r>,
    /// The key of the shard.
    pub key: &'r ShardKey,
    /// The input of the run.
    pub request: &'r RunRequest,
    /// Timeout and concurrency limits.
    pub limits: RunLimits,
    /// Redacts the shard's secrets from reports.
    pub redactor: &'r ShardRedactor,
    /// The objects that the data explicitly deletes.
    pub deletes: &'r BTreeSet<ObjectKey>,
}

/// Applies the steps that are not held. The groups of a stage are applied concurrently, the stages
/// sequentially.
///
/// **Invariant:** after a write in a scope has failed, nothing is removed from the scope, nor is an object of
/// another kind with the same name, because the write may replace an object that is removed
/// (`no_removal_follows_a_failed_write_in_its_scope`). An object that the data explicitly deletes is removed
/// anyway.
pub async fn apply_plan(
    context: ApplyContext<'_>,
    plan: &Plan<OpaqueValue>,
    verdict: &[Option<Refusal>],
) -> ApplyOutcome {
    let mut rest = verdict;
    let mut groups = Vec::new();
    for group in &plan.groups {
        let (own, others) = rest.split_at(group.steps.len().min(rest.len()));
        groups.push((group, own));
        rest = others;
    }
    groups.sort_by_key(|(group, _)| group.stage);
    let mut done = ApplyOutcome::default();
    for stage in groups.chunk_by(|(one, _), (next, _)| one.stage == next.stage) {
        let mut pending: Vec<BoxFuture<'_, _>> = Vec::new();
        for (group, verdicts) in stage {
            pending.push(apply_group(&context, group, verdicts, &done.failed).boxed());
        }
        let mut each = futures_util::stream::iter(pending).buffered(context.limits.max_groups.max(1));
        let mut of_stage = Vec::new();
        while let Some(of_group) = each.next().await {
            of_stage.push(of_group);
        }
        drop(each);
        for mut of_group in of_stage {
            done.failed.scopes.append(&mut of_group.failed.scopes);
            done.failed.names.append(&mut of_group.failed.names);
            for (scope, count) in of_group.skipped {
                *done.skipped.entry(scope).or_default() += count;
            }
            done.applied += of_group.applied;
            done.stale |= of_group.stale;
            done.stopped |= of_group.stopped;
            done.faults.append(&mut of_group.faults);
            done.results.append(&mut of_group.results);
        }
    }
    done
}

/// Applies the steps of a group in order, and stops at the first failed or stale step.
async fn apply_group(
    context: &ApplyContext<'_>,
    group: &StepGroup<OpaqueValue>,
    verdicts: &[Option<Refusal>],
    failed: &FailedWrites,
) -> ApplyOutcome {
    let ApplyContext { integration, write, key, request, limits, redactor, deletes } = *context;
    let mut done = ApplyOutcome::default();
    for (step, _) in group.steps.iter().zip(verdicts).filter(|(_, refusal)| refusal.is_none()) {
        let is_postponed = |change: &&Change| {
            change.kind.removes() && failed.may_replace(&change.object) && !deletes.contains(&change.object)
        };
        if let Some(change) = step.changes.iter().find(is_postponed) {
            *done.skipped.entry(change.object.scope.clone()).or_default() += 1;
            // The steps that follow in the group depend on this one.
            break;
        }
        let changes: Vec<Change> =
            step.changes.iter().map(|change| redactor.change(change.clone())).collect();
        let what = changes.first().map_or_else(|| redactor.text(group.name.clone()), ToString::to_string);
        let Some(in_progress) = request.shutdown.begin_long_step(&what, limits.shutdown_timeout) else {
            done.stopped = true;
            break;
        };
        let _activity = activity::phase("apply", what.clone());
        let attempt = StepAttempt { shard: key, changes: &changes };
        request.audit.begin(&attempt);
        let effect = until_forced(&request.shutdown, integration.apply(write, &step.action));
        let applied = with_deadline(limits.step_timeout, "apply", effect).await;
        if !is_interrupted(&applied) {
            in_progress.finish();
        }
        if !matches!(applied, Ok(ApplyResult::Stale)) {
            let failed = applied.as_ref().err().cloned().map(|fault| redactor.fault(fault));
            let failed = failed.as_ref();
            request.audit.record_write(&WriteRecord {
                run: write.run,
                shard: key,
                changes: &changes,
                fault: failed,
            });
            let result = result_of(&applied);
            done.results.extend(changes.iter().map(|change| (change.clone(), result)));
        }
        request.audit.end(&attempt);
        if !matches!(applied, Ok(ApplyResult::Done)) {
            done.failed.scopes.extend(step.changes.iter().map(|change| change.object.scope.clone()));
            done.failed.names.extend(step.changes.iter().map(|change| change.object.name.clone()));
        }
        match applied {
            Ok(ApplyResult::Done) => done.applied += 1,
            Ok(ApplyResult::Stale) => {
                done.stale = true;
                break;
            }
            Err(fault) => {
                let place = changes.first().and_then(|change| change.place.clone());
                let fault = if fault.is_interrupted {
                    Fault::interrupted(format!("interrupted: {what} may be partially applied"))
                } else {
                    redactor.fault(fault).while_doing(&what)
                };
                done.faults.push(fault.at(place));
                break;
            }
        }
    }
    done
}

/// Runs the effect of a step, and abandons it if a shutdown is forced.
pub(crate) async fn until_forced<T>(
    stop: &ShutdownSignal,
    effect: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::select! {
        biased;
        result = effect => result,
        () = stop.forced() => Err(Fault::interrupted("interrupted; it may be partially applied")),
    }
}

/// The step result of an effect.
pub(crate) fn result_of<T>(applied: &Result<T, Fault>) -> StepResult {
    match applied {
        Ok(_) => StepResult::Done,
        Err(fault) if fault.is_interrupted => StepResult::Interrupted,
        Err(_) => StepResult::Failed,
    }
}

fn is_interrupted<T>(applied: &Result<T, Fault>) -> bool {
    applied.as_ref().is_err_and(|fault| fault.is_interrupted)
}
