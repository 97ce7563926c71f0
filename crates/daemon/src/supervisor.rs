//! Supervisor of the loops of `up`: one for each integration that the data defines and the binary contains.

mod restart;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use qontract_access::Mode;
use qontract_config::Config;
use qontract_runtime::guard::Ledger;
use qontract_runtime::looping::{
    Carrier, Finish, Interruption, Limiter, Limits, Loop, LoopContext, Pace, Stop, Stopper,
};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, ChangeKind, Ended, Fault, Options, Record, listing};
use qontract_telemetry::log::{Level, Line, Log};
use qontract_telemetry::metrics::{Metrics, Process};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::audit::WriteObserver;
use crate::exit::Exit;
use crate::registry::{Registry, SandboxUnsupported, missing};
use crate::reporter::{ChangeCounts, LoopReporter};
use crate::run_store::RunStore;
use crate::runner::{ReconciledData, RunObserver, RunSettings, Runner};
use crate::source::{DataSource, WatchedRepo};
use crate::targets::Targets;
use restart::{Supervised, Wake, supervise, wait};

/// Maximum number of passes of `--once` over integrations with transient failures.
const MAX_PASSES: u32 = 3;

/// Maximum time that loops wait for the first runs of the integrations that they depend on.
const GROUNDWORK_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between two checks whether those have run.
const GROUNDWORK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Time limit for loops to end at a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(40);

/// Integrations that cannot run on this machine, with the reasons.
pub type Unchecked = Arc<Mutex<BTreeMap<String, String>>>;

/// Starts and supervises loops, which share these settings.
pub struct Supervisor {
    /// The integrations of the binary.
    pub integrations: Registry,
    /// The configuration.
    pub config: Config,
    /// The target systems.
    pub targets: Targets,
    /// The source of the data.
    pub feed: Arc<WatchedRepo>,
    /// The store of run records.
    pub runs: Arc<RunStore>,
    /// The removal ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The log.
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
    /// Limits the number of concurrent runs.
    pub limiter: Limiter,
    /// Integrations that cannot run on this machine, with the reasons, which were logged.
    pub unchecked: Unchecked,
}

/// Registry of the reporters of running loops, by integration.
#[derive(Default)]
pub struct LoopRegistry {
    loops: Mutex<BTreeMap<String, Arc<LoopReporter>>>,
    /// The integrations that could not be started.
    unstarted: Mutex<BTreeSet<String>>,
}

impl LoopRegistry {
    /// All reporters.
    pub fn all(&self) -> Vec<Arc<LoopReporter>> {
        self.loops.lock().values().cloned().collect()
    }

    /// Waits until the integrations that others depend on have run once, for up to [`GROUNDWORK_TIMEOUT`].
    async fn ground(&self, integrations: Registry) {
        let is_laid = || {
            let ground =
                self.all().into_iter().filter(|reporter| integrations.is_groundwork(reporter.integration()));
            ground.map(|reporter| reporter.status()).all(|status| status.last.is_some())
        };
        let waiting = async {
            while !is_laid() {
                tokio::time::sleep(GROUNDWORK_POLL_INTERVAL).await;
            }
        };
        let _ = tokio::time::timeout(GROUNDWORK_TIMEOUT, waiting).await;
    }

    /// The integrations that could not be started.
    pub fn unstarted(&self) -> Vec<String> {
        self.unstarted.lock().iter().cloned().collect()
    }

