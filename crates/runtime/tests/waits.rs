//! Waiting for operations in progress: a deployment that rolls out, and a record that is written only once the
//! rollout was observed to be complete. `cargo xtask chaos waits` runs many more seeds.
#![allow(clippy::unwrap_used, reason = "what a test unwraps is its expectation")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use qontract_access::Mode;
use qontract_runtime::guard::ProtectedKinds;
use qontract_runtime::reconcile_loop::{
    Isolation, Limiter, LoopContext, LoopEvent, LoopExit, LoopJob, LoopObserver, LoopOrders, LoopSettings,
    Schedule, ShutdownSignal, WatchdogLimits,
};
use qontract_runtime::state::{DeclaredState, Shard};
use qontract_runtime::{
    ApplyResult, BundleReader, Change, ChangeKind, CurrentState, Data, DeclaredShardView, DeclaredStateOf,
    DesiredItem, DesiredState, Fault, Integration, IntegrationMeta, LoadedBundle, ObjectKey, Observed,
    Options, Plan, ReadContext, Rollout, RolloutProgress, RunEnd, RunOutcome, RunRequest, Scope, ShardKey,
    StagedIntegration, Wait, WriteContext, run,
};
use qontract_testkit::{SeededRng, chaos_count};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

const TODAY: jiff::civil::Date = jiff::civil::date(2026, 1, 1);

/// A bundle without data: the applications are fixed.
fn source() -> Arc<dyn BundleReader> {
    let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {}, "data": {},
        "graphql": [{"name": "Query", "fields": [{"name": "none", "type": "string"}]}]}"#;
    let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default()).unwrap();
    Arc::new(LoadedBundle::new(Arc::new(qontract_graphql::Engine::new(Arc::new(bundle)).unwrap())))
}

/// The interval between two observations.
const EVERY: Duration = Duration::from_secs(5);

/// The application that is deployed.
#[derive(Clone, Debug, Default)]
struct App {
    /// The image that was applied, and when its rollout is complete.
    applied: Option<(u32, Instant)>,
    /// The image of the last record.
    recorded: Option<u32>,
}

/// The target.
#[derive(Default)]
struct Target {
    apps: BTreeMap<&'static str, App>,
    /// Duration of a rollout.
    takes: Duration,
    /// Number of observations until a read fails.
    reads_until_failure: Option<u32>,
    /// Number of writes until the process crashes.
    writes_until_crash: Option<usize>,
    /// The write in which the process has crashed.
    crashed_in: Option<&'static str>,
    /// Whether the rollouts fail.
    fails: bool,
    /// Whether the rollout is reported as a rollout instead of a wait.
    as_rollout: bool,
    crash: Arc<Notify>,
    problems: Vec<String>,
}

impl Target {
    fn write(&mut self, what: &'static str) -> bool {
        let Some(left) = &mut self.writes_until_crash else { return true };
        if *left == 0 {
            self.crashed_in.get_or_insert(what);
            self.crash.notify_one();
            return false;
        }
        *left -= 1;
        true
    }
}

struct Deploys {
    meta: IntegrationMeta,
    target: Arc<Mutex<Target>>,
    /// The desired image.
    image: Arc<AtomicU32>,
    resolved: Arc<AtomicU32>,
    apps: &'static [&'static str],
}

type View<'a> = DeclaredShardView<'a, (), (), &'static str>;

fn object(app: &str, kind: &str) -> ObjectKey {
    ObjectKey { scope: Scope::new([("app", app)]), kind: kind.to_owned(), name: app.to_owned() }
}

impl StagedIntegration for Deploys {
    type Common = ();
    type Target = ();
    type State = &'static str;
    type Desired = u32;
    type Current = (App, Instant, bool, bool);
    type Action = (&'static str, u32, &'static str);

    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn declare(&self, _: &Data, _: &Options) -> Result<DeclaredStateOf<Self>, Fault> {
        let mut declared = DeclaredState::new(());
        for app in self.apps {
            declared.add(ShardKey::new([("app", *app)]), Shard::new((), *app, None));
        }
        Ok(declared)
    }

