//! Supervisor of the loops of `up`: one loop for each integration that the data defines and the binary
//! contains.

mod planned_records;
mod restart;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use qontract_access::Mode;
use qontract_config::Config;
use qontract_journal::Journal;
use qontract_runtime::guard::Ledger;
use qontract_runtime::lease::Leases;
use qontract_runtime::reconcile_loop::{
    Isolation, Limiter, LoopContext, LoopExit, LoopOrders, LoopSettings, Schedule, ShutdownSignal,
    ShutdownTrigger, TerminationSignal,
};
use qontract_runtime::{Bodies, Fault, IntegrationMeta, Options, RunEnd, RunRecord, definition};
use qontract_telemetry::log::{Level, Log, LogLine};
use qontract_telemetry::metrics::{Metrics, ProcessLabels};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::exit::{Exit, SandboxUnsupported};
use crate::loop_orders::OrderFeed;
use crate::reconciled_data::ReconciledData;
use crate::registry::{self, Registry, describe_missing};
use crate::reporter::LoopReporter;
use crate::run_settings::{RunSettings, TargetLocation};
use crate::run_store::RunStore;
use crate::runner::{RunObserver, Runner};
use crate::signals::{self, ShutdownTimeout};
use crate::source::DataSource;
use crate::targets::Targets;
use planned_records::{PlannedRecords, RecordCollector};
use restart::{SuperviseResult, SupervisorEvent, supervise, wait};

/// Maximum number of passes of `--once` over integrations with transient failures.
const MAX_PASSES: u32 = 3;

/// Maximum time that loops wait for the first runs of the integrations on which other integrations depend.
const GROUNDWORK_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which loops check whether these integrations have run.
const GROUNDWORK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time that loops get to end after the watchdog has forced their shutdown.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(15);

/// Integrations that cannot run on this machine, with the reasons.
pub type UncheckedIntegrations = Arc<Mutex<BTreeMap<String, String>>>;

/// Starts and supervises the loops, which share these settings.
pub struct Supervisor {
    /// The integrations of the binary.
    pub integrations: Registry,
    /// The configuration of the process.
    pub config: Config,
    /// The target systems.
    pub targets: Targets,
    /// The source of the data.
    pub source: Arc<dyn DataSource>,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// The journal that all processes share.
    pub journal: Arc<Journal>,
    /// The directory of the journal; `None` if it is in a bucket.
    pub journal_folder: Option<PathBuf>,
    /// The removal ledgers in the journal.
    pub ledger: Arc<dyn Ledger>,
    /// The leases of the shards.
    pub leases: Arc<dyn Leases>,
    /// The orders to the loops; `None` in a dry run, which obeys no orders.
    pub orders: Option<Arc<OrderFeed>>,
    /// The log of the process.
    pub log: Arc<Log>,
    /// The metrics of this process.
    pub metrics: Arc<Metrics>,
    /// The log level of the line about each run.
    pub run_level: Level,
    /// Whether runs may change target systems.
    pub mode: Mode,
    /// Whether plans show the content of created objects.
    pub bodies: Bodies,
    /// The time between two runs of an integration.
    pub every: Duration,
    /// The limiter of concurrent runs.
    pub limiter: Limiter,
    /// The isolation of runs from each other.
    pub isolation: Isolation,
    /// Integrations that cannot run on this machine, with the reasons. The reasons were logged.
    pub unchecked: UncheckedIntegrations,
}

/// Maximum time that a run waits for a permit of the concurrency limit.
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Creates the limiter of the loop concurrency. On a sandbox, sequential runs take no longer than concurrent ones and
/// need less memory. Runs on real targets mostly wait for the network, so they are concurrent.
pub fn limiter(sandbox: Option<&Path>) -> Limiter {
    if sandbox.is_some() { Limiter::new(1).with_wait_timeout(WAIT_TIMEOUT) } else { Limiter::default() }
}

