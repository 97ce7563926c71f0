//! Applies a plan, stage by stage.

use std::future::Future;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use super::RunRequest;
use super::deadline::with_deadline;
use super::redaction::ShardRedactor;
use crate::audit::{StepAttempt, WriteRecord};
use crate::contract::{ApplyResult, WriteContext};
use crate::fault::Fault;
use crate::guard::Refusal;
use crate::key::ShardKey;
use crate::plan::{Change, Plan, StepGroup, StepResult};
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
    /// Redacts the shard's secrets from reports.
    pub redactor: &'r ShardRedactor,
}

/// Applies the steps that are not held. The groups of a stage are applied concurrently, the stages
/// sequentially.
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
            pending.push(apply_group(&context, group, verdicts).boxed());
        }
        let mut each = futures_util::stream::iter(pending).buffered(context.request.limits.max_groups.max(1));
        while let Some(mut of_group) = each.next().await {
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
) -> ApplyOutcome {
    let ApplyContext { integration, write, key, request, redactor } = *context;
    let mut done = ApplyOutcome::default();
    for (step, _) in group.steps.iter().zip(verdicts).filter(|(_, refusal)| refusal.is_none()) {
        let changes: Vec<Change> =
            step.changes.iter().map(|change| redactor.change(change.clone())).collect();
        let what = changes.first().map_or_else(|| redactor.text(group.name.clone()), ToString::to_string);
        let Some(in_progress) = request.shutdown.begin_step(&what) else {
            done.stopped = true;
            break;
        };
        let _activity = activity::begin(what.clone());
        let attempt = StepAttempt { shard: key, changes: &changes };
        request.audit.begin(&attempt);
        let effect = until_forced(&request.shutdown, integration.apply(write, &step.action));
        let applied = with_deadline(request.limits.phase_timeout, "apply", effect).await;
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
