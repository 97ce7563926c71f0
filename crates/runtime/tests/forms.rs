//! Rounds, groups, panics, and the function form, on test integrations.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

mod support {
    #[allow(dead_code, reason = "each test file uses its part of this module")]
    pub mod fixture;
}

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use qontract_access::Mode;
use qontract_runtime::audit::{Audit, WriteRecord};
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::reconcile_loop::{ShutdownSignal, TerminationSignal};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf, DesiredItem,
    Fault, Function, FunctionContext, FunctionState, Integration, IntegrationMeta, ObjectKey, Observed,
    Options, Plan, PlanStage, ReadContext, RunEnd, RunOutcome, RunRequest, Scope, ShardKey,
    StagedIntegration, Step, StepGroup, StepResult, Wait, WriteContext, run,
};
use support::fixture::{Stock, source};

/// The applied steps, in order. The names `fail` and `panic` do what they say.
type Log = Arc<Mutex<Vec<String>>>;

/// Ladders: a rung can be made once the one below exists, so that each takes a round.
struct Ladders {
    about: IntegrationMeta,
    done: Log,
    steps: &'static [&'static [&'static str]],
    panics_in_plan: bool,
}

fn object(name: &str) -> ObjectKey {
    ObjectKey { scope: Scope::new([("ladder", "l")]), kind: "Rung".to_owned(), name: name.to_owned() }
}

impl StagedIntegration for Ladders {
    type Common = ();
    type Target = ();
    type State = u32;
    type Desired = ();
    type Current = String;
    type Action = String;

    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        declared.add(ShardKey::new([("ladder", "l")]), Shard::new((), 1, None));
        if self.panics_in_plan {
            declared.add(ShardKey::new([("ladder", "other")]), Shard::new((), 2, None));
        }
        Ok(declared)
    }

    async fn resolve(
        &self,
        _: &ReadContext,
        view: DeclaredShardView<'_, (), (), u32>,
    ) -> Result<Vec<DesiredItem<()>>, Fault> {
        assert!(view.shard.state != 2, "the other ladder is broken");
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        _: &ReadContext,
        _: DeclaredShardView<'_, Self::Common, Self::Target, Self::State>,
        _: &[DesiredItem<()>],
    ) -> Result<CurrentState<String>, Fault> {
        let done = self.done.lock().unwrap().clone();
        Ok(BTreeMap::from([(Scope::new([("ladder", "l")]), Observed::Known(done))]))
    }

    fn plan(&self, _: &[DesiredItem<()>], world: &CurrentState<String>) -> Plan<String> {
        let Some(Observed::Known(done)) = world.values().next() else { return Plan::default() };
        let step = |name: &&str| {
            Step::new(Change::new(ChangeKind::Add, object(name), "make rung"), (*name).to_owned())
        };
        let mut plan = Plan::default();
        for group in self.steps {
            // The missing rungs of each group; in a ladder of several rounds only the next one.
            let mut steps: Vec<_> =
                group.iter().filter(|name| !done.contains(&(**name).to_owned())).map(step).collect();
            if self.about.rounds > 1 {
                steps.truncate(1);
                if group.len() > done.len() + 1 {
                    plan.waits.push(Wait { text: "for the next rung".to_owned(), place: None });
                }
            }
            plan.groups.push(StepGroup { name: "ladder".to_owned(), stage: PlanStage::default(), steps });
        }
        plan
    }

    async fn apply(&self, write: &WriteContext<'_>, action: &String) -> Result<ApplyResult, Fault> {
        assert_eq!(write.run, "run");
        match action.as_str() {
            "fail" => Err(Fault::operator("it broke")),
            "panic" => panic!("it fell"),
            name => {
                self.done.lock().unwrap().push(name.to_owned());
                Ok(ApplyResult::Done)
            }
        }
    }
}

fn play(integration: &Integration, mode: Mode) -> RunOutcome {
    let head = source(&Stock::new());
    let mut request =
        RunRequest::new("run", mode, head, jiff::civil::date(2026, 1, 1), ProtectedKinds::default());
    request.validate_schemas = false;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(integration, &request))
}

