//! Executes the effect of a step, for all forms of integrations.

use std::future::Future;

use crate::fault::Fault;
use crate::plan::StepResult;
use crate::shutdown::ShutdownSignal;

/// Runs the effect of a step and abandons it if a shutdown is forced.
pub async fn until_forced<T>(
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
pub fn result_of<T>(applied: &Result<T, Fault>) -> StepResult {
    match applied {
        Ok(_) => StepResult::Done,
        Err(fault) if fault.is_interrupted => StepResult::Interrupted,
        Err(_) => StepResult::Failed,
    }
}
