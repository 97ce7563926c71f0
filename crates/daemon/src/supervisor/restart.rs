//! Restarts a loop that gave up or panicked and reports when the process has to be restarted instead.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use qontract_runtime::reconcile_loop::{LoopExit, ShutdownSignal};
use tokio::sync::{Notify, watch};

/// Maximum number of starts of a loop. After the last one, the process has to be restarted.
const MAX_STARTS: u32 = 3;

/// The end of a supervised loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperviseResult {
    /// The loop was stopped, or ran once as requested.
    Ended,
    /// The loop gave up or panicked after every start.
    GaveUp,
}

/// Runs a loop. A loop that gives up or panics is restarted after `pause`, and `report` is called with the reason.
pub async fn supervise<F: Future<Output = LoopExit>>(
    pause: Duration,
    mut start: impl FnMut() -> F,
    report: impl Fn(&str),
) -> SuperviseResult {
    for _ in 0..MAX_STARTS {
        let why = match AssertUnwindSafe(start()).catch_unwind().await {
            Ok(LoopExit::GaveUp) => "the loop stalled too often",
            Ok(LoopExit::Once(_) | LoopExit::Stopped) => return SuperviseResult::Ended,
            Err(_) => "the loop panicked",
        };
        report(why);
        tokio::time::sleep(pause).await;
    }
    SuperviseResult::GaveUp
}

/// An event after which the supervisor checks the list of integrations again or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisorEvent {
    /// New data is available.
    NewData,
    /// Integrations that could not be started are retried, because a missing program or file may exist by now.
    Retry,
    /// The process shuts down.
    Stop,
    /// A loop gave up.
    LoopGaveUp,
}

/// Waits for the next event. `retry` is the time after which missing integrations are retried; `None`
/// if none is missing.
pub async fn wait(
    generation: &mut watch::Receiver<u64>,
    retry: Option<Duration>,
    stop: &ShutdownSignal,
    gave_up: &Notify,
) -> anyhow::Result<SupervisorEvent> {
    tokio::select! {
        changed = generation.changed() => {
            changed?;
            Ok(SupervisorEvent::NewData)
        }
        () = tokio::time::sleep(retry.unwrap_or_default()), if retry.is_some() => Ok(SupervisorEvent::Retry),
        () = stop.requested() => Ok(SupervisorEvent::Stop),
        () = gave_up.notified() => Ok(SupervisorEvent::LoopGaveUp),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use qontract_runtime::RunEnd;
    use tokio::time::Instant;

    use super::*;

    /// The times in seconds at which a loop is started, the result, and the reports. Each start ends after one second
    /// in the way that `finishes` lists.
    async fn starts(finishes: &[Option<LoopExit>]) -> (Vec<u64>, SuperviseResult, Vec<String>) {
        let (begun, starts, reports) = (Instant::now(), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let start = || {
            let mut starts = starts.lock().unwrap();
            let finish = finishes[starts.len()];
            starts.push(begun.elapsed().as_secs());
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                finish.expect("this start panics")
            }
        };
        let report = |why: &str| reports.lock().unwrap().push(why.to_owned());
        let supervised = supervise(Duration::from_secs(10), start, report).await;
        (starts.into_inner().unwrap(), supervised, reports.into_inner().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stalls_or_panics_is_restarted_after_a_pause_and_not_forever() {
        let (times, supervised, reports) =
            starts(&[Some(LoopExit::GaveUp), None, Some(LoopExit::GaveUp)]).await;
        assert_eq!((times, supervised), (vec![0, 11, 22], SuperviseResult::GaveUp));
        assert_eq!(
            reports,
            ["the loop stalled too often", "the loop panicked", "the loop stalled too often"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_recovers_or_is_stopped_is_left_alone() {
        let (times, supervised, reports) = starts(&[Some(LoopExit::GaveUp), Some(LoopExit::Stopped)]).await;
        assert_eq!((times, supervised, reports.len()), (vec![0, 11], SuperviseResult::Ended, 1));
        let once = starts(&[Some(LoopExit::Once(RunEnd::Failed))]).await;
        assert_eq!(once, (vec![0], SuperviseResult::Ended, Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn missing_integrations_are_retried_and_a_loop_that_gave_up_ends_the_process() {
        let (sender, mut generation) = watch::channel(0);
        let ((stopper, stop), gave_up) = (ShutdownSignal::pair(), Arc::new(Notify::new()));
        let begun = Instant::now();
        let retry = Some(Duration::from_mins(10));
        assert_eq!(wait(&mut generation, retry, &stop, &gave_up).await.unwrap(), SupervisorEvent::Retry);
        assert_eq!(begun.elapsed(), Duration::from_mins(10));
        sender.send_modify(|count| *count += 1);
        assert_eq!(wait(&mut generation, retry, &stop, &gave_up).await.unwrap(), SupervisorEvent::NewData);
        // Without missing integrations there is no retry.
        let nothing =
            tokio::time::timeout(Duration::from_hours(1), wait(&mut generation, None, &stop, &gave_up)).await;
        assert!(nothing.is_err());
        gave_up.notify_one();
        assert_eq!(wait(&mut generation, None, &stop, &gave_up).await.unwrap(), SupervisorEvent::LoopGaveUp);
        stopper.request();
        assert_eq!(wait(&mut generation, None, &stop, &gave_up).await.unwrap(), SupervisorEvent::Stop);
        drop(sender);
        let (_stopper, stop) = ShutdownSignal::pair();
        assert!(wait(&mut generation, None, &stop, &gave_up).await.is_err());
    }
}
