//! A shutdown signal with two stages, shared by all tasks of a process.
//!
//! *Requested*: reads end immediately, steps in progress are finished, and no further step starts. *Forced*: steps in
//! progress are abandoned and reported as abandoned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::termination::TerminationSignal;

/// The stage of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShutdownStage {
    Running,
    Requested(TerminationSignal),
    Forced(TerminationSignal),
}

impl ShutdownStage {
    fn interruption(self) -> Option<TerminationSignal> {
        match self {
            ShutdownStage::Running => None,
            ShutdownStage::Requested(by) | ShutdownStage::Forced(by) => Some(by),
        }
    }
}

/// The receiving side: observes whether a shutdown is requested or forced. All clones observe the same shutdown.
#[derive(Clone, Debug)]
pub struct ShutdownSignal(Option<SharedShutdown>);

/// The requesting side. All clones request the same shutdown.
#[derive(Clone, Debug)]
pub struct ShutdownTrigger(SharedShutdown);

#[derive(Clone, Debug)]
struct SharedShutdown {
    state: watch::Sender<ShutdownStage>,
    /// The shutdowns from which this one is derived. After one of them is requested, no step starts, even if this
    /// shutdown is not requested yet.
    origins: Vec<watch::Sender<ShutdownStage>>,
    /// The lock is held while a shutdown is requested and while a step starts. Therefore, each step starts before the
    /// shutdown is requested or does not start.
    steps: Arc<Mutex<StepRegistry>>,
}

impl SharedShutdown {
    fn new(origin: Option<&SharedShutdown>) -> Self {
        Self {
            state: watch::Sender::new(ShutdownStage::Running),
            origins: origin.map(|shared| shared.lineage().cloned().collect()).unwrap_or_default(),
            steps: origin.map(|shared| Arc::clone(&shared.steps)).unwrap_or_default(),
        }
    }

    fn state(&self) -> ShutdownStage {
        *self.state.borrow()
    }

    /// This shutdown and the shutdowns from which it is derived.
    fn lineage(&self) -> impl Iterator<Item = &watch::Sender<ShutdownStage>> {
        std::iter::once(&self.state).chain(&self.origins)
    }

    /// Whether no further step may start.
    fn is_requested(&self) -> bool {
        let is_running = |state: &watch::Sender<ShutdownStage>| *state.borrow() == ShutdownStage::Running;
        !self.lineage().all(is_running)
    }

    fn force(&self) {
        let _steps = self.steps();
        self.state.send_modify(|state| {
            *state = ShutdownStage::Forced(state.interruption().unwrap_or(TerminationSignal::Terminate));
        });
    }

    fn steps(&self) -> MutexGuard<'_, StepRegistry> {
        self.steps.lock()
    }
}

/// The steps of all runs that share a shutdown.
#[derive(Debug, Default)]
struct StepRegistry {
    next: u64,
    in_progress: BTreeMap<u64, StepEntry>,
    abandoned: Vec<String>,
}

#[derive(Debug)]
struct StepEntry {
    what: String,
    shutdown_timeout: Duration,
}

/// Creates the two sides of a shutdown.
pub fn pair() -> (ShutdownTrigger, ShutdownSignal) {
    let shared = SharedShutdown::new(None);
    (ShutdownTrigger(shared.clone()), ShutdownSignal(Some(shared)))
}

impl ShutdownTrigger {
    /// Requests the shutdown.
    pub fn request(&self) {
        self.request_by(TerminationSignal::Terminate);
    }

    /// Requests the shutdown because of a signal. If the shutdown was already requested, the earlier signal is kept.
    pub fn request_by(&self, by: TerminationSignal) {
        let _steps = self.0.steps();
        self.0.state.send_if_modified(|state| {
            let is_first = *state == ShutdownStage::Running;
            if is_first {
                *state = ShutdownStage::Requested(by);
            }
            is_first
        });
    }

    /// Forces the shutdown: the steps in progress are abandoned.
    pub fn force(&self) {
        self.0.force();
    }

    /// The signal that requested the shutdown, if any.
    pub fn interruption(&self) -> Option<TerminationSignal> {
        self.0.state().interruption()
    }