    async fn resolve(&self, _: &ReadContext, view: View<'_>) -> Result<Vec<DesiredItem<u32>>, Fault> {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        let image = self.image.load(Ordering::Relaxed);
        let (object, state) = (object(view.shard.state, "Deployment"), DesiredState::Present(image));
        Ok(vec![DesiredItem { object, place: None, state }])
    }

    async fn observe(
        &self,
        _: &ReadContext,
        view: View<'_>,
        _: &[DesiredItem<u32>],
    ) -> Result<CurrentState<Self::Current>, Fault> {
        sleep(Duration::from_millis(50)).await;
        let mut target = self.target.lock().unwrap();
        if let Some(left) = &mut target.reads_until_failure {
            if *left == 0 {
                return Err(Fault::remote("cannot read the deployment: timed out"));
            }
            *left -= 1;
        }
        let (fails, as_rollout) = (target.fails, target.as_rollout);
        let app = target.apps.entry(view.shard.state).or_default().clone();
        let current = (app, Instant::now(), fails, as_rollout);
        Ok(BTreeMap::from([(Scope::new([("app", view.shard.state)]), Observed::Known(vec![current]))]))
    }

    fn plan(
        &self,
        desired: &[DesiredItem<u32>],
        current: &CurrentState<Self::Current>,
    ) -> Plan<Self::Action> {
        let mut plan = Plan::default();
        for item in desired {
            let DesiredState::Present(image) = item.state else { continue };
            let Some(Observed::Known(seen)) = current.get(&item.object.scope) else { continue };
            let (app, now, fails, as_rollout) = &seen[0];
            let name = *self.apps.iter().find(|name| **name == item.object.name).unwrap();
            match app.applied {
                Some((applied, done)) if applied == image => {
                    let progress = match (*now < done, fails) {
                        (_, true) => Some(RolloutProgress::Failed),
                        (true, false) => Some(RolloutProgress::InProgress),
                        (false, false) => None,
                    };
                    let text = format!("rollout of `{name}`");
                    match progress {
                        Some(progress) if *as_rollout => {
                            plan.rollouts.push(Rollout {
                                object: item.object.clone(),
                                progress,
                                text,
                                place: None,
                            });
                        }
                        Some(_) => plan.waits.push(Wait { text, place: None }),
                        None if app.recorded != Some(image) => {
                            let change = Change::new(ChangeKind::Add, object(name, "Record"), "write record");
                            plan.add_step(change, (name, image, "record"));
                        }
                        None => {}
                    }
                }
                _ => {
                    let change = Change::new(ChangeKind::Change, item.object.clone(), "deploy");
                    plan.add_step(change, (name, image, "deploy"));
                }
            }
        }
        plan
    }

    async fn apply(&self, _: &WriteContext<'_>, action: &Self::Action) -> Result<ApplyResult, Fault> {
        let (name, image, what) = *action;
        sleep(Duration::from_millis(20)).await;
        let crash = {
            let mut target = self.target.lock().unwrap();
            let takes = target.takes;
            let goes_on = target.write(what);
            let app = target.apps.get_mut(name).unwrap();
            if what == "deploy" {
                app.applied = Some((image, Instant::now() + takes));
            } else {
                let is_complete =
                    app.applied.is_some_and(|(applied, done)| applied == image && Instant::now() >= done);
                app.recorded = Some(image);
                if !is_complete {
                    target.problems.push(format!("`{name}` was recorded before its rollout was complete"));
                }
            }
            !goes_on
        };
        if crash {
            // The write happened, but the process does not live to see the answer.
            std::future::pending::<()>().await;
        }
        Ok(ApplyResult::Done)
    }
}

struct Fixture {
    target: Arc<Mutex<Target>>,
    image: Arc<AtomicU32>,
    resolved: Arc<AtomicU32>,
    integration: Arc<Integration>,
}