    fn miss(&self, names: BTreeSet<String>) {
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
    /// The integrations to run: defined in the data, compiled in or configured, and able to run on this
    /// machine.
    fn names(&self) -> anyhow::Result<Vec<String>> {
        let defined = listing::all(&*self.feed.side()?.source)?;
        let is_here = |name: &String| self.integrations.has(name, &self.config);
        let names = defined.into_iter().map(|(name, _)| name).filter(is_here);
        let names: Vec<String> = names.filter(|name| !self.leaves_out(name)).collect();
        if names.is_empty() {
            let text = "none of the integrations that the data defines is available: a file of the schema \
                `/app-sre/integration-1.yml` defines one, and `qontract integrations` lists those that are available";
            self.log.write(&Line::new(Level::Warning, text));
        }
        Ok(names)
    }

    /// Whether this machine lacks something that an integration needs, which is logged once.
    fn leaves_out(&self, name: &str) -> bool {
        // Process integrations are not checked. An integration that cannot be created is reported when it is
        // started.
        if self.config.integrations.contains_key(name) {
            return false;
        }
        let Ok(integration) = self.integrations.integration(name, &self.config, &self.targets) else {
            return false;
        };
        let Err(fault) = integration.ready() else { return false };
        self.leave_out(name, &missing(&fault));
        true
    }

    /// Logs once that an integration cannot run here, so that its changes are unknown.
    fn leave_out(&self, name: &str, why: &str) {
        let mut unchecked = self.unchecked.lock();
        if unchecked.insert(name.to_owned(), why.to_owned()).is_none() {
            let line = Line::new(Level::Warning, format!("skipped: {why}; not checked"));
            self.log.write(&line.with("integration", name));
        }
    }

    /// The integrations that cannot run on this machine, with the reasons.
    pub fn unchecked(&self) -> BTreeMap<String, String> {
        self.unchecked.lock().clone()
    }

    fn reporter(&self, name: &str) -> Arc<LoopReporter> {
        let process =
            Process { integration: name.to_owned(), shards: "1".to_owned(), shard_id: "0-1".to_owned() };
        let reporter = LoopReporter::new(process, Arc::clone(&self.log), Arc::clone(&self.metrics));
        Arc::new(reporter.with_run_level(self.run_level))
    }

    fn runner(&self, name: &str, observer: Arc<dyn RunObserver>) -> anyhow::Result<Runner> {
        Ok(Runner {
            integration: Arc::new(self.integrations.integration(name, &self.config, &self.targets)?),
            options: Options::default(),
            feed: Arc::clone(&self.feed) as Arc<dyn DataSource>,
            settings: RunSettings {
                mode: self.mode,
                slot: Slot::default(),
                budgets: self.config.guards.budgets(),
                ledger: Arc::clone(&self.ledger),
                validate_schemas: true,
                bodies: self.bodies,
            },
            runs: Arc::clone(&self.runs),
            observer,
            reconciled: ReconciledData::default(),
        })
    }

    fn looping(&self, once: bool) -> Loop {
        let limits = Limits { beat: Duration::from_secs(1), ..Limits::default() };
        let pace = Pace { every: self.every, retry: Duration::from_secs(1).min(self.every), jitter: 0.1 };
        Loop { pace, limits, carrier: Carrier::Thread, limiter: self.limiter.clone(), once }
    }

    /// Runs each integration once; succeeds if all runs succeed. Runs with transient failures are repeated,
    /// because objects that they need, such as namespaces, may have been created by another integration
    /// since.
    ///
    /// Returns the records of dry runs, by integration; `None` if it was interrupted.
    pub async fn once(&self, stop: &Stop) -> anyhow::Result<(Exit, Option<Vec<Record>>)> {
        let (ground, mut left): (Vec<String>, _) =
            self.names()?.into_iter().partition(|name| self.integrations.is_groundwork(name));
        let mut worst = Ended::Ok;
        let planned = Arc::<Planned>::default();
        let mut ends = self.pass(&ground, &planned, stop).await?;
        for pass in 1..=MAX_PASSES {
            let mut again = Vec::new();
            ends.extend(self.pass(&left, &planned, stop).await?);
            if let Some(by) = stop.interruption() {
                return Ok((Exit::Run(by.exit_code()), None));
            }
            for (name, ended) in std::mem::take(&mut ends) {
                if ended == Ended::Transient && pass < MAX_PASSES {
                    again.push(name);
                } else if ended.code() > 0 && (worst.code() == 0 || ended != Ended::Transient) {
                    worst = ended;
                }
            }
            if again.is_empty() {
                break;
            }
            left = again;
        }
        let records: Vec<Record> = std::mem::take(&mut *planned.lock()).into_values().collect();
        let has_changes = |record: &Record| record.shards.values().any(|shard| !shard.changes.is_empty());
        let exit = match worst.code() {
            0 if records.iter().any(has_changes) => Exit::Changes,
            code => Exit::Run(code),
        };
        Ok((exit, Some(records)))
    }

    /// Runs some integrations once, concurrently; returns how each ended.
    async fn pass(
        &self,
        names: &[String],
        planned: &Arc<Planned>,
        stop: &Stop,
    ) -> anyhow::Result<Vec<(String, Ended)>> {
        let (mut running, mut ends) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|_| !stop.is_asked()) {
            let reporter = self.reporter(name);
            let observer: Arc<dyn RunObserver> = match self.mode {
                Mode::Real => Arc::clone(&reporter) as _,
                Mode::DryRun => {
                    Arc::new(Collector { reporter: Arc::clone(&reporter), planned: Arc::clone(planned) })
                }
            };
            let runner = match self.runner(name, observer) {
                Ok(runner) => Arc::new(runner),
                Err(error) if error.is::<SandboxUnsupported>() => {
                    self.leave_out(name, &error.to_string());
                    continue;
                }
                Err(error) => {
                    self.cannot_start(name, &error);
                    ends.push((name.clone(), Ended::Failed));
                    continue;
                }
            };
            let (looping, news, stop) = (self.looping(true), self.feed.news(), stop.clone());
            let task = tokio::spawn(async move {
                let context = LoopContext { data: news, stop, random: fastrand::f64, observer: &*reporter };
                let finish = looping.keep(runner, context).await;
                (finish, reporter.status())
            });
            running.push((name.clone(), task));
        }
        for (name, task) in running {
            let (finish, status) = task.await?;
            let ended = if let Finish::Once(ended) = finish { ended } else { Ended::Failed };
            let changes = planned.counts(&name).unwrap_or(status.changes);
            let line = Line::new(Level::Info, ended.as_str())
                .with("integration", name.as_str())
                .with("changes", changes.planned)
                .with("held", changes.held);
            self.log.write(&line);
            ends.push((name, ended));
        }
        Ok(ends)
    }

