//! Do one step. It may run twice, and it never runs in a dry run.

use qontract_runtime::{Applied, Fault, Write};

use crate::plan::Action;

/// Does one step with the Write half of a client, which takes `write.permit`. What was planned on an old version of the
/// world is `Applied::Stale`: it is planned again.
pub fn apply(_write: &Write<'_>, action: &Action) -> Result<Applied, Fault> {
    match action {
        Action::Create(thing) => Err(Fault::us(format!("creating {thing} is not written yet"))),
        Action::Remove(thing) => Err(Fault::us(format!("removing {thing} is not written yet"))),
    }
}