impl Fixture {
    fn new(patience: Duration, change: impl Fn(IntegrationMeta) -> IntegrationMeta) -> Self {
        let (target, image, resolved) =
            (Arc::<Mutex<Target>>::default(), Arc::new(AtomicU32::new(1)), Arc::default());
        let meta = change(IntegrationMeta::new("deploys", "Deploys").patience(EVERY, patience));
        let deploys = Deploys {
            meta,
            target: Arc::clone(&target),
            image: Arc::clone(&image),
            resolved: Arc::clone(&resolved),
            apps: &["billing", "shop"],
        };
        Self { target, image, resolved, integration: Arc::new(Integration::staged(deploys)) }
    }

    fn with(patience: Duration, takes: Duration) -> Self {
        let fixture = Self::new(patience, |meta| meta);
        fixture.target.lock().unwrap().takes = takes;
        fixture
    }

    async fn run(&self, change: impl Fn(&mut RunRequest)) -> RunOutcome {
        run(&self.integration, &request(change)).await
    }

    fn recorded(&self) -> Vec<Option<u32>> {
        self.target.lock().unwrap().apps.values().map(|app| app.recorded).collect()
    }
}

fn request(change: impl Fn(&mut RunRequest)) -> RunRequest {
    let head = source();
    let mut request = RunRequest::new("run", Mode::Real, head, TODAY, ProtectedKinds::default());
    request.validate_schemas = false;
    change(&mut request);
    request
}

fn totals(outcome: &RunOutcome) -> (u32, u32, usize) {
    let shards = outcome.shards.values();
    let rounds = shards.clone().map(|shard| shard.rounds).max().unwrap_or_default();
    let observations = shards.clone().map(|shard| shard.observations).max().unwrap_or_default();
    (rounds, observations, shards.map(|shard| shard.waits.len()).sum())
}