/// Registry of the reporters of running loops, by integration.
#[derive(Default)]
pub struct LoopRegistry {
    loops: Mutex<BTreeMap<String, Arc<LoopReporter>>>,
    /// The integrations whose loops could not be started.
    unstarted: Mutex<BTreeSet<String>>,
}

impl LoopRegistry {
    /// The reporters of all running loops.
    pub fn all(&self) -> Vec<Arc<LoopReporter>> {
        self.loops.lock().values().cloned().collect()
    }

    /// Waits until the integrations on which others depend have run once, for up to [`GROUNDWORK_TIMEOUT`].
    async fn wait_for_groundwork(&self, integrations: Registry) {
        let is_done = || {
            let groundwork =
                self.all().into_iter().filter(|reporter| integrations.runs_first(reporter.integration()));
            groundwork.map(|reporter| reporter.status()).all(|status| status.last.is_some())
        };
        let waiting = async {
            while !is_done() {
                tokio::time::sleep(GROUNDWORK_POLL_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(GROUNDWORK_TIMEOUT, waiting).await;
    }

    /// The integrations whose loops could not be started.
    pub fn unstarted(&self) -> Vec<String> {
        self.unstarted.lock().iter().cloned().collect()
    }

    fn set_unstarted(&self, names: BTreeSet<String>) {
        *self.unstarted.lock() = names;
    }

    fn add(&self, name: &str, reporter: Arc<LoopReporter>) {
        self.loops.lock().insert(name.to_owned(), reporter);
    }

    fn remove(&self, name: &str) {
        self.loops.lock().remove(name);
    }
}

impl Supervisor {
    /// The integrations to run: those that the data defines, that are compiled in or configured, and that can run on
    /// this machine.
    fn names(&self) -> anyhow::Result<Vec<String>> {
        let defined = definition::all(&*self.source.current()?.source)?;
        let is_registered = |name: &String| self.integrations.has(name, &self.config);
        let names = defined.into_iter().map(|(name, _)| name).filter(is_registered);
        let names: Vec<String> = names.filter(|name| !self.is_unavailable(name)).collect();
        if names.is_empty() {
            let text = "no integration that the data defines is available: define one with a datafile of schema \
                `/app-sre/integration-1.yml`; `qontract integrations` lists those that are available";
            self.log.write(&LogLine::new(Level::Warning, text));
        }
        Ok(names)
    }

    /// Whether this machine lacks a requirement of an integration. A missing requirement is logged once.
    fn is_unavailable(&self, name: &str) -> bool {
        // Process integrations have no requirements to check. An integration that cannot be created is reported when
        // its loop is started.
        if self.config.integrations.contains_key(name) {
            return false;
        }
        let Ok(integration) = self.integrations.integration(name, &self.config, &self.targets) else {
            return false;
        };
        let Some(fault) = registry::unavailable(&integration) else { return false };
        self.skip(name, &describe_missing(&fault));
        true
    }

    /// Logs once that an integration cannot run on this machine. Its changes are unknown.
    fn skip(&self, name: &str, why: &str) {
        let mut unchecked = self.unchecked.lock();
        if unchecked.insert(name.to_owned(), why.to_owned()).is_none() {
            let line =
                LogLine::new(Level::Warning, format!("integration skipped: {why}; its changes are unknown"));
            self.log.write(&line.with("integration", name));
        }
    }

    /// The integrations that cannot run on this machine, with the reasons.
    pub fn unchecked(&self) -> BTreeMap<String, String> {
        self.unchecked.lock().clone()
    }

    fn reporter(&self, name: &str) -> Arc<LoopReporter> {
        let process = ProcessLabels {
            integration: name.to_owned(),
            shards: "1".to_owned(),
            shard_id: "0-1".to_owned(),
        };
        let reporter = LoopReporter::new(process, Arc::clone(&self.log), Arc::clone(&self.metrics));
        Arc::new(reporter.with_run_level(self.run_level))
    }

    fn runner(&self, name: &str, observer: Arc<dyn RunObserver>) -> anyhow::Result<Runner> {
        let integration = self.integrations.integration(name, &self.config, &self.targets)?;
        let location = if self.targets.is_sandbox() { TargetLocation::Sandbox } else { TargetLocation::Real };
        let ledger = Arc::clone(&self.ledger);
        let settings = RunSettings {
            options: RunSettings::with_variables(Options::default(), &integration)?,
            bodies: self.bodies,
            leases: Arc::clone(&self.leases),
            ..RunSettings::configured(self.mode, &self.config, location, ledger)?
        };
        let folder = self.journal_folder.as_deref();
        let reconciled = match self.source.identity() {
            Some(data) => ReconciledData::stored(&self.journal, folder, data, name, &settings),
            None => ReconciledData::default(),
        };
        Ok(Runner {
            integration: Arc::new(integration),
            source: Arc::clone(&self.source),
            settings,
            runs: Arc::clone(&self.runs),
            observer,
            reconciled,
        })
    }

    fn orders_to(&self, name: &str) -> LoopOrders {
        self.orders.as_ref().map_or_else(LoopOrders::none, |orders| orders.subscribe(name))
    }

    fn new_loop(&self, once: bool, meta: &IntegrationMeta) -> anyhow::Result<LoopSettings> {
        let limits = ShutdownTimeout::configured()?.watchdog_limits(signals::watchdog_limits()?, meta);
        let schedule = Schedule {
            interval: self.every,
            initial_backoff: Duration::from_secs(1).min(self.every),
            ..Schedule::default()
        };
        let (isolation, limiter) = (self.isolation, self.limiter.clone());
        Ok(LoopSettings { schedule, limits, isolation, limiter, once })
    }

    /// Runs each integration once and succeeds if all runs succeed. Runs with transient failures are repeated,
    /// because another integration may have created objects that they need, such as namespaces.
    ///
    /// Returns the records of dry runs, by integration; `None` if a shutdown interrupted the runs.
    pub async fn once(&self, stop: &ShutdownSignal) -> anyhow::Result<(Exit, Option<Vec<RunRecord>>)> {
        let (groundwork, mut remaining): (Vec<String>, _) =
            self.names()?.into_iter().partition(|name| self.integrations.runs_first(name));
        let mut worst = RunEnd::Ok;
        let planned = Arc::<PlannedRecords>::default();
        let mut ends = self.pass(&groundwork, &planned, stop).await?;
        for pass in 1..=MAX_PASSES {
            let mut again = Vec::new();
            ends.extend(self.pass(&remaining, &planned, stop).await?);
            if let Some(by) = stop.interruption() {
                return Ok((Exit::Signal(by), None));
            }
            for (name, ended) in std::mem::take(&mut ends) {
                if ended == RunEnd::Transient && pass < MAX_PASSES {
                    again.push(name);
                } else {
                    worst = worst.worse_of(ended);
                }
            }
            if again.is_empty() {
                break;
            }
            remaining = again;
        }
        let records: Vec<RunRecord> = std::mem::take(&mut *planned.lock()).into_values().collect();
        let has_news = worst.is_success() && records.iter().any(RunRecord::has_news);
        let exit = if has_news { Exit::Changes } else { Exit::Run(worst) };
        Ok((exit, Some(records)))
    }

    /// Runs some integrations once, concurrently, and returns their results.
    async fn pass(
        &self,
        names: &[String],
        planned: &Arc<PlannedRecords>,
        stop: &ShutdownSignal,
    ) -> anyhow::Result<Vec<(String, RunEnd)>> {
        let (mut running, mut ends) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|_| !stop.is_requested()) {
            let reporter = self.reporter(name);
            let observer: Arc<dyn RunObserver> = match self.mode {
                Mode::Real => Arc::clone(&reporter) as _,
                Mode::DryRun => Arc::new(RecordCollector {
                    reporter: Arc::clone(&reporter),
                    planned: Arc::clone(planned),
                }),
            };
            let runner = match self.runner(name, observer) {
                Ok(runner) => Arc::new(runner),
                Err(error) if error.is::<SandboxUnsupported>() => {
                    self.skip(name, &error.to_string());
                    continue;
                }
                Err(error) => {
                    self.log_start_failure(name, &error);
                    ends.push((name.clone(), RunEnd::Failed));
                    continue;
                }
            };
            let once = self.new_loop(true, runner.integration.meta())?;
            let (data, stop, orders) = (self.source.subscribe(), stop.clone(), self.orders_to(name));
            let task = tokio::spawn(async move {
                let context =
                    LoopContext { data, shutdown: stop, orders, random: fastrand::f64, observer: &*reporter };
                let finish = once.run(runner, context).await;
                (finish, reporter.status())
            });
            running.push((name.clone(), task));
        }
        for (name, task) in running {
            let (finish, status) = task.await?;
            let ended = if let LoopExit::Once(ended) = finish { ended } else { RunEnd::Failed };
            let changes = planned.counts(&name).unwrap_or(status.changes);
            let errors = planned.errors(&name).unwrap_or(status.errors);
            let mut line = LogLine::new(Level::Info, ended.as_str())
                .with("integration", name.as_str())
                .with("changes", changes.planned - changes.failed)
                .with("held", changes.held);
            if errors > 0 {
                line = line.with("errors", errors);
            }
            self.log.write(&line);
            ends.push((name, ended));
        }
        Ok(ends)
    }

    /// Runs the loops until a shutdown. Starts loops for integrations that new data defines and ends the loops of
    /// integrations that new data no longer defines.
    pub async fn run(&self, reporters: Arc<LoopRegistry>, stop: ShutdownSignal) -> anyhow::Result<Exit> {
        let mut generation = self.source.subscribe();
        let fatal = Arc::new(Notify::new());
        let mut running: BTreeMap<String, RunningLoop> = BTreeMap::new();
        let mut ending: BTreeMap<String, RunningLoop> = BTreeMap::new();
        loop {
            generation.mark_unchanged();
            // If the list cannot be read, the running loops continue.
            let names = self.names().unwrap_or_else(|error| {
                let text = format!(
                    "cannot list the integrations of the data; the running loops continue: {error:#}"
                );
                self.log.write(&LogLine::new(Level::Error, text));
                running.keys().cloned().collect()
            });
            for name in running.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>() {
                if let Some(one) = running.remove(&name) {
                    one.stopper.request();
                    reporters.remove(&name);
                    ending.insert(name, one);
                }
            }
            let mut missing = BTreeSet::new();
            for name in names {
                if let Entry::Vacant(place) = running.entry(name) {
                    // An integration that cannot be started does not affect the others.
                    let scope = LoopScope { reporters: &reporters, fatal: &fatal, stop: &stop };
                    match self.start(place.key(), scope, ending.remove(place.key())) {
                        Ok(started) => drop(place.insert(started)),
                        Err(error) if error.is::<SandboxUnsupported>() => {
                            self.skip(place.key(), &error.to_string());
                        }
                        Err(error) => {
                            self.log_start_failure(place.key(), &error);
                            missing.insert(place.into_key());
                        }
                    }
                }
            }
            let is_complete = missing.is_empty();
            reporters.set_unstarted(missing);
            match wait(&mut generation, (!is_complete).then_some(self.every), &stop, &fatal).await? {
                SupervisorEvent::NewData | SupervisorEvent::Retry => {}
                SupervisorEvent::Stop => break,
                SupervisorEvent::LoopGaveUp => {
                    let text =
                        "a loop stalled too often; exiting so that the process supervisor restarts qontract";
                    self.log.write(&LogLine::new(Level::Error, text));
                    return Ok(Exit::Failure);
                }
            }
        }
        let by = stop.interruption().unwrap_or(TerminationSignal::Terminate);
        let (mut stoppers, mut tasks) = (Vec::new(), Vec::new());
        let mut timeout = Duration::ZERO;
        for RunningLoop { stopper, task, shutdown_timeout } in
            running.into_values().chain(ending.into_values())
        {
            timeout = timeout.max(shutdown_timeout + SHUTDOWN_MARGIN);
            stopper.request_by(by);
            stoppers.push(stopper);
            tasks.push(task);
        }
        let force = async {
            stop.forced().await;
            stoppers.iter().for_each(ShutdownTrigger::force);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = futures_util::future::join_all(tasks) => {}
            () = force => {}
            // A loop that does not end in time ends when the process exits.
            () = tokio::time::sleep(timeout) => {}
        }
        Ok(Exit::Ok)
    }

    fn log_start_failure(&self, name: &str, error: &anyhow::Error) {
        let line = LogLine::new(Level::Error, format!("cannot start the integration: {error:#}"))
            .with("integration", name);
        let fault = error.chain().find_map(|cause| cause.downcast_ref::<Fault>());
        self.log.write(&line.with_lines_below(fault.map_or(String::new(), |fault| fault.details.join("\n"))));
    }

    /// Starts a loop; `before` is an earlier loop of the same integration that is still ending.
    fn start(
        &self,
        name: &str,
        LoopScope { reporters, fatal, stop }: LoopScope<'_>,
        before: Option<RunningLoop>,
    ) -> anyhow::Result<RunningLoop> {
        let reporter = self.reporter(name);
        let runner = Arc::new(self.runner(name, Arc::clone(&reporter) as _)?);
        reporters.add(name, Arc::clone(&reporter));
        let (stopper, stop) = stop.derive();
        let (reconcile_loop, feed, log) = (
            self.new_loop(false, runner.integration.meta())?,
            Arc::clone(&self.source),
            Arc::clone(&self.log),
        );
        let (name, fatal, registry) = (name.to_owned(), Arc::clone(fatal), Arc::clone(reporters));
        let (integrations, orders) = (self.integrations, self.orders_to(&name));
        let shutdown_timeout = reconcile_loop.limits.shutdown_timeout;
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                // The earlier loop must end first, so that two loops of one integration never run concurrently.
                let _ = before.task.await;
            }
            if !integrations.runs_first(&name) {
                tokio::select! {
                    () = registry.wait_for_groundwork(integrations) => {}
                    () = stop.requested() => return,
                }
            }
            let start = || {
                let (data, stop, orders) = (feed.subscribe(), stop.clone(), orders.clone());
                let context =
                    LoopContext { data, shutdown: stop, orders, random: fastrand::f64, observer: &*reporter };
                reconcile_loop.run(Arc::clone(&runner) as _, context)
            };
            let report = |why: &str| {
                let line = LogLine::new(Level::Error, format!("{why}; restarting the loop"));
                log.write(&line.with("integration", name.as_str()));
            };
            if supervise(reconcile_loop.schedule.initial_backoff, start, report).await
                == SuperviseResult::GaveUp
            {
                fatal.notify_one();
            }
        });
        Ok(RunningLoop { stopper, task, shutdown_timeout })
    }
}

/// The context that the loops of `up` share.
#[derive(Clone, Copy)]
struct LoopScope<'a> {
    reporters: &'a Arc<LoopRegistry>,
    fatal: &'a Arc<Notify>,
    /// The shutdown of the process.
    stop: &'a ShutdownSignal,
}

/// A running loop.
struct RunningLoop {
    stopper: ShutdownTrigger,
    task: JoinHandle<()>,
    /// Time that a run of the loop gets to end after a shutdown request.
    shutdown_timeout: Duration,
}

#[cfg(test)]
mod tests;