    /// The steps in progress, in the order in which they started.
    pub fn steps(&self) -> Vec<String> {
        self.0.steps().in_progress.values().map(|step| step.what.clone()).collect()
    }

    /// The longest time that a step in progress may take to end. It is zero if no step has its own shutdown timeout.
    pub fn longest_shutdown_timeout(&self) -> Duration {
        let steps = self.0.steps();
        steps.in_progress.values().map(|step| step.shutdown_timeout).max().unwrap_or_default()
    }

    /// The steps that were abandoned; they may be partially applied.
    pub fn abandoned(&self) -> Vec<String> {
        self.0.steps().abandoned.clone()
    }
}

impl ShutdownSignal {
    /// Creates a signal of a shutdown that is never requested.
    pub fn never() -> Self {
        Self(None)
    }

    /// Creates the two sides of a shutdown.
    pub fn pair() -> (ShutdownTrigger, Self) {
        pair()
    }

    /// Creates the two sides of a derived shutdown. Its steps are counted with the steps of this shutdown, and no
    /// step starts after this shutdown is requested.
    pub fn derive(&self) -> (ShutdownTrigger, Self) {
        let shared = SharedShutdown::new(self.0.as_ref());
        (ShutdownTrigger(shared.clone()), Self(Some(shared)))
    }

    /// Whether the shutdown is requested.
    pub fn is_requested(&self) -> bool {
        self.interruption().is_some()
    }

    /// The signal that requested the shutdown, if any.
    pub fn interruption(&self) -> Option<TerminationSignal> {
        self.0.as_ref().and_then(|shared| shared.state().interruption())
    }

    /// Waits until the shutdown is requested.
    pub async fn requested(&self) {
        self.wait_until(|state| state != ShutdownStage::Running).await;
    }

    /// Waits until the shutdown is forced.
    pub async fn forced(&self) {
        self.wait_until(|state| matches!(state, ShutdownStage::Forced(_))).await;
    }

    /// Forces the shutdown: the steps in progress are abandoned.
    pub fn force(&self) {
        if let Some(shared) = &self.0 {
            shared.force();
        }
    }

    /// Starts a step, which counts as in progress until the guard is dropped; `None` if a shutdown is
    /// requested.
    ///
    /// **Invariant:** after a shutdown is requested, [`ShutdownTrigger::steps`] contains every step in
    /// progress.
    pub fn begin_step(&self, what: &str) -> Option<StepInProgress> {
        self.begin_long_step(what, Duration::ZERO)
    }

    /// Starts a step as [`Self::begin_step`] does. After a shutdown request, the process waits up to
    /// `shutdown_timeout` for the step to end, if this timeout is longer than the default.
    pub fn begin_long_step(&self, what: &str, shutdown_timeout: Duration) -> Option<StepInProgress> {
        let Some(shared) = self.0.clone() else {
            return Some(StepInProgress { shared: None, number: 0, is_finished: false });
        };
        let mut steps = shared.steps();
        if shared.is_requested() {
            return None;
        }
        steps.next += 1;
        let number = steps.next;
        steps.in_progress.insert(number, StepEntry { what: what.to_owned(), shutdown_timeout });
        drop(steps);
        Some(StepInProgress { shared: Some(shared), number, is_finished: false })
    }

    async fn wait_until(&self, is_reached: impl Fn(ShutdownStage) -> bool) {
        let Some(shared) = &self.0 else { return std::future::pending().await };
        // `shared` holds a sender, so the channel is never closed.
        let _ = shared.state.subscribe().wait_for(|state| is_reached(*state)).await;
    }
}

/// A step in progress. If it is dropped before it is finished, it counts as abandoned.
#[derive(Debug)]
#[must_use = "a step that is dropped is abandoned"]
pub struct StepInProgress {
    shared: Option<SharedShutdown>,
    number: u64,
    is_finished: bool,
}