#[tokio::test(start_paused = true)]
async fn a_dependent_step_follows_in_the_same_run_once_the_operation_is_complete() {
    let fixture = Fixture::new(Duration::from_mins(2), |meta| meta.rounds(2));
    fixture.target.lock().unwrap().takes = Duration::from_secs(23);
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.exit_code(), outcome.applied()), (RunEnd::Ok, 0, 4));
    // Round 1 deploys, round 2 sees the wait, and five observations follow at intervals of five seconds.
    assert_eq!(totals(&outcome), (2, 5, 0));
    assert_eq!(fixture.recorded(), [Some(1), Some(1)]);
    assert_eq!(fixture.resolved.load(Ordering::Relaxed), 2, "once per shard");
    let second = fixture.run(|_| {}).await;
    assert_eq!((second.ended, second.applied()), (RunEnd::Ok, 0));
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_as_waiting_when_its_patience_ends() {
    let fixture = Fixture::with(Duration::from_secs(12), Duration::from_secs(40));
    fixture.run(|_| {}).await;
    let begun = Instant::now();
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.exit_code(), totals(&outcome).2), (RunEnd::Waiting, 75, 2));
    assert!((12..14).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!(fixture.recorded(), [None, None]);
    sleep(Duration::from_secs(40)).await;
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 2));
    assert_eq!(fixture.run(|_| {}).await.applied(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_does_not_wait() {
    let fixture = Fixture::with(Duration::from_mins(2), Duration::from_secs(40));
    fixture.run(|_| {}).await;
    let begun = Instant::now();
    let outcome = fixture.run(|request| request.mode = Mode::DryRun).await;
    assert_eq!((outcome.ended, outcome.exit_code(), totals(&outcome).1), (RunEnd::Ok, 0, 0));
    assert!(begun.elapsed() < EVERY);
}

#[tokio::test(start_paused = true)]
async fn a_fault_ends_the_wait_of_its_shard() {
    let fixture = Fixture::with(Duration::from_mins(5), Duration::from_mins(2));
    fixture.target.lock().unwrap().reads_until_failure = Some(2 + 2 + 4);
    fixture.run(|_| {}).await;
    let begun = Instant::now();
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Transient, 75));
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_eq!(fixture.recorded(), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_and_newer_data_end_the_wait_at_once() {
    let fixture = Fixture::with(Duration::from_mins(30), Duration::from_mins(20));
    let (sender, receiver) = tokio::sync::watch::channel(0u64);
    tokio::spawn(async move {
        sleep(Duration::from_secs(17)).await;
        sender.send_replace(1);
        sleep(Duration::from_hours(1)).await;
    });
    let begun = Instant::now();
    fixture.run(|_| {}).await;
    let outcome = fixture.run(|request| request.newer_data = Some(receiver.clone())).await;
    assert_eq!((outcome.ended, begun.elapsed().as_secs()), (RunEnd::Waiting, 17));

    let (trigger, stop) = ShutdownSignal::pair();
    tokio::spawn(async move {
        sleep(Duration::from_secs(17)).await;
        trigger.request();
        sleep(Duration::from_hours(1)).await;
    });
    let begun = Instant::now();
    let outcome = fixture.run(|request| request.shutdown = stop.clone()).await;
    assert_eq!((outcome.ended, begun.elapsed().as_secs()), (RunEnd::Interrupted, 17));
}

#[tokio::test(start_paused = true)]
async fn an_integration_may_resolve_again_after_a_wait() {
    let fixture = Fixture::new(Duration::from_mins(2), |meta| meta.rounds(2).resolves_each_round());
    fixture.target.lock().unwrap().takes = Duration::from_secs(8);
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 4));
    // Round 1 deploys, round 2 waits; after the wait, round 3 resolves again.
    assert_eq!(fixture.resolved.load(Ordering::Relaxed), 6, "three rounds of two shards");
    assert_eq!(totals(&outcome).0, 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_roll_outs_only_on_request() {
    let fixture = Fixture::with(Duration::ZERO, Duration::from_secs(23));
    fixture.target.lock().unwrap().as_rollout = true;
    fixture.run(|_| {}).await;
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, totals(&outcome)), (RunEnd::Ok, (1, 0, 0)));
    assert_eq!(outcome.shards.values().map(|shard| shard.rollouts.len()).sum::<usize>(), 2);

    fixture.image.store(2, Ordering::Relaxed);
    let wait = |total| move |request: &mut RunRequest| request.await_rollouts = Some(total);
    let outcome = fixture.run(wait(Duration::from_mins(1))).await;
    assert_eq!((outcome.ended, outcome.applied()), (RunEnd::Ok, 4), "deploys, waits and records");

    fixture.image.store(3, Ordering::Relaxed);
    let outcome = fixture.run(wait(Duration::from_secs(10))).await;
    assert_eq!((outcome.ended, outcome.exit_code(), outcome.applied()), (RunEnd::Waiting, 75, 2));
}

#[tokio::test(start_paused = true)]
async fn a_failed_roll_out_degrades_a_run_and_fails_one_that_waits() {
    let fixture = Fixture::with(Duration::ZERO, Duration::from_secs(23));
    fixture.target.lock().unwrap().as_rollout = true;
    fixture.run(|_| {}).await;
    fixture.target.lock().unwrap().fails = true;
    let outcome = fixture.run(|_| {}).await;
    assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Degraded, 0));
    let degraded = &outcome.shards.values().next().unwrap().degraded[0].text;
    assert_eq!(degraded, "rollout of Deployment `billing` (app=billing) failed: rollout of `billing`");
    let begun = Instant::now();
    let outcome = fixture.run(|request| request.await_rollouts = Some(Duration::from_mins(5))).await;
    assert!(begun.elapsed() < EVERY, "nothing is left to wait for");
    assert_eq!((outcome.ended, outcome.exit_code()), (RunEnd::Failed, 1));
    assert_eq!(outcome.all_faults().count(), 2, "each fault once");
}

struct Job(Fixture, Arc<Mutex<Vec<RunEnd>>>);

