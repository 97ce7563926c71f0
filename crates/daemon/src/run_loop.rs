//! Runs one integration in a loop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_bundle::Layout;
use qontract_config::Config;
use qontract_diagnostics::MessageSink;
use qontract_runtime::reconcile_loop::{
    Isolation, Limiter, LoopContext, LoopExit, LoopOrders, LoopSettings, Schedule, ShutdownSignal,
};
use qontract_runtime::{Bodies, Integration, Options, SelectionObserver};
use qontract_telemetry::log::{Level, Log, LogLine};
use qontract_telemetry::metrics::{Metrics, ProcessLabels};
use tokio::sync::{Notify, watch};

use crate::announcement::Announcement;
use crate::data_validity::{DataReporter, DataUse};
use crate::discovery::{self, PassedAs};
use crate::exit::{Exit, UsageError};
use crate::health::Health;
use crate::input::{InputCheck, InputResolver};
use crate::journal::OpenJournal;
use crate::loop_orders::{JournalKind, OrderFeed};
use crate::pinned_data::{PinnedData, ServerConnection};
use crate::process_slot::ProcessSlot;
use crate::pushgateway::{MetricsPusher, NotifyOnEnd, PushgatewayConfig};
use crate::reconciled_data::ReconciledData;
use crate::registry::Registry;
use crate::reporter::LoopReporter;
use crate::run_settings::{RunSettings, TargetLocation};
use crate::runner::Runner;
use crate::signals::{self, ShutdownTimeout};
use crate::source::{DataSource, PollResult, ServerSource, WatchedRepo};
use crate::targets::{SandboxLocation, Targets};

/// Interval at which a server is polled for a new bundle.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum delay of a run that a new bundle on a server starts: many processes detect the bundle at the same time.
const MAX_WAKE_DELAY: Duration = Duration::from_secs(10);

/// Options of a loop.
pub struct LoopOptions {
    /// The interval between runs and the back-off after failures.
    pub pace: Schedule,
    /// Whether the loop exits after the first run.
    pub once: bool,
    /// The log of the loop.
    pub log: Arc<Log>,
    /// The address of the health listener.
    pub listen: Option<SocketAddr>,
    /// The name of this shard in metrics.
    pub shard_label: Option<String>,
    /// The dimension of shard keys by which the shards of the integration are balanced.
    pub balanced_by: Option<String>,
    /// The Pushgateway to which metrics are pushed after each run.
    pub pushgateway: Option<PushgatewayConfig>,
}

/// The build of the binary.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    /// The version of the binary.
    pub version: &'static str,
    /// The commit that the binary is built from; empty if unknown.
    pub commit: &'static str,
}

impl BuildInfo {
    /// Creates the metrics of this process, which include the version of the binary.
    pub fn metrics(self) -> Arc<Metrics> {
        let metrics = Metrics::default();
        metrics.set_build(self.version, self.commit);
        Arc::new(metrics)
    }
}

/// An integration with its data, targets and options.
pub struct LoopInput<'a> {
    /// The integrations of the binary.
    pub integrations: Registry,
    /// The name of the integration.
    pub integration: &'a str,
    /// The flags of the integration.
    pub options: &'a Options,
    /// The configuration of the process.
    pub config: &'a Config,
    /// The data that the loop reconciles.
    pub data: DataSpec,
    /// The location of the sandbox, if one is used.
    pub sandbox: SandboxLocation<'a>,
    /// The directory of run records; `None` means the default.
    pub runs: Option<PathBuf>,
    /// Whether runs may change target systems.
    pub mode: Mode,
    /// The shard slot of this process.
    pub slot: ProcessSlot,
    /// Whether the list of allowed schemas is enforced.
    pub validate_schemas: bool,
    /// Whether plans show the content of created objects.
    pub bodies: Bodies,
    /// Receives messages for the user.
    pub messages: Arc<dyn MessageSink>,
    /// The build of the binary.
    pub build: BuildInfo,
}

/// The data of a loop.
#[derive(Clone, Debug)]
pub struct DataSpec {
    /// A directory, a bundle file, a Git revision or a server URL; `None` means the configured server or, without
    /// one, the working directory.
    pub spec: Option<String>,
    /// The repo in which Git revisions are looked up.
    pub repo: PathBuf,
    /// Whether all queries of a run use the same bundle of a server.
    pub is_pinned: bool,
}