    /// Runs the loops until a shutdown. Starts integrations that new data defines, and ends those that it no
    /// longer defines.
    pub async fn keep(&self, reporters: Arc<LoopRegistry>, stop: Stop) -> anyhow::Result<Exit> {
        let mut news = self.feed.news();
        let fatal = Arc::new(Notify::new());
        let mut running: BTreeMap<String, Running> = BTreeMap::new();
        let mut ending: BTreeMap<String, Running> = BTreeMap::new();
        loop {
            news.mark_unchanged();
            // If the list cannot be read, the running loops stay.
            let names = self.names().unwrap_or_else(|error| {
                let text = format!(
                    "cannot list the integrations of the data; the running loops continue: {error:#}"
                );
                self.log.write(&Line::new(Level::Error, text));
                running.keys().cloned().collect()
            });
            for name in running.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>() {
                if let Some(one) = running.remove(&name) {
                    one.stopper.ask();
                    reporters.remove(&name);
                    ending.insert(name, one);
                }
            }
            let mut missing = BTreeSet::new();
            for name in names {
                if let Entry::Vacant(place) = running.entry(name) {
                    // An integration that cannot be started does not affect the others.
                    let around = Around { reporters: &reporters, fatal: &fatal, stop: &stop };
                    match self.start(place.key(), around, ending.remove(place.key())) {
                        Ok(started) => drop(place.insert(started)),
                        Err(error) if error.is::<SandboxUnsupported>() => {
                            self.leave_out(place.key(), &error.to_string());
                        }
                        Err(error) => {
                            self.cannot_start(place.key(), &error);
                            missing.insert(place.into_key());
                        }
                    }
                }
            }
            let is_complete = missing.is_empty();
            reporters.miss(missing);
            match wait(&mut news, (!is_complete).then_some(self.every), &stop, &fatal).await? {
                Wake::NewData | Wake::Retry => {}
                Wake::Stop => break,
                Wake::LoopGaveUp => {
                    let text =
                        "a loop stalled too often; exiting so that the process is restarted from outside";
                    self.log.write(&Line::new(Level::Error, text));
                    return Ok(Exit::Failure);
                }
            }
        }
        let by = stop.interruption().unwrap_or(Interruption::Terminate);
        let (mut stoppers, mut tasks) = (Vec::new(), Vec::new());
        for Running { stopper, task } in running.into_values().chain(ending.into_values()) {
            stopper.ask_by(by);
            stoppers.push(stopper);
            tasks.push(task);
        }
        let force = async {
            stop.forced().await;
            stoppers.iter().for_each(Stopper::force);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = futures_util::future::join_all(tasks) => {}
            () = force => {}
            // A loop that does not end in time is ended by the exit of the process.
            () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => {}
        }
        Ok(Exit::Ok)
    }