impl LoopJob for Job {
    fn run_once(&self, stop: ShutdownSignal) -> futures_util::future::BoxFuture<'static, RunEnd> {
        let (integration, ends) = (Arc::clone(&self.0.integration), Arc::clone(&self.1));
        Box::pin(async move {
            let outcome = run(&integration, &request(|request| request.shutdown = stop.clone())).await;
            ends.lock().unwrap().push(outcome.ended);
            outcome.ended
        })
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<LoopEvent>>);

impl LoopObserver for Events {
    fn observe(&self, event: LoopEvent) {
        self.0.lock().unwrap().push(event);
    }
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_sees_a_wait_as_progress_and_the_loop_comes_back_soon() {
    let fixture = Fixture::new(Duration::from_mins(3), |meta| meta.rounds(2));
    fixture.target.lock().unwrap().takes = Duration::from_mins(10);
    let ends = Arc::<Mutex<Vec<RunEnd>>>::default();
    let schedule = Schedule {
        interval: Duration::from_hours(1),
        initial_backoff: Duration::from_secs(10),
        jitter: 0.0,
        ..Schedule::default()
    };
    // Without a sign of life for twenty seconds, a run counts as stalled; a wait takes three minutes.
    let limits = WatchdogLimits {
        heartbeat_interval: Duration::from_secs(1),
        stall_timeout: Duration::from_secs(20),
        ..WatchdogLimits::default()
    };
    let settings = LoopSettings {
        schedule,
        limits,
        isolation: Isolation::Task,
        limiter: Limiter::default(),
        once: false,
    };
    let (trigger, stop) = ShutdownSignal::pair();
    tokio::spawn(async move {
        sleep(Duration::from_mins(30)).await;
        trigger.request();
        sleep(Duration::from_hours(1)).await;
    });
    let (_sender, data) = tokio::sync::watch::channel(0);
    let events = Events::default();
    let context =
        LoopContext { data, shutdown: stop, orders: LoopOrders::none(), random: || 0.5, observer: &events };
    let job = Arc::new(Job(fixture, Arc::clone(&ends)));
    let running = Arc::<Job>::clone(&job);
    assert_eq!(settings.run(running, context).await, LoopExit::Stopped);
    let events = events.0.into_inner().unwrap();
    assert!(!events.iter().any(|event| matches!(event, LoopEvent::Stalled(_))), "a wait is no stall");
    let pauses: Vec<u64> = events
        .iter()
        .filter_map(|event| if let LoopEvent::Sleeping(pause) = event { Some(pause.as_secs()) } else { None })
        .collect();
    // Three runs wait in vain, and each is followed by the short pause, which does not grow.
    assert_eq!(pauses, [10, 10, 10, 3600]);
    assert_eq!(*ends.lock().unwrap(), [RunEnd::Waiting, RunEnd::Waiting, RunEnd::Waiting, RunEnd::Ok]);
    let second = job.0.run(|_| {}).await;
    assert_eq!((second.ended, second.applied()), (RunEnd::Ok, 0));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_exceeds_the_stall_timeout_is_not_a_stall() {
    let fixture = Fixture::new(Duration::from_mins(3), |meta| meta.rounds(2));
    fixture.target.lock().unwrap().takes = Duration::from_mins(1);
    let limits = WatchdogLimits {
        heartbeat_interval: Duration::from_secs(1),
        stall_timeout: Duration::from_secs(2),
        ..WatchdogLimits::default()
    };
    let settings = LoopSettings {
        schedule: Schedule {
            interval: Duration::from_hours(1),
            initial_backoff: Duration::from_secs(10),
            jitter: 0.0,
            ..Schedule::default()
        },
        limits: limits.for_integration(fixture.integration.meta()),
        isolation: Isolation::Task,
        limiter: Limiter::default(),
        once: true,
    };
    let (_trigger, shutdown) = ShutdownSignal::pair();
    let (_sender, data) = tokio::sync::watch::channel(0);
    let events = Events::default();
    let context =
        LoopContext { data, shutdown, orders: LoopOrders::none(), random: || 0.5, observer: &events };
    let ends = Arc::<Mutex<Vec<RunEnd>>>::default();
    settings.run(Arc::new(Job(fixture, Arc::clone(&ends))), context).await;
    let events = events.0.into_inner().unwrap();
    assert!(!events.iter().any(|event| matches!(event, LoopEvent::Stalled(_))), "a pause is no stall");
    assert_eq!(*ends.lock().unwrap(), [RunEnd::Ok]);
}

/// The phases in which a run can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KillPhase {
    Deploy,
    Wait,
    Record,
}

impl Target {
    /// The phase in which the run was killed just now, if it is one of these.
    fn killed_in(&self) -> Option<KillPhase> {
        let is_waiting = |app: &App| app.applied.is_some_and(|(_, done)| Instant::now() < done);
        match self.crashed_in {
            Some("deploy") => Some(KillPhase::Deploy),
            Some(_) => Some(KillPhase::Record),
            None => self.apps.values().any(is_waiting).then_some(KillPhase::Wait),
        }
    }
}

/// One seed: runs that crash at a random point, then runs without faults until nothing is left to do. Counts the
/// crashes by phase.
async fn play(seed: u64, kills: &mut BTreeMap<KillPhase, usize>) {
    let mut chance = SeededRng::new(seed);
    let fixture = Fixture::new(Duration::from_secs(30), |meta| {
        if seed.is_multiple_of(3) { meta.rounds(2).resolves_each_round() } else { meta.rounds(2) }
    });
    fixture.target.lock().unwrap().takes = Duration::from_secs(chance.below(50) as u64);
    for _ in 0..=chance.below(4) {
        if chance.percent(40) {
            fixture.image.fetch_add(1, Ordering::Relaxed);
        }
        let crash = {
            let mut target = fixture.target.lock().unwrap();
            target.writes_until_crash = chance.percent(60).then(|| chance.below(5));
            target.reads_until_failure = chance.percent(20).then(|| u32::try_from(chance.below(20)).unwrap());
            target.crash = Arc::default();
            target.crashed_in = None;
            Arc::clone(&target.crash)
        };
        let killed = Duration::from_millis(chance.below(60_000) as u64);
        let was_killed = tokio::select! {
            outcome = fixture.run(|_| {}) => {
                let has_waits = outcome.shards.values().any(|shard| !shard.waits.is_empty());
                assert!(!has_waits || outcome.exit_code() == 75, "seed {seed}: a wait ended with {:?}", outcome.ended);
                false
            }
            () = crash.notified() => true,
            () = sleep(killed) => true,
        };
        if let Some(phase) = fixture.target.lock().unwrap().killed_in().filter(|_| was_killed) {
            *kills.entry(phase).or_default() += 1;
        }
        let problems = fixture.target.lock().unwrap().problems.clone();
        assert_eq!(problems, [""; 0], "seed {seed}");
    }
    {
        let mut target = fixture.target.lock().unwrap();
        (target.writes_until_crash, target.reads_until_failure) = (None, None);
    }
    let mut last = fixture.run(|_| {}).await;
    for _ in 0..4 {
        if last.ended == RunEnd::Ok && last.applied() == 0 {
            break;
        }
        last = fixture.run(|_| {}).await;
    }
    assert_eq!((last.ended, last.applied()), (RunEnd::Ok, 0), "seed {seed}: it does not converge");
    let image = Some(fixture.image.load(Ordering::Relaxed));
    assert_eq!(fixture.recorded(), [image, image], "seed {seed}");
    assert_eq!(fixture.target.lock().unwrap().problems, [""; 0], "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_point_of_a_wait_loses_nothing_and_records_nothing_false() {
    let mut kills = BTreeMap::new();
    for seed in 0..chaos_count(50) {
        play(seed, &mut kills).await;
    }
    for phase in [KillPhase::Deploy, KillPhase::Wait, KillPhase::Record] {
        assert!(kills.contains_key(&phase), "no run was killed in the phase {phase:?}: {kills:?}");
    }
}
