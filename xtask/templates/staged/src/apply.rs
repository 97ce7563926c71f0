//! Applies one step. It must be idempotent; it never runs in a dry run.

use qontract_runtime::{Applied, Fault, Write};

use crate::plan::Action;

/// Applies one step with the Write half of a client, which takes `write.permit`. Return `Applied::Stale` if the
/// target has changed since it was observed: the step is planned again.
pub fn apply(_write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
    match action {
        Action::Create(thing) => Err(Fault::us(format!("creating {thing} is not implemented yet"))),
        Action::Remove(thing) => Err(Fault::us(format!("removing {thing} is not implemented yet"))),
    }
}
