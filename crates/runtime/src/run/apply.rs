//! Applies a plan, stage by stage.

use std::future::Future;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use super::Request;
use super::redact::ShardRedactor;
use super::round::guarded;
use crate::audit::{Attempt, Written};
use crate::contract::{Applied, Write};
use crate::erased::{Dynamic, Opaque};
use crate::fault::Fault;
use crate::guard::Refusal;
use crate::key::ShardKey;
use crate::looping::Stop;
use crate::plan::{Change, Group, Plan, StepResult};
use qontract_telemetry::activity;

/// The outcome of applying a plan or a group.
#[derive(Debug, Default)]
pub struct Done {
    /// Number of applied steps.
    pub applied: usize,
    /// Whether a step was stale: the target changed since it was planned.
    pub stale: bool,
    /// Whether a step was not started because a shutdown was requested.
    pub stopped: bool,
    /// The faults of failed steps.
    pub faults: Vec<Fault>,
    /// The result of each change that was tried.
    pub results: Vec<(Change, StepResult)>,
}

/// The context for applying the steps of one shard.
pub struct Hand<'r> {
    /// The integration.
    pub integration: &'r dyn Dynamic,
    /// The write context.
    pub write: &'r Write<'r>,
    /// The shard.
    pub key: &'r ShardKey,
    /// The input of the run.
    pub request: &'r Request,
    /// Redacts the shard's secrets from reports.
    pub redactor: &'r ShardRedactor,
}

/// Applies the steps that are not held. Groups of one stage are applied concurrently, stages one after the
/// other.
pub async fn plan(hand: Hand<'_>, plan: &Plan<Opaque>, verdict: &[Option<Refusal>]) -> Done {
    let mut rest = verdict;
    let mut groups = Vec::new();
    for group in &plan.groups {
        let (own, others) = rest.split_at(group.steps.len().min(rest.len()));
        groups.push((group, own));
        rest = others;
    }
    groups.sort_by_key(|(group, _)| group.stage);
    let mut done = Done::default();
    for stage in groups.chunk_by(|(one, _), (next, _)| one.stage == next.stage) {
        let mut doing: Vec<BoxFuture<'_, _>> = Vec::new();
        for (group, verdicts) in stage {
            doing.push(self::group(&hand, group, verdicts).boxed());
        }
        let mut each = futures_util::stream::iter(doing).buffered(hand.request.limits.groups.max(1));
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

/// Applies the steps of a group in order. A failed or stale step ends the group.
async fn group(hand: &Hand<'_>, group: &Group<Opaque>, verdicts: &[Option<Refusal>]) -> Done {
    let Hand { integration, write, key, request, redactor } = *hand;
    let mut done = Done::default();
    for (step, _) in group.steps.iter().zip(verdicts).filter(|(_, refusal)| refusal.is_none()) {
        let changes: Vec<Change> =
            step.changes.iter().map(|change| redactor.change(change.clone())).collect();
        let what = changes.first().map_or_else(|| redactor.text(group.name.clone()), ToString::to_string);
        let Some(in_progress) = request.stop.begin_step(&what) else {
            done.stopped = true;
            break;
        };
        let _doing = activity::begin(what.clone());
        let attempt = Attempt { shard: key, changes: &changes };
        request.audit.begin(&attempt);
        let effect = until_forced(&request.stop, integration.apply(write, &step.action));
        let applied = guarded(request.limits.phase, "apply", effect).await;
        if !is_interrupted(&applied) {
            in_progress.finish();
        }
        if !matches!(applied, Ok(Applied::Stale)) {
            let failed = applied.as_ref().err().cloned().map(|fault| redactor.fault(fault));
            let failed = failed.as_ref();
            request.audit.wrote(&Written { run: write.run, shard: key, changes: &changes, failed });
            let result = result_of(&applied);
            done.results.extend(changes.iter().map(|change| (change.clone(), result)));
        }
        request.audit.end(&attempt);
        match applied {
            Ok(Applied::Done) => done.applied += 1,
            Ok(Applied::Stale) => {
                done.stale = true;
                break;
            }
            Err(fault) => {
                let place = changes.first().and_then(|change| change.place.clone());
                let fault = if fault.is_interrupted {
                    Fault::interrupted(format!("interrupted: {what} may be done in part"))
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

/// Runs an effect and abandons it when a shutdown is forced.
pub(crate) async fn until_forced<T>(
    stop: &Stop,
    effect: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::select! {
        biased;
        result = effect => result,
        () = stop.forced() => Err(Fault::interrupted("interrupted; it may be done in part")),
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