impl StepInProgress {
    /// Marks the step as finished, successfully or not.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for StepInProgress {
    fn drop(&mut self) {
        let Some(shared) = &self.shared else { return };
        let mut steps = shared.steps();
        if let Some(step) = steps.in_progress.remove(&self.number)
            && !self.is_finished
        {
            steps.abandoned.push(step.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ShutdownSignal, TerminationSignal};
    use std::time::Duration;

    #[test]
    fn the_first_signal_names_the_reason() {
        let (stopper, stop) = ShutdownSignal::pair();
        assert_eq!((stop.interruption(), stop.is_requested()), (None, false));
        stopper.request_by(TerminationSignal::Interrupt);
        stopper.request_by(TerminationSignal::Terminate);
        stopper.force();
        assert_eq!((stop.interruption(), stop.is_requested()), (Some(TerminationSignal::Interrupt), true));
        let all = [TerminationSignal::Interrupt, TerminationSignal::Terminate, TerminationSignal::Hangup];
        assert_eq!(all.map(TerminationSignal::exit_code), [130, 143, 129]);
        assert_eq!(all.map(TerminationSignal::name), ["SIGINT", "SIGTERM", "SIGHUP"]);
    }

    #[test]
    fn steps_are_counted_until_their_result_is_known() {
        let (stopper, stop) = ShutdownSignal::pair();
        let (_, derived) = stop.derive();
        let (first, second) = (stop.begin_step("a").unwrap(), derived.begin_step("b").unwrap());
        assert_eq!(stopper.steps(), ["a", "b"]);
        first.finish();
        assert_eq!((stopper.steps(), stopper.abandoned()), (vec!["b".to_owned()], vec![]));
        drop(second);
        assert_eq!((stopper.steps(), stopper.abandoned()), (vec![], vec!["b".to_owned()]));
        drop(ShutdownSignal::never().begin_step("c").unwrap());
    }

    #[test]
    fn the_slowest_step_in_progress_decides_how_long_a_shutdown_waits() {
        let (stopper, stop) = ShutdownSignal::pair();
        assert_eq!(stopper.longest_shutdown_timeout(), Duration::ZERO);
        let slow = stop.begin_long_step("a", Duration::from_mins(5)).unwrap();
        let usual = stop.derive().1.begin_step("b").unwrap();
        assert_eq!(stopper.longest_shutdown_timeout(), Duration::from_mins(5));
        slow.finish();
        assert_eq!(stopper.longest_shutdown_timeout(), Duration::ZERO);
        usual.finish();
    }

    #[test]
    fn no_step_starts_once_a_shutdown_is_requested() {
        let (stopper, stop) = ShutdownSignal::pair();
        let (_, derived) = stop.derive();
        let (other, alone) = stop.derive();
        other.request();
        assert!(alone.begin_step("a").is_none());
        let step = derived.begin_step("b").unwrap();
        stopper.request();
        assert!(stop.begin_step("c").is_none());
        assert!(derived.begin_step("d").is_none(), "the derived shutdown is requested later");
        assert_eq!(stopper.steps(), ["b"]);
        step.finish();
        assert_eq!((stopper.steps(), stopper.abandoned()), (vec![], vec![]));
        let (stopper, stop) = ShutdownSignal::pair();
        stopper.force();
        assert!(stop.begin_step("e").is_none());
    }

    #[test]
    fn a_step_that_starts_during_a_shutdown_request_is_seen_or_does_not_start() {
        for _ in 0..200 {
            let (stopper, stop) = ShutdownSignal::pair();
            let start = std::sync::Barrier::new(2);
            let (seen, begun) = std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    start.wait();
                    stopper.request();
                    stopper.steps().len()
                });
                start.wait();
                let step = stop.begin_step("a");
                (asking.join().unwrap(), step.is_some())
            });
            assert_eq!(seen, usize::from(begun));
        }
    }

    #[tokio::test]
    async fn forcing_requests_as_well() {
        let (stopper, stop) = ShutdownSignal::pair();
        let (other, derived) = stop.derive();
        stopper.force();
        stop.requested().await;
        stop.forced().await;
        assert!(!derived.is_requested(), "a derived shutdown is requested separately");
        other.request();
        derived.requested().await;
        assert_eq!(derived.interruption(), Some(TerminationSignal::Terminate));
    }
}
