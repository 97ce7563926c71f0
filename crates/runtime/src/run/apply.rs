//! Doing what a plan says, step by step.

use std::time::Duration;

use super::round::guarded;
use crate::contract::{Applied, Write};
use crate::erased::{Dynamic, Opaque};
use crate::fault::Fault;
use crate::guard::Refusal;
use crate::plan::Plan;

/// What was done of a plan.
#[derive(Debug, Default)]
pub struct Done {
    /// Steps that are done.
    pub applied: usize,
    /// Whether something was planned on an old version of the world.
    pub stale: bool,
    /// What went wrong.
    pub faults: Vec<Fault>,
}

/// Does the steps that are not held. A failed or stale step stops its own group only.
pub async fn plan(
    room: &dyn Dynamic,
    write: &Write<'_>,
    plan: &Plan<Opaque>,
    verdict: &[Option<Refusal>],
    deadline: Duration,
) -> Done {
    let mut done = Done::default();
    let mut held = verdict.iter();
    for group in &plan.groups {
        let verdicts: Vec<_> = held.by_ref().take(group.steps.len()).collect();
        for (step, refusal) in group.steps.iter().zip(verdicts) {
            if refusal.is_some() {
                continue;
            }
            match guarded(deadline, "apply", room.apply(write, &step.action)).await {
                Ok(Applied::Done) => done.applied += 1,
                Ok(Applied::Stale) => {
                    done.stale = true;
                    break;
                }
                Err(fault) => {
                    let change = step.changes.first();
                    let what = change.map_or_else(|| group.name.clone(), ToString::to_string);
                    let place = change.and_then(|change| change.place.clone());
                    done.faults.push(fault.while_doing(&what).at(place));
                    break;
                }
            }
        }
    }
    done
}
