//! How runs use leases: steps are applied under the lease of their shard, and no step starts after it was lost.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::lease::{
    HolderLiveness, Lease, LeaseAcquisition, LeaseHolder, LeaseLoss, LeaseRequest, Leases,
};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    Fault, Function, FunctionContext, FunctionState, Integration, IntegrationMeta, ObjectKey, Observed,
    Options, Plan, PlanStage, ReadContext, RunEnd, RunOutcome, RunRequest, Scope, ShardKey,
    StagedIntegration, Step, StepGroup, StepResult, WriteContext, run,
};
use support::fixture::{Stock, source};

/// What happened, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// The answer to an acquisition, or the result of a wait.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// The lease is acquired, and lost after this many checks.
    Acquired(usize),
    Held(HolderLiveness),
    Unavailable,
    /// The result of a wait: the lease seems to be free.
    Free,
}

/// Leases that answer as scripted, and log all calls.
#[derive(Debug)]
struct ScriptedLeases {
    replies: Mutex<VecDeque<Reply>>,
    log: Log,
}

impl ScriptedLeases {
    fn next(&self, call: &str) -> Reply {
        self.log.lock().push(call.to_owned());
        self.replies.lock().pop_front().unwrap_or(Reply::Acquired(usize::MAX))
    }
}

fn holder(liveness: HolderLiveness) -> LeaseHolder {
    LeaseHolder { text: "run `other` on `h`, pid 7".to_owned(), liveness }
}

impl Leases for ScriptedLeases {
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, LeaseAcquisition> {
        let call = format!("acquire {} {}", request.integration, request.shard);
        let reply = match self.next(&call) {
            Reply::Acquired(checks) => {
                let (left, log) = (Mutex::new(checks), Arc::clone(&self.log));
                LeaseAcquisition::Acquired(Box::new(ScriptedLease { left, log }))
            }
            Reply::Held(liveness) => LeaseAcquisition::Held(holder(liveness)),
            Reply::Unavailable => LeaseAcquisition::Unavailable("it is away".to_owned()),
            Reply::Free => panic!("not a reply to {call}"),
        };
        async { reply }.boxed()
    }

    fn wait<'a>(&'a self, _: LeaseRequest<'a>) -> BoxFuture<'a, Result<(), LeaseHolder>> {
        let reply = match self.next("wait") {
            Reply::Free => Ok(()),
            Reply::Held(liveness) => Err(holder(liveness)),
            other => panic!("{other:?} is not the result of a wait"),
        };
        async { reply }.boxed()
    }
}

#[derive(Debug)]
struct ScriptedLease {
    left: Mutex<usize>,
    log: Log,
}

impl Lease for ScriptedLease {
    fn check(&self) -> Result<(), LeaseLoss> {
        let mut left = self.left.lock();
        let holds = *left > 0;
        *left = left.saturating_sub(1);
        if holds { Ok(()) } else { Err(LeaseLoss("it was not renewed for 54 s".to_owned())) }
    }

    fn maintain<'a>(&'a self, _: &'a ReadPermit, _: &'a WritePermit) -> BoxFuture<'a, Infallible> {
        std::future::pending().boxed()
    }

    fn release<'a>(&'a self, _: &'a ReadPermit, _: &'a WritePermit) -> BoxFuture<'a, ()> {
        self.log.lock().push("release".to_owned());
        async {}.boxed()
    }
}

/// Makes the rungs `one` and `two`, one after the other.
struct Ladder {
    meta: IntegrationMeta,
    log: Log,
}

fn change(name: &str) -> Change {
    let object =
        ObjectKey { scope: Scope::new([("ladder", "l")]), kind: "Rung".to_owned(), name: name.to_owned() };
    Change::new(ChangeKind::Add, object, "make rung")
}