fn ladders(rounds: u32, steps: &'static [&'static [&'static str]]) -> (Log, Ladders) {
    let done = Log::default();
    let about = IntegrationMeta::new("ladders", "").rounds(rounds);
    (Arc::clone(&done), Ladders { about, done, steps, panics_in_plan: false })
}

#[test]
fn steps_that_depend_on_an_outcome_are_planned_in_the_next_round() {
    let (done, integration) = ladders(3, &[&["one", "two"]]);
    let outcome = play(&Integration::staged(integration), Mode::Real);
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!((done.lock().unwrap().join(" ").as_str(), shard.rounds), ("one two", 3));
    assert_eq!((outcome.ended, shard.waits.len()), (RunEnd::Ok, 0));
    let (done, integration) = ladders(3, &[&["one", "two"]]);
    let outcome = play(&Integration::staged(integration), Mode::DryRun);
    assert_eq!((done.lock().unwrap().len(), outcome.shards.values().next().unwrap().rounds), (0, 1));
    let (done, integration) = ladders(99, &[&["one", "two", "three", "four", "five"]]);
    play(&Integration::staged(integration), Mode::Real);
    assert_eq!(done.lock().unwrap().len(), 3, "never more than three rounds");
}

#[test]
fn a_failed_step_stops_its_own_group_only() {
    let (done, integration) =
        ladders(1, &[&["one", "fail", "two"], &["three"], &["panic", "four"], &["five"]]);
    let outcome = play(&Integration::staged(integration), Mode::Real);
    assert_eq!(done.lock().unwrap().join(" "), "one three five");
    let texts: Vec<&str> = outcome.all_faults().map(|fault| fault.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "+ make rung `fail` (ladder=l): it broke",
            "+ make rung `panic` (ladder=l): `apply` panicked: it fell"
        ]
    );
    assert_eq!(outcome.ended, RunEnd::Failed);
}

#[test]
fn a_panic_affects_only_its_shard() {
    let (done, mut integration) = ladders(1, &[&["one"]]);
    integration.panics_in_plan = true;
    let outcome = play(&Integration::staged(integration), Mode::Real);
    assert_eq!(done.lock().unwrap().join(" "), "one");
    let faulty: Vec<String> = outcome
        .shards
        .iter()
        .filter(|(_, shard)| !shard.faults.is_empty())
        .map(|(key, _)| key.to_string())
        .collect();
    assert_eq!((faulty, outcome.ended), (vec!["ladder=other".to_owned()], RunEnd::Failed));
}

/// A job that creates one object and removes others.
struct Job {
    about: IntegrationMeta,
    done: Log,
    removals: usize,
}

impl Function for Job {
    fn meta(&self) -> &IntegrationMeta {
        &self.about
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        let act = |kind, name: String| {
            let done = Arc::clone(&self.done);
            let change = Change::new(kind, object(&name), "do");
            cx.apply(change, move |_| {
                async move {
                    done.lock().unwrap().push(name);
                    Ok(())
                }
                .boxed()
            })
        };
        act(ChangeKind::Add, "new".to_owned()).await?;
        for number in 0..self.removals {
            act(ChangeKind::Remove, format!("old-{number}")).await?;
        }
        cx.report_fault(Fault::author("one object is odd"));
        Ok(())
    }
}

#[test]
fn a_function_runs_in_one_of_all_slots() {
    let runs: usize = (0..3)
        .map(|index| {
            let (done, about) = (Log::default(), IntegrationMeta::new("job", ""));
            let integration = Integration::function(Job { about, done: Arc::clone(&done), removals: 0 });
            let mut request = RunRequest::new(
                "run",
                Mode::Real,
                source(&Stock::new()),
                jiff::civil::date(2026, 1, 1),
                ProtectedKinds::default(),
            );
            request.validate_schemas = false;
            request.slot = qontract_runtime::slot::Slot::new(index, 3).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(run(&integration, &request));
            done.lock().unwrap().len()
        })
        .sum();
    assert_eq!(runs, 1);
}

