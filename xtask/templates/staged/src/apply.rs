//! Applies one step. It must be idempotent; it never runs in a dry run.

use qontract_runtime::{ApplyResult, Fault, WriteContext};

use crate::plan::Action;

/// Applies one step with the Write half of a client, which takes `write.permit`. Return `ApplyResult::Stale`
/// if the target has changed since it was observed: the step is planned again.
pub fn apply(_write: &WriteContext<'_>, action: &Action) -> Result<ApplyResult, Fault> {
    match action {
        Action::Create(thing) => Err(Fault::internal(format!("creating {thing} is not implemented yet"))),
        Action::Remove(thing) => Err(Fault::internal(format!("removing {thing} is not implemented yet"))),
    }
}