/// Runs an integration in a loop until a shutdown.
pub fn run_loop(input: &LoopInput<'_>, options: &LoopOptions) -> anyhow::Result<Exit> {
    let LoopInput { integration: name, config, mode, .. } = *input;
    let targets = Targets::new(config, input.sandbox, mode)?.with_log(&options.log);
    let integration = Arc::new(input.integrations.integration(name, config, &targets)?);
    let flags = RunSettings::with_variables(input.options.clone(), &integration)?;
    if let Some(missing) = flags.missing(&integration.meta().flags) {
        return Err(
            UsageError(format!("the argument `{}` of `{name}` is missing", missing.spelling())).into()
        );
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let metrics = input.build.metrics();
    if let Some(dimension) = &options.balanced_by {
        metrics.balance_by(dimension);
    }
    let (reporter, pusher) = reporting(input, options, &metrics)?;
    let slot = input.slot.validate().map_err(|error| UsageError(error.to_string()))?;
    let sandbox = config.sandbox_folder(input.sandbox.folder);
    let opened = OpenJournal::with_metrics(config, sandbox, input.runs.clone(), mode, metrics.journal())?;
    let (ledger, leases) = (opened.ledger(), opened.leases()?);
    let OpenJournal { journal, folder, runs, .. } = opened;
    let health_feed = Arc::new(OnceLock::new());
    if let Some(address) = options.listen {
        let health = health_of_loop(&reporter, &metrics, &health_feed);
        let bound = runtime.block_on(health.serve(address))?;
        options.log.write(&LogLine::new(Level::Info, format!("listening on http://{bound}/")));
    }
    // The data source is opened after all steps that may fail and be retried, because the thread that watches the
    // data runs until the process ends.
    let (feed, polled) = data_source(input, runtime.handle(), &options.log, &metrics)?;
    let _ = health_feed.set(Arc::clone(&feed));
    let selection = announce(input, &integration, &*feed, &reporter, &options.log);
    if options.once && matches!(polled, PollResult::Invalid | PollResult::StillInvalid) {
        return Ok(Exit::Failure);
    }
    let timeout = ShutdownTimeout::configured()?;
    let limits = timeout.watchdog_limits(signals::watchdog_limits()?, integration.meta());
    let warning = timeout.warning(integration.meta());
    let settings = RunSettings {
        options: flags,
        leases,
        slot,
        validate_schemas: input.validate_schemas,
        bodies: input.bodies,
        selection,
        ..RunSettings::configured(mode, config, TargetLocation::of(sandbox), ledger)?
    };
    let reconciled = match feed.identity() {
        Some(data) => ReconciledData::stored(&journal, folder.as_deref(), data, name, &settings),
        None => ReconciledData::default(),
    };
    let orders = match mode {
        Mode::Real => {
            let kind = JournalKind::of(folder.as_deref());
            let orders = OrderFeed::start(&journal, kind, Arc::clone(&options.log));
            Some(runtime.block_on(orders))
        }
        Mode::DryRun => None,
    };
    let (source, observer) = (Arc::clone(&feed), Arc::clone(&reporter) as _);
    let runner = Runner { integration, source, settings, runs, observer, reconciled };
    let (isolation, limiter) = (Isolation::Thread, Limiter::default());
    let wake_jitter =
        if config.server(input.data.spec.as_deref()).is_some() { MAX_WAKE_DELAY } else { Duration::ZERO };
    let schedule = Schedule { wake_jitter, ..options.pace };
    let settings = LoopSettings { schedule, limits, isolation, limiter, once: options.once };
    let (stopper, stop) = ShutdownSignal::pair();
    let finish = runtime.block_on(async {
        let listed = Arc::clone(&reporter);
        signals::listen(stopper.clone(), move || vec![Arc::clone(&listed)], Arc::clone(&options.log))?;
        if let Some(warning) = warning {
            options.log.write(&LogLine::new(Level::Warning, warning));
        }
        let orders = orders.as_ref().map_or_else(LoopOrders::none, |orders| orders.subscribe(name));
        anyhow::Ok(ReportedLoop { settings, runner, reporter, pusher, orders }.run(stop).await)
    })?;
    // The process ends now. The runtime is not dropped, because threads that still query a server would panic without
    // it.
    std::mem::forget(runtime);
    Ok(match finish {
        LoopExit::Once(ended) => Exit::of_run(ended, stopper.interruption()),
        LoopExit::Stopped => signals::exit_of_loop(&stopper, Exit::Ok),
        LoopExit::GaveUp => Exit::Failure,
    })
}

/// Sets up the reports about the loop: its runs are logged and counted, and the metrics are pushed if a Pushgateway
/// is configured.
fn reporting(
    input: &LoopInput<'_>,
    options: &LoopOptions,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<(Arc<LoopReporter>, Option<Arc<MetricsPusher>>)> {
    let ProcessSlot { id, count: shards } = input.slot;
    let process = ProcessLabels {
        integration: input.integration.to_owned(),
        shards: shards.to_string(),
        shard_id: options.shard_label.clone().unwrap_or_else(|| format!("{id}-{shards}")),
    };
    let (log, own) = (&options.log, process.clone());
    let push = |push| MetricsPusher::new(push, process, Arc::clone(metrics), Arc::clone(log));
    let pusher = options.pushgateway.as_ref().map(push).transpose()?.map(Arc::new);
    Ok((Arc::new(LoopReporter::new(own, Arc::clone(log), Arc::clone(metrics))), pusher))
}

/// Logs the mode, the data and the targets; the clusters are known when the returned observer is called. A server is
/// not queried, because an unresponsive server must not delay the loop; in this case, the clusters are logged after
/// the first run.
fn announce(
    input: &LoopInput<'_>,
    integration: &Integration,
    feed: &dyn DataSource,
    reporter: &LoopReporter,
    log: &Arc<Log>,
) -> Option<SelectionObserver> {
    let LoopInput { config, mode, .. } = *input;
    let (data, sandbox) = (input.data.spec.as_deref(), input.sandbox.folder);
    let announcement = Announcement { data, sandbox, config, integration, mode };
    let line = if let Some(server) = config.server(data) {
        reporter.name_clusters();
        announcement.line_without_data(&server.server)
    } else {
        announcement.line(&*feed.bundle_in_use().and_then(|_| feed.current().ok())?)
    };
    let log = Arc::clone(log);
    line.print(move |line| log.write(&LogLine::new(Level::Info, line)))
}

/// A loop whose runs are reported.
struct ReportedLoop {
    settings: LoopSettings,
    runner: Runner,
    reporter: Arc<LoopReporter>,
    pusher: Option<Arc<MetricsPusher>>,
    orders: LoopOrders,
}

impl ReportedLoop {
    /// Runs the loop until it ends and pushes the metrics after each run and at the end.
    async fn run(self, stop: ShutdownSignal) -> LoopExit {
        let Self { settings, runner, reporter, pusher, orders } = self;
        let ended = Arc::new(Notify::new());
        if let Some(pusher) = pusher.clone() {
            tokio::spawn(push_after_runs(pusher, Arc::clone(&ended)));
        }
        let observer = NotifyOnEnd { reporter: Arc::clone(&reporter), ended };
        let data = runner.source.subscribe();
        let context =
            LoopContext { data, shutdown: stop, orders, random: fastrand::f64, observer: &observer };
        let finish = settings.run(Arc::new(runner), context).await;
        if matches!(finish, LoopExit::Once(_)) {
            reporter.log_run(None);
        }
        if let Some(pusher) = pusher {
            pusher.push().await;
        }
        finish
    }
}

/// The status that the health listener of a single loop shows.
fn health_of_loop(
    reporter: &Arc<LoopReporter>,
    metrics: &Arc<Metrics>,
    data_source: &Arc<OnceLock<Arc<dyn DataSource>>>,
) -> Health {
    let reporter = Arc::clone(reporter);
    Health {
        metrics: Arc::clone(metrics),
        reporters: Arc::new(move || vec![Arc::clone(&reporter)]),
        unstarted: Arc::new(Vec::new),
        unchecked: Arc::new(Vec::new),
        data_source: Arc::clone(data_source),
    }
}

/// Pushes the metrics after each run.
async fn push_after_runs(pusher: Arc<MetricsPusher>, run_ended: Arc<Notify>) {
    loop {
        run_ended.notified().await;
        pusher.push().await;
    }
}

/// The data source: the configured server, a watched directory, or a static input.
fn data_source(
    input: &LoopInput<'_>,
    runtime: &tokio::runtime::Handle,
    log: &Arc<Log>,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<(Arc<dyn DataSource>, PollResult)> {
    let failed = |log: &Log, error: &anyhow::Error| {
        let seconds = POLL_INTERVAL.as_secs();
        let text = format!("cannot check for new data; retrying in {seconds} s: {error:#}");
        log.write(&LogLine::new(Level::Warning, text));
    };
    let DataSpec { spec, repo, is_pinned } = &input.data;
    if let Some(graphql) = input.config.server(spec.as_deref()) {
        let connection = ServerConnection::new(&graphql, runtime.clone())?;
        let remote = Arc::new(ServerSource::new(connection, *is_pinned));
        let (poller, log) = (Arc::clone(&remote), Arc::clone(log));
        std::thread::spawn(move || {
            loop {
                poller.poll().unwrap_or_else(|error| failed(&log, &error));
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        return Ok((remote, PollResult::New));
    }
    let word = spec.as_deref().unwrap_or(".");
    if !Path::new(word).is_dir() {
        let (word, repo, messages) = (word.to_owned(), repo.clone(), Arc::clone(&input.messages));
        return Ok((Arc::new(StaticInput { word, repo, messages }), PollResult::New));
    }
    let root = discovery::root(Path::new(word), &Layout::default(), PassedAs::Option)?;
    let folder = Arc::new(WatchedRepo::new(root, Layout::default()));
    let shown = Arc::clone(log);
    let show = move |text: &str| shown.write(&LogLine::of_lines(Level::Error, text));
    let (log, gauges) = (Arc::clone(log), metrics.data_validity());
    folder.report_to(DataReporter { log, gauges, activity: DataUse::Reconcile });
    let polled = folder.poll(&show)?;
    let watched = Arc::clone(&folder);
    // Results of polls are ignored: a new bundle starts a run, which is logged.
    std::thread::spawn(move || watched.watch(&show, |_| {}));
    Ok((folder, polled))
}

/// A data source that is a bundle file or a Git revision, which is opened again for each run.
struct StaticInput {
    word: String,
    repo: PathBuf,
    messages: Arc<dyn MessageSink>,
}

impl DataSource for StaticInput {
    fn current(&self) -> anyhow::Result<Arc<PinnedData>> {
        let resolver = InputResolver::new(&self.repo, Layout::default(), &*self.messages);
        Ok(Arc::new(PinnedData::open(&resolver, &self.word, InputCheck::Valid, None)?))
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