impl StagedIntegration for Ladder {
    type Common = ();
    type Target = ();
    type State = u32;
    type Desired = ();
    type Current = String;
    type Action = &'static str;

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        declared.add(ShardKey::new([("ladder", "l")]), Shard::new((), 1, None));
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        _: DeclaredShardView<'_, (), (), u32>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        _: DeclaredShardView<'_, (), (), u32>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<String>, Fault> {
        let made = self.log.lock().clone();
        Ok(BTreeMap::from([(Scope::new([("ladder", "l")]), Observed::Known(made))]))
    }

    fn plan(&self, _: &[DesiredItem<()>], current: &CurrentState<String>) -> Plan<&'static str> {
        let Some(Observed::Known(made)) = current.values().next() else { return Plan::default() };
        let missing = ["one", "two"].into_iter().filter(|name| !made.contains(&(*name).to_owned()));
        let steps = missing.map(|name| Step::new(change(name), name)).collect();
        let mut plan = Plan::default();
        plan.groups.push(StepGroup { name: "ladder".to_owned(), stage: PlanStage::default(), steps });
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, name: &&'static str) -> Result<ApplyResult, Fault> {
        self.log.lock().push((*name).to_owned());
        Ok(ApplyResult::Done)
    }
}

/// Makes the rungs `one` and `two` as a function.
struct Job {
    meta: IntegrationMeta,
    log: Log,
}

impl Function for Job {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        for name in ["one", "two"] {
            let log = Arc::clone(&self.log);
            let effect = async move {
                log.lock().push(name.to_owned());
                Ok(())
            };
            cx.apply(change(name), |_| effect.boxed()).await?;
        }
        Ok(())
    }
}

/// The log and the outcome of a run with these replies.
struct Run {
    log: String,
    outcome: RunOutcome,
}

impl Run {
    fn new(mode: Mode, replies: &[Reply], integration: impl FnOnce(Log) -> Integration) -> Self {
        let log = Log::default();
        let integration = integration(Arc::clone(&log));
        let today = jiff::civil::date(2026, 1, 1);
        let mut request =
            RunRequest::new("run", mode, source(&Stock::new()), today, ProtectedKinds::default());
        request.validate_schemas = false;
        let replies = Mutex::new(replies.iter().copied().collect());
        request.leases = Arc::new(ScriptedLeases { replies, log: Arc::clone(&log) });
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let outcome = runtime.block_on(run(&integration, &request));
        let log = log.lock().join(", ");
        Self { log, outcome }
    }

    fn staged(mode: Mode, replies: &[Reply]) -> Self {
        Self::new(mode, replies, |log| {
            Integration::staged(Ladder { meta: IntegrationMeta::new("ladders", ""), log })
        })
    }

    fn function(mode: Mode, replies: &[Reply]) -> Self {
        Self::new(mode, replies, |log| {
            Integration::function(Job { meta: IntegrationMeta::new("job", ""), log })
        })
    }

    #[track_caller]
    fn check(&self, log: &str, ended: RunEnd, faults: &[&str]) {
        assert_eq!(self.log, log);
        let texts: Vec<&str> = self.outcome.all_faults().map(|fault| fault.text.as_str()).collect();
        assert_eq!((self.outcome.ended, &texts[..]), (ended, faults));
    }

    fn results(&self) -> Vec<StepResult> {
        let shards = self.outcome.shards.values();
        shards.flat_map(|shard| &shard.changes).map(|change| change.result).collect()
    }
}

const HELD: &str = "the steps of `ladder=l` were not applied: another run holds its lease (run `other` on `h`, pid 7); the next run plans it again";
const LOST: &str =
    "the lease of `ladder=l` was lost: it was not renewed for 54 s; the next run plans it again";

#[test]
fn a_plan_is_applied_under_the_lease_of_its_shard() {
    let run = Run::staged(Mode::Real, &[]);
    run.check("acquire ladders ladder=l, one, two, release", RunEnd::Ok, &[]);
    assert_eq!(run.outcome.warnings, Vec::<String>::new());
}

