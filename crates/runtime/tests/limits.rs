//! Limits that an integration sets for itself: deadlines and width, in the staged and the function form.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::{
    Change, ChangeKind, Data, Fault, Function, FunctionContext, FunctionState, Integration,
    IntegrationLimits, IntegrationMeta, ObjectKey, Options, RunLimits, RunOutcome, RunRequest, Scope,
    StepResult, run,
};
use support::fixture::{Stock, source};
use tokio::time::{Instant, sleep};

/// A function that takes some time, and applies one change that takes some time.
struct SlowFunction {
    meta: IntegrationMeta,
    before: Duration,
    change: Duration,
    /// The time that it was allowed to take.
    ended: Arc<Mutex<Option<Duration>>>,
}

impl Function for SlowFunction {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        let began = Instant::now();
        sleep(self.before).await;
        let object = ObjectKey { scope: Scope::default(), kind: "Message".into(), name: "a".into() };
        let change = Change::new(ChangeKind::Add, object, "send message");
        let effect = sleep(self.change).map(Ok);
        let done = cx.apply(change, move |_| effect.boxed()).await;
        *self.ended.lock().unwrap() = Some(began.elapsed());
        done
    }
}

/// Runs a function that takes `before` minutes, and its change `change` minutes.
fn outcome(limits: IntegrationLimits, before: u64, change: u64) -> (RunOutcome, Option<Duration>) {
    let ended = Arc::default();
    let integration = Integration::function(SlowFunction {
        meta: IntegrationMeta::new("slow", "").limits(limits),
        before: Duration::from_mins(before),
        change: Duration::from_mins(change),
        ended: Arc::clone(&ended),
    });
    let (head, today) = (source(&Stock::new()), jiff::civil::date(2026, 1, 1));
    let mut request = RunRequest::new("run", Mode::Real, head, today, ProtectedKinds::default());
    request.validate_schemas = false;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let outcome = runtime.block_on(run(&integration, &request));
    let ended = *ended.lock().unwrap();
    (outcome, ended)
}

/// The faults of an outcome.
fn faults(outcome: &RunOutcome) -> Vec<&str> {
    outcome.all_faults().map(|fault| fault.text.as_str()).collect()
}

#[test]
fn a_function_has_the_deadline_of_its_integration() {
    let (cut, ended) = outcome(IntegrationLimits::default(), 15, 0);
    assert_eq!((faults(&cut), ended), (vec!["`run` took longer than 600 s"], None));
    let own =
        IntegrationLimits { phase_timeout: Some(Duration::from_mins(20)), ..IntegrationLimits::default() };
    let (done, ended) = outcome(own, 15, 1);
    assert_eq!((faults(&done).len(), done.applied(), ended), (0, 1, Some(Duration::from_mins(16))));
}

#[test]
fn a_change_of_a_function_has_the_deadline_of_a_step() {
    let limits = |step| IntegrationLimits {
        phase_timeout: Some(Duration::from_hours(1)),
        step_timeout: Some(Duration::from_mins(step)),
        ..IntegrationLimits::default()
    };
    let (cut, ended) = outcome(limits(2), 1, 30);
    assert_eq!((faults(&cut), cut.applied()), (vec!["`apply` took longer than 120 s"], 0));
    assert_eq!(ended, Some(Duration::from_mins(3)));
    let shard = cut.shards.values().next().unwrap();
    assert_eq!(shard.changes[0].result, StepResult::Failed);
    let (done, _) = outcome(limits(40), 1, 30);
    assert_eq!((faults(&done).len(), done.applied()), (0, 1), "an honest step of 30 minutes is finished");
}

#[test]
fn an_integration_lowers_the_width_and_never_raises_it() {
    let width = |own, flag| {
        let limits = IntegrationLimits { max_shards: own, ..IntegrationLimits::default() };
        RunLimits::default().with_concurrency(flag).for_integration(&limits).max_shards
    };
    assert_eq!(width(Some(2), 5), 2);
    assert_eq!(width(Some(2), 1), 1);
    assert_eq!(width(None, 5), 5);
}
