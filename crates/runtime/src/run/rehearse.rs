//! Rehearses a plan: asks targets to validate its steps. Nothing is applied.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};

use super::Limits;
use super::redact::ShardRedactor;
use super::round::guarded;
use crate::contract::{Read, Rehearsed};
use crate::erased::{Dynamic, Opaque};
use crate::fault::Fault;
use crate::guard::Refusal;
use crate::plan::{Plan, Step};

/// The answers of targets to the steps of a plan.
#[derive(Debug, Default)]
pub struct Said {
    /// Steps that could not be validated.
    pub notes: Vec<String>,
    /// Steps that targets would refuse.
    pub faults: Vec<Fault>,
}

impl Said {
    /// Redacts the secrets that the shard has read.
    pub fn redacted(self, redactor: &ShardRedactor) -> Self {
        let Self { notes, faults } = self;
        Self {
            notes: notes.into_iter().map(|note| redactor.text(note)).collect(),
            faults: faults.into_iter().map(|fault| redactor.fault(fault)).collect(),
        }
    }
}

/// Rehearses the steps that are not held. A step does not see the effects of earlier steps.
pub async fn plan(
    integration: &dyn Dynamic,
    read: &Read,
    plan: &Plan<Opaque>,
    verdict: &[Option<Refusal>],
    limits: Limits,
) -> Said {
    let steps = plan.groups.iter().flat_map(|group| &group.steps).zip(verdict);
    let mut rehearsing: Vec<BoxFuture<'_, _>> = Vec::new();
    for (step, _) in steps.filter(|(_, held)| held.is_none()) {
        let answer = guarded(limits.phase, "rehearse", integration.rehearse(read, &step.action));
        rehearsing.push(answer.map(move |answer| (step, answer)).boxed());
    }
    let answers: Vec<_> =
        futures_util::stream::iter(rehearsing).buffered(limits.groups.max(1)).collect().await;
    let mut report = Said::default();
    for (step, answer) in answers {
        match answer {
            Ok(Rehearsed::Taken | Rehearsed::NotAsked) => {}
            Ok(Rehearsed::NotValidated(why)) => {
                report.notes.push(format!("not validated: {}: {why}", what(step)));
            }
            Ok(Rehearsed::Refused(fault)) | Err(fault) => {
                let place = step.changes.first().and_then(|change| change.place.clone());
                report.faults.push(fault.while_doing(&what(step)).at(place));
            }
        }
    }
    report
}

fn what(step: &Step<Opaque>) -> String {
    step.changes.first().map(ToString::to_string).unwrap_or_default()
}
