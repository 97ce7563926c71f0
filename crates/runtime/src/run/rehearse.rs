//! Asking targets whether they would do what a plan says. Nothing is done.

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

/// What targets say to a plan.
#[derive(Debug, Default)]
pub struct Said {
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// What they would not do.
    pub faults: Vec<Fault>,
}

impl Said {
    /// Without the secrets that the shard has read.
    pub fn redacted(self, redactor: &ShardRedactor) -> Self {
        let Self { notes, faults } = self;
        Self {
            notes: notes.into_iter().map(|note| redactor.text(note)).collect(),
            faults: faults.into_iter().map(|fault| redactor.fault(fault)).collect(),
        }
    }
}

/// Rehearses the steps that are not held. Steps do not see what those before them would change.
pub async fn plan(
    room: &dyn Dynamic,
    read: &Read,
    plan: &Plan<Opaque>,
    verdict: &[Option<Refusal>],
    limits: Limits,
) -> Said {
    let steps = plan.groups.iter().flat_map(|group| &group.steps).zip(verdict);
    let mut asking: Vec<BoxFuture<'_, _>> = Vec::new();
    for (step, _) in steps.filter(|(_, held)| held.is_none()) {
        let answer = guarded(limits.phase, "rehearse", room.rehearse(read, &step.action));
        asking.push(answer.map(move |answer| (step, answer)).boxed());
    }
    let answers: Vec<_> = futures_util::stream::iter(asking).buffered(limits.groups.max(1)).collect().await;
    let mut said = Said::default();
    for (step, answer) in answers {
        match answer {
            Ok(Rehearsed::Taken | Rehearsed::NotAsked) => {}
            Ok(Rehearsed::NotValidated(why)) => {
                said.notes.push(format!("not validated: {}: {why}", what(step)));
            }
            Ok(Rehearsed::Refused(fault)) | Err(fault) => {
                let place = step.changes.first().and_then(|change| change.place.clone());
                said.faults.push(fault.while_doing(&what(step)).at(place));
            }
        }
    }
    said
}

fn what(step: &Step<Opaque>) -> String {
    step.changes.first().map(ToString::to_string).unwrap_or_default()
}
