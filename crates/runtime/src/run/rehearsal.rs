//! Rehearses a plan: targets validate its steps without applying them.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use crate::contract::{ReadContext, RehearsalResult};
use crate::deadline::with_deadline;
use crate::fault::Fault;
use crate::guard::{JudgedShard, JudgedStep, PlannedSteps};
use crate::plan::Step;
use crate::redaction::ShardRedactor;
use crate::run_request::RunLimits;
use crate::type_erasure::{DynIntegration, OpaqueValue};

/// The beginning of the note about a step that could not be validated. Printed plans combine these notes.
pub const NOT_VALIDATED: &str = "not validated: ";

/// The results of rehearsing the steps of a plan.
#[derive(Debug, Default)]
pub struct RehearsalReport {
    /// Steps that could not be validated.
    pub notes: Vec<String>,
    /// Steps that targets would refuse.
    pub faults: Vec<Fault>,
}

impl RehearsalReport {
    /// Redacts the secrets that the shard has read.
    pub fn redacted(self, redactor: &ShardRedactor) -> Self {
        let Self { notes, faults } = self;
        Self {
            notes: notes.into_iter().map(|note| redactor.text(note)).collect(),
            faults: faults.into_iter().map(|fault| redactor.fault(fault)).collect(),
        }
    }
}

/// Rehearses the steps that are not held. Each step is validated without the effects of earlier steps.
pub async fn rehearse_plan<S: PlannedSteps<Action = OpaqueValue>>(
    integration: &dyn DynIntegration,
    read: &ReadContext,
    judged: &JudgedShard<'_, S>,
    limits: RunLimits,
) -> RehearsalReport {
    let mut rehearsing: Vec<BoxFuture<'_, _>> = Vec::new();
    for step in judged.steps().filter_map(JudgedStep::permitted) {
        let result =
            with_deadline(limits.phase_timeout, "rehearse", integration.rehearse(read, &step.action));
        rehearsing.push(result.map(move |result| (step, result)).boxed());
    }
    let results: Vec<_> =
        futures_util::stream::iter(rehearsing).buffered(limits.max_groups.max(1)).collect().await;
    let mut report = RehearsalReport::default();
    for (step, result) in results {
        match result {
            Ok(RehearsalResult::Accepted | RehearsalResult::Skipped) => {}
            Ok(RehearsalResult::NotValidated(why)) => {
                report.notes.push(format!("{NOT_VALIDATED}{}: {why}", describe_step(step)));
            }
            Ok(RehearsalResult::Refused(fault)) | Err(fault) => {
                let place = step.changes.first().and_then(|change| change.place.clone());
                report.faults.push(fault.while_doing(&describe_step(step)).at(place));
            }
        }
    }
    report
}

fn describe_step(step: &Step<OpaqueValue>) -> String {
    step.changes.first().map(ToString::to_string).unwrap_or_default()
}
