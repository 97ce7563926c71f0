//! Applies a plan, stage by stage.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use super::redaction::ShardRedactor;
use crate::audit::WriteRecord;
use crate::contract::{ApplyResult, WriteContext};
use crate::deadline::with_deadline;
use crate::fault::Fault;
use crate::guard::{JudgedGroup, JudgedShard, JudgedStep, PlannedSteps};
use crate::key::{Scope, ShardKey};
use crate::lease::{Lease, LeaseLoss};
use crate::plan::{Change, ObjectKey, StepResult};
use crate::run_request::{RunLimits, RunRequest};
use crate::step_effect::{result_of, until_forced};
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
    /// Number of postponed removals in each scope. They were postponed because a write failed that may create the
    /// replacement of the removed object.
    pub skipped: BTreeMap<Scope, usize>,
    /// The reason why the lease of the shard was lost before all steps were started.
    pub lost: Option<LeaseLoss>,
}

/// The writes of a shard that failed or were not completed.
#[derive(Debug, Default)]
pub struct FailedWrites(BTreeSet<ObjectKey>);

impl FailedWrites {
    /// Whether a failed write may be the replacement of this object.
    fn may_replace(&self, object: &ObjectKey) -> bool {
        self.0.iter().any(|failed| failed.may_replace(object))
    }
}

/// The context for applying the steps of one shard.
pub struct ApplyContext<'r> {
    /// The integration that applies the steps.
    pub integration: &'r dyn DynIntegration,
    /// The write context.
    pub write: &'r WriteContext<'r>,
    /// The input of the run.
    pub request: &'r RunRequest,
    /// Timeout and concurrency limits.
    pub limits: RunLimits,
    /// Redacts the shard's secrets from reports.
    pub redactor: &'r ShardRedactor,
    /// The lease of the shard. Its fence is checked before each step.
    pub lease: &'r dyn Lease,
}

/// Applies the steps that are not held. The stages are applied in order, and the groups of a stage concurrently.
///
/// **Invariant:** after a write in a scope has failed, nothing is removed from the scope, and no object of a
/// different kind with the same name is removed, because the failed write may create the replacement of a
/// removed object (`no_removal_follows_a_failed_write_in_its_scope`). An object that the data explicitly
/// deletes is still removed. If the plan itself refuses a write, guards postpone the removals of the objects
/// that the write may replace.
pub async fn apply_plan<S: PlannedSteps<Action = OpaqueValue>>(
    context: ApplyContext<'_>,
    judged: &JudgedShard<'_, S>,
) -> ApplyOutcome {
    let shard = ShardSteps { key: judged.shard().key(), deletes: &judged.shard().facts().deletes };
    let mut groups: Vec<&JudgedGroup<'_, OpaqueValue>> = judged.groups().iter().collect();
    groups.sort_by_key(|group| group.stage());
    let mut done = ApplyOutcome::default();
    for stage in groups.chunk_by(|one, next| one.stage() == next.stage()) {
        let mut pending: Vec<BoxFuture<'_, _>> = Vec::new();
        for group in stage {
            pending.push(apply_group(&context, shard, group, &done.failed).boxed());
        }
        let mut each = futures_util::stream::iter(pending).buffered(context.limits.max_groups.max(1));
        let mut of_stage = Vec::new();
        while let Some(of_group) = each.next().await {
            of_stage.push(of_group);
        }
        drop(each);
        for mut of_group in of_stage {
            done.failed.0.append(&mut of_group.failed.0);
            for (scope, count) in of_group.skipped {
                *done.skipped.entry(scope).or_default() += count;
            }
            done.applied += of_group.applied;
            done.stale |= of_group.stale;
            done.stopped |= of_group.stopped;
            done.lost = done.lost.or(of_group.lost);
            done.faults.append(&mut of_group.faults);
            done.results.append(&mut of_group.results);
        }
    }
    done
}

/// The shard to which a group of steps belongs.
#[derive(Clone, Copy)]
struct ShardSteps<'s> {
    key: &'s ShardKey,
    /// The objects that the data explicitly deletes.
    deletes: &'s BTreeSet<ObjectKey>,
}

/// Applies the steps of a group in order and stops at the first failed or stale step.
async fn apply_group(
    context: &ApplyContext<'_>,
    shard: ShardSteps<'_>,
    group: &JudgedGroup<'_, OpaqueValue>,
    failed: &FailedWrites,
) -> ApplyOutcome {
    let ApplyContext { integration, write, request, limits, redactor, lease } = *context;
    let ShardSteps { key, deletes } = shard;
    let mut done = ApplyOutcome::default();
    for step in group.steps().iter().filter_map(JudgedStep::permitted) {
        let is_postponed = |change: &&Change| {
            change.kind.removes() && failed.may_replace(&change.object) && !deletes.contains(&change.object)
        };
        if let Some(change) = step.changes.iter().find(is_postponed) {
            *done.skipped.entry(change.object.scope.clone()).or_default() += 1;
            // The following steps of the group depend on this step.
            break;
        }
        let changes: Vec<Change> =
            step.changes.iter().map(|change| redactor.change(change.clone())).collect();
        let what =
            changes.first().map_or_else(|| redactor.text(group.name().to_owned()), ToString::to_string);
        if let Err(loss) = lease.check() {
            done.lost = Some(loss);
            break;
        }
        let Some(in_progress) = request.shutdown.begin_long_step(&what, limits.shutdown_timeout) else {
            done.stopped = true;
            break;
        };
        let _activity = activity::phase("apply", what.clone());
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
        if !matches!(applied, Ok(ApplyResult::Done)) {
            done.failed.0.extend(step.changes.iter().map(|change| change.object.clone()));
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

fn is_interrupted<T>(applied: &Result<T, Fault>) -> bool {
    applied.as_ref().is_err_and(|fault| fault.is_interrupted)
}