    fn cannot_start(&self, name: &str, error: &anyhow::Error) {
        let line = Line::new(Level::Error, format!("cannot start the integration: {error:#}"))
            .with("integration", name);
        let fault = error.chain().find_map(|cause| cause.downcast_ref::<Fault>());
        self.log.write(&line.below(fault.map_or(String::new(), |fault| fault.details.join("\n"))));
    }

    /// Starts a loop; `before` is an earlier loop of the same integration that is still ending.
    fn start(
        &self,
        name: &str,
        Around { reporters, fatal, stop }: Around<'_>,
        before: Option<Running>,
    ) -> anyhow::Result<Running> {
        let reporter = self.reporter(name);
        let runner = Arc::new(self.runner(name, Arc::clone(&reporter) as _)?);
        reporters.add(name, Arc::clone(&reporter));
        let (stopper, stop) = stop.derive();
        let (looping, feed, log) = (self.looping(false), Arc::clone(&self.feed), Arc::clone(&self.log));
        let (name, fatal, known) = (name.to_owned(), Arc::clone(fatal), Arc::clone(reporters));
        let integrations = self.integrations;
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                // Two loops of one integration never run concurrently.
                let _ = before.task.await;
            }
            if !integrations.is_groundwork(&name) {
                tokio::select! {
                    () = known.ground(integrations) => {}
                    () = stop.asked() => return,
                }
            }
            let start = || {
                let (data, stop) = (feed.news(), stop.clone());
                let context = LoopContext { data, stop, random: fastrand::f64, observer: &*reporter };
                looping.keep(Arc::clone(&runner) as _, context)
            };
            let report = |why: &str| {
                let line = Line::new(Level::Error, format!("{why}; restarting the loop"));
                log.write(&line.with("integration", name.as_str()));
            };
            if supervise(looping.pace.retry, start, report).await == Supervised::GaveUp {
                fatal.notify_one();
            }
        });
        Ok(Running { stopper, task })
    }
}

/// The records of dry runs, by integration.
#[derive(Default)]
struct Planned(Mutex<BTreeMap<String, Record>>);

impl Planned {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.0.lock()
    }

    /// The number of planned and held changes of an integration.
    fn counts(&self, name: &str) -> Option<ChangeCounts> {
        let records = self.lock();
        let shards = records.get(name)?.shards.values();
        Some(shards.map(ChangeCounts::of).sum())
    }
}

/// Collects the records of dry runs for the report at the end, instead of logging their changes.
struct Collector {
    reporter: Arc<LoopReporter>,
    planned: Arc<Planned>,
}

impl WriteObserver for Collector {
    fn wrote(&self, line: &Line, kind: ChangeKind, since_commit: Option<i64>) {
        self.reporter.wrote(line, kind, since_commit);
    }

    fn lost(&self, why: &str) {
        self.reporter.lost(why);
    }

    fn unfinished(&self, warning: &str) {
        self.reporter.unfinished(warning);
    }
}

impl RunObserver for Collector {
    fn ran(&self, integration: &str, run: Result<&Record, &anyhow::Error>) {
        match run {
            Ok(record) => drop(self.planned.lock().insert(integration.to_owned(), record.clone())),
            Err(_) => self.reporter.ran(integration, run),
        }
    }
}

/// Shared context of the loops of `up`.
#[derive(Clone, Copy)]
struct Around<'a> {
    reporters: &'a Arc<LoopRegistry>,
    fatal: &'a Arc<Notify>,
    /// The shutdown of the process.
    stop: &'a Stop,
}

/// A running loop.
struct Running {
    stopper: Stopper,
    task: JoinHandle<()>,
}