#[test]
fn a_dry_run_and_a_shard_without_steps_need_no_lease() {
    Run::staged(Mode::DryRun, &[]).check("", RunEnd::Ok, &[]);
    Run::function(Mode::DryRun, &[]).check("", RunEnd::Ok, &[]);
    let idle = |log: Log| {
        log.lock().extend(["one", "two"].map(str::to_owned));
        Integration::staged(Ladder { meta: IntegrationMeta::new("ladders", ""), log })
    };
    Run::new(Mode::Real, &[], idle).check("one, two", RunEnd::Ok, &[]);
}

#[test]
fn no_step_starts_after_the_lease_was_lost() {
    let run = Run::staged(Mode::Real, &[Reply::Acquired(1)]);
    run.check("acquire ladders ladder=l, one, release", RunEnd::Transient, &[LOST]);
    assert_eq!(run.results(), [StepResult::Done, StepResult::NotTried]);
    let run = Run::staged(Mode::Real, &[Reply::Acquired(0)]);
    run.check("acquire ladders ladder=l, release", RunEnd::Transient, &[LOST]);
    assert_eq!(run.results(), [StepResult::NotTried; 2]);
}

#[test]
fn a_shard_whose_lease_is_renewed_by_another_run_is_not_applied() {
    let run = Run::staged(Mode::Real, &[Reply::Held(HolderLiveness::Alive)]);
    run.check("acquire ladders ladder=l", RunEnd::Transient, &[HELD]);
    assert_eq!(run.results(), [StepResult::NotTried; 2]);
    let replies = [Reply::Held(HolderLiveness::Unknown), Reply::Held(HolderLiveness::Alive)];
    Run::staged(Mode::Real, &replies).check("acquire ladders ladder=l, wait", RunEnd::Transient, &[HELD]);
}

#[test]
fn a_shard_whose_lease_expires_is_planned_again() {
    let run = Run::staged(Mode::Real, &[Reply::Held(HolderLiveness::Unknown), Reply::Free]);
    let log = "acquire ladders ladder=l, wait, acquire ladders ladder=l, one, two, release";
    run.check(log, RunEnd::Ok, &[]);
    assert_eq!(run.outcome.shards.values().next().unwrap().rounds, 2);
    let held = Reply::Held(HolderLiveness::Unknown);
    let run = Run::staged(Mode::Real, &[held, Reply::Free, held, Reply::Free, held]);
    assert_eq!(run.log.matches("acquire").count(), 3, "it does not wait without end");
    assert_eq!(run.outcome.ended, RunEnd::Transient);
}

#[test]
fn steps_are_applied_without_a_lease_if_the_store_is_away() {
    let run = Run::staged(Mode::Real, &[Reply::Unavailable]);
    run.check("acquire ladders ladder=l, one, two", RunEnd::Ok, &[]);
    let warning = "steps were applied without a lease, because the journal cannot be used: it is away";
    assert_eq!(run.outcome.warnings, [warning]);
    let run = Run::function(Mode::Real, &[Reply::Unavailable]);
    run.check("acquire job all, one, two", RunEnd::Ok, &[]);
    assert_eq!(run.outcome.warnings, [warning]);
}

#[test]
fn a_function_acquires_its_lease_with_the_first_change() {
    Run::function(Mode::Real, &[]).check("acquire job all, one, two, release", RunEnd::Ok, &[]);
    let replies = [Reply::Held(HolderLiveness::Unknown), Reply::Free];
    let log = "acquire job all, wait, acquire job all, one, two, release";
    Run::function(Mode::Real, &replies).check(log, RunEnd::Ok, &[]);
    let held = HELD.replace("ladder=l", "all");
    let run = Run::function(Mode::Real, &[Reply::Held(HolderLiveness::Alive)]);
    run.check("acquire job all", RunEnd::Transient, &[&held]);
    assert_eq!(run.results(), [StepResult::NotTried]);
    let lost = LOST.replace("ladder=l", "all");
    let run = Run::function(Mode::Real, &[Reply::Acquired(1)]);
    run.check("acquire job all, one, release", RunEnd::Transient, &[&lost]);
    assert_eq!(run.results(), [StepResult::Done, StepResult::NotTried]);
}