#[test]
fn a_function_records_its_effects_always_and_makes_them_in_a_real_run() {
    let job = |removals| {
        let done = Log::default();
        (
            Arc::clone(&done),
            Integration::function(Job { about: IntegrationMeta::new("job", ""), done, removals }),
        )
    };
    let (done, integration) = job(2);
    let outcome = play(&integration, Mode::DryRun);
    let shard = outcome.shards.values().next().unwrap();
    assert_eq!((done.lock().unwrap().len(), shard.changes.len(), shard.applied), (0, 3, 0));
    assert_eq!(outcome.ended, RunEnd::Failed, "something is odd");
    let (done, integration) = job(2);
    assert_eq!(
        (play(&integration, Mode::Real).applied(), done.lock().unwrap().join(" ").as_str()),
        (3, "new old-0 old-1")
    );
    let (done, integration) = job(12);
    let outcome = play(&integration, Mode::Real);
    assert_eq!((done.lock().unwrap().len(), outcome.shards.values().next().unwrap().held.len()), (11, 2));
    assert!(outcome.approval.is_some());
}

/// A job of two changes, the first of which takes ten seconds.
struct SlowJob(IntegrationMeta);

impl Function for SlowJob {
    fn meta(&self) -> &IntegrationMeta {
        &self.0
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, cx: &FunctionContext<'_>) -> Result<(), Fault> {
        for (name, seconds) in [("one", 10), ("two", 0)] {
            let change = Change::new(ChangeKind::Add, object(name), "do");
            cx.apply(change, move |_| tokio::time::sleep(Duration::from_secs(seconds)).map(Ok).boxed())
                .await?;
        }
        Ok(())
    }
}

/// Records each write, and whether it was interrupted.
#[derive(Debug, Default)]
struct Trail(Mutex<Vec<(String, bool)>>);

impl Audit for Trail {
    fn record_write(&self, written: &WriteRecord<'_>) {
        let is_interrupted = written.fault.is_some_and(|fault| fault.is_interrupted);
        self.0.lock().unwrap().push((written.changes[0].object.name.clone(), is_interrupted));
    }
}

#[test]
fn a_function_finishes_a_change_in_progress_until_a_shutdown_is_forced() {
    use StepResult::{Done, Interrupted, NotTried};
    let check = |ask: u64, force: u64, expect: &[StepResult], trail: &[(&str, bool)]| {
        let ((stopper, stop), audit) = (ShutdownSignal::pair(), Arc::new(Trail::default()));
        let mut request = RunRequest::new(
            "run",
            Mode::Real,
            source(&Stock::new()),
            jiff::civil::date(2026, 1, 1),
            ProtectedKinds::default(),
        );
        (request.validate_schemas, request.shutdown, request.audit) = (false, stop, Arc::clone(&audit) as _);
        let integration = Integration::function(SlowJob(IntegrationMeta::new("job", "")));
        let shutdown = async {
            tokio::time::sleep(Duration::from_secs(ask)).await;
            stopper.request_by(TerminationSignal::Interrupt);
            tokio::time::sleep(Duration::from_secs(force - ask)).await;
            stopper.force();
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (outcome, ()) = runtime.block_on(async { tokio::join!(run(&integration, &request), shutdown) });
        let shard = outcome.shards.values().next().unwrap();
        let results: Vec<StepResult> = shard.changes.iter().map(|change| change.result).collect();
        assert_eq!(results, expect, "requested at {ask}, forced at {force}");
        let written: Vec<(String, bool)> = audit.0.lock().unwrap().clone();
        let written: Vec<(&str, bool)> = written.iter().map(|(name, is)| (name.as_str(), *is)).collect();
        assert_eq!(written, trail, "requested at {ask}, forced at {force}");
        let ended = if ask > 10 { RunEnd::Ok } else { RunEnd::Interrupted };
        assert_eq!(outcome.ended, ended);
        let abandoned = usize::from(trail == [("one", true)]);
        assert_eq!((stopper.abandoned().len(), shard.faults.len()), (abandoned, abandoned));
        if abandoned > 0 {
            assert_eq!(shard.faults[0].text, "interrupted: + do `one` (ladder=l) may be partially applied");
        }
    };
    check(20, 30, &[Done, Done], &[("one", false), ("two", false)]);
    check(5, 20, &[Done, NotTried], &[("one", false)]);
    check(5, 7, &[Interrupted], &[("one", true)]);
}
