//! Tests of the supervisor with scripted integrations and a paused clock.

use std::cell::RefCell;
use std::io::{self, Write};

use qontract_runtime::lease::NoLeases;
use qontract_runtime::{Data, Function, FunctionContext, FunctionState, Integration, Options};
use qontract_telemetry::log::LineFormat;
use qontract_testkit::Scratch;

use super::*;
use crate::exit::ExitConvention;
use crate::registry::IntegrationEntry;
use crate::test_data::{ReplaceableSource, data_with};

/// The behaviour of a run of a scripted integration.
#[derive(Clone, Copy)]
enum Act {
    Succeeds,
    Fails,
    FailsForNow,
    Panics,
}

struct ScriptedIntegration {
    meta: IntegrationMeta,
    act: Act,
}

thread_local! {
    /// The integrations that ran, in order. All runs of a test are on the thread of the test.
    static RUNS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn runs() -> Vec<String> {
    RUNS.with(|runs| runs.borrow().clone())
}

impl Function for ScriptedIntegration {
    fn meta(&self) -> &IntegrationMeta {
        &self.meta
    }

    fn state(&self, _: &Data, _: &Options) -> Result<Option<FunctionState>, Fault> {
        Ok(None)
    }

    async fn run(&self, _: &FunctionContext<'_>) -> Result<(), Fault> {
        RUNS.with(|runs| runs.borrow_mut().push(self.meta.name.clone()));
        match self.act {
            Act::Succeeds => Ok(()),
            Act::Fails => Err(Fault::operator("it fails")),
            Act::FailsForNow => Err(Fault::remote("it is away")),
            Act::Panics => panic!("a run panics in this test"),
        }
    }
}

fn meta(name: &str) -> IntegrationMeta {
    let meta = IntegrationMeta::new(name, "Follows a script");
    if name == "groundwork" { meta.runs_first() } else { meta }
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a registry entry")]
fn scripted(name: &str, act: Act) -> anyhow::Result<Integration> {
    Ok(Integration::function(ScriptedIntegration { meta: meta(name), act }))
}

static ENTRIES: [IntegrationEntry; 6] = [
    IntegrationEntry::new(|| meta("fine"), |_| scripted("fine", Act::Succeeds)),
    IntegrationEntry::new(|| meta("another"), |_| scripted("another", Act::Succeeds)),
    IntegrationEntry::new(|| meta("groundwork"), |_| scripted("groundwork", Act::Succeeds)),
    IntegrationEntry::new(|| meta("failing"), |_| scripted("failing", Act::Fails)),
    IntegrationEntry::new(|| meta("away"), |_| scripted("away", Act::FailsForNow)),
    IntegrationEntry::new(|| meta("panicking"), |_| scripted("panicking", Act::Panics)),
];

static UNSTARTABLE: [IntegrationEntry; 2] = [
    IntegrationEntry::new(|| meta("fine"), |_| scripted("fine", Act::Succeeds)),
    IntegrationEntry::new(|| meta("broken"), |_| anyhow::bail!("a program is missing")),
];

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A supervisor of data that defines some integrations.
struct Fixture {
    supervisor: Supervisor,
    source: Arc<ReplaceableSource>,
    lines: Lines,
    _records: Scratch,
}

impl Fixture {
    fn new(entries: &'static [IntegrationEntry], defined: &[&str]) -> Self {
        let (lines, records) = (Lines::default(), Scratch::new());
        let source = Arc::new(ReplaceableSource::new(data_with(defined)));
        let supervisor = Supervisor {
            integrations: Registry::new(entries),
            config: Config::default(),
            targets: Targets::none(),
            source: Arc::clone(&source) as _,
            runs: Arc::new(RunStore::new(Some(records.path().join("runs"))).expect("a directory")),
            orders: None,
            ledger: Arc::new(crate::journal::of_sandbox(records.path())),
            journal: Arc::new(crate::journal::of_sandbox(records.path())),
            leases: Arc::new(NoLeases),
            journal_folder: Some(records.path().join("journal")),
            log: Arc::new(Log::new(Level::Info).with_output(LineFormat::Plain, lines.clone())),
            metrics: Arc::new(Metrics::default()),
            run_level: Level::Info,
            mode: Mode::Real,
            bodies: Bodies::default(),
            every: Duration::from_mins(10),
            limiter: Limiter::default(),
            isolation: Isolation::Task,
            unchecked: UncheckedIntegrations::default(),
        };
        Self { supervisor, source, lines, _records: records }
    }

    /// The exit code of `--once`.
    async fn once(&self) -> u8 {
        let (exit, _) = self.supervisor.once(&ShutdownSignal::never()).await.expect("runs");
        exit.code(ExitConvention::Detailed)
    }

    fn log(&self) -> String {
        String::from_utf8(self.lines.0.lock().clone()).expect("text")
    }
}

fn names(registry: &LoopRegistry) -> Vec<String> {
    registry.all().iter().map(|reporter| reporter.integration().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_integrations_that_the_data_defines_and_the_binary_contains_run() {
    let fixture = Fixture::new(&ENTRIES, &["fine", "unknown", "another"]);
    let mut names = fixture.supervisor.names().expect("a list");
    names.sort();
    assert_eq!(names, ["another", "fine"]);
    assert_eq!(fixture.log(), "");
    let none = Fixture::new(&ENTRIES, &["unknown"]);
    assert_eq!(none.supervisor.names().expect("a list"), [""; 0]);
    assert!(none.log().contains("no integration that the data defines is available"), "{}", none.log());
}

#[tokio::test(start_paused = true)]
async fn once_ends_with_the_worst_result() {
    let check = async |defined: &[&str], expect: u8| {
        let fixture = Fixture::new(&ENTRIES, defined);
        assert_eq!(fixture.once().await, expect, "{defined:?}: {}", fixture.log());
    };
    check(&["fine", "another"], 0).await;
    check(&["fine", "failing"], 1).await;
    check(&["fine", "away"], 75).await;
    check(&["away", "failing"], 1).await;
    check(&["failing", "away"], 1).await;
}

#[tokio::test(start_paused = true)]
async fn once_repeats_only_runs_with_transient_failures() {
    let fixture = Fixture::new(&ENTRIES, &["fine", "failing", "away"]);
    fixture.once().await;
    let count = |name: &str| runs().iter().filter(|run| *run == name).count();
    assert_eq!([count("fine"), count("failing"), count("away")], [1, 1, MAX_PASSES as usize]);
}

#[tokio::test(start_paused = true)]
async fn others_start_after_the_integrations_that_they_depend_on() {
    let fixture = Fixture::new(&ENTRIES, &["another", "fine", "groundwork"]);
    assert_eq!(fixture.once().await, 0);
    assert_eq!(runs().first().map(String::as_str), Some("groundwork"));
    assert_eq!(runs().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_own_run_only() {
    let fixture = Fixture::new(&ENTRIES, &["fine", "panicking"]);
    assert_eq!(fixture.once().await, 1);
    assert!(fixture.log().contains("ok changes=0 held=0 integration=fine"), "{}", fixture.log());
}

#[tokio::test(start_paused = true)]
async fn an_integration_that_cannot_be_created_does_not_stop_the_others() {
    let fixture = Fixture::new(&UNSTARTABLE, &["fine", "broken"]);
    assert_eq!(fixture.once().await, 1);
    assert!(
        fixture.log().contains("cannot start the integration: a program is missing"),
        "{}",
        fixture.log()
    );
    assert_eq!(runs(), ["fine"]);
}

#[tokio::test(start_paused = true)]
async fn once_ends_without_runs_if_it_is_interrupted_before() {
    let fixture = Fixture::new(&ENTRIES, &["fine"]);
    let (stopper, stop) = ShutdownSignal::pair();
    stopper.request_by(TerminationSignal::Interrupt);
    let (exit, records) = fixture.supervisor.once(&stop).await.expect("no error");
    assert_eq!((exit.code(ExitConvention::Plain), records.is_none()), (130, true));
    assert_eq!(runs(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn loops_follow_the_integrations_that_the_data_defines() {
    let fixture = Fixture::new(&ENTRIES, &["fine"]);
    let (stopper, stop) = ShutdownSignal::pair();
    let registry = Arc::<LoopRegistry>::default();
    let script = async {
        // The clock is paused: it advances only when all tasks wait.
        let settle = || tokio::time::sleep(Duration::from_secs(1));
        settle().await;
        assert_eq!(names(&registry), ["fine"]);
        fixture.source.replace(data_with(&["another", "fine"]));
        settle().await;
        assert_eq!(names(&registry), ["another", "fine"]);
        fixture.source.replace(data_with(&["another"]));
        settle().await;
        assert_eq!(names(&registry), ["another"]);
        fixture.source.replace(data_with(&["another", "fine"]));
        settle().await;
        assert_eq!(names(&registry), ["another", "fine"], "a loop that ended is started again");
        stopper.request();
    };
    let (exit, ()) = tokio::join!(fixture.supervisor.run(Arc::clone(&registry), stop), script);
    assert_eq!(exit.expect("no error"), Exit::Ok);
    assert!(registry.all().iter().all(|reporter| reporter.status().last.is_some()));
}

#[tokio::test(start_paused = true)]
async fn an_integration_that_cannot_be_started_is_listed_while_others_run() {
    let fixture = Fixture::new(&UNSTARTABLE, &["fine", "broken"]);
    let (stopper, stop) = ShutdownSignal::pair();
    let registry = Arc::<LoopRegistry>::default();
    let script = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            (names(&registry), registry.unstarted()),
            (vec!["fine".to_owned()], vec!["broken".to_owned()])
        );
        let failures = || fixture.log().matches("cannot start the integration").count();
        assert_eq!(failures(), 1);
        tokio::time::sleep(fixture.supervisor.every).await;
        assert_eq!(failures(), 2, "it is retried at the interval of the loops");
        stopper.request();
    };
    let (exit, ()) = tokio::join!(fixture.supervisor.run(Arc::clone(&registry), stop), script);
    assert_eq!(exit.expect("no error"), Exit::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_loop_continues_after_a_run_that_panics() {
    let fixture = Fixture::new(&ENTRIES, &["panicking"]);
    let (stopper, stop) = ShutdownSignal::pair();
    let registry = Arc::<LoopRegistry>::default();
    let script = async {
        tokio::time::sleep(fixture.supervisor.every * 2).await;
        assert_eq!(names(&registry), ["panicking"]);
        stopper.request();
    };
    let (exit, ()) = tokio::join!(fixture.supervisor.run(Arc::clone(&registry), stop), script);
    assert_eq!(exit.expect("no error"), Exit::Ok);
    assert!(runs().len() > 1, "{:?}", runs());
}
