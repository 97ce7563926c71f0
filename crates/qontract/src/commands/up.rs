//! `qontract up`: runs the whole platform in one process, and limits the number of concurrent runs.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_bundle::Layout;
use qontract_cli::plan_output;
use qontract_cli::printer::{self, Printer};
use qontract_cli::screen::Screen;
use qontract_cli::terminal::{self, EchoGuard, TerminalSize};
use qontract_cli::{UpArgs, variable};
use qontract_config::Config;
use qontract_daemon::allocator::{self, PurgeDelay};
use qontract_daemon::clusters;
use qontract_daemon::data_validity::{DataReporter, DataUse};
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::Exit;
use qontract_daemon::health::{self, Health};
use qontract_daemon::journal::OpenJournal;
use qontract_daemon::loop_orders::{JournalKind, OrderFeed};
use qontract_daemon::plan_report;
use qontract_daemon::sandbox_folder;
use qontract_daemon::signals;
use qontract_daemon::source::{DataSource as _, PollResult, WatchedRepo};
use qontract_daemon::status_view::{self, loop_view};
use qontract_daemon::supervisor::{self, LoopRegistry, Supervisor, UncheckedIntegrations};
use qontract_daemon::targets::{SandboxLocation, Targets};
use qontract_report::UncheckedIntegration;
use qontract_report::status_table::{self, StatusTitle, StatusView};
use qontract_runtime::reconcile_loop::{Isolation, ShutdownSignal};
use qontract_runtime::{Bodies, BundleReader};
use qontract_telemetry::log::{Level, LineFormat, Log, LogLine};
use tokio::time::Instant;

use crate::BUILD;
use crate::integrations::REGISTRY;

pub fn run(arguments: UpArgs) -> anyhow::Result<Exit> {
    if !arguments.once {
        allocator::reexec_with_purge_delay(PurgeDelay::Zero);
    }
    let arguments = UpArgs { log: arguments.log.with_environment()?, ..arguments };
    let repo = match &arguments.repo {
        Some(given) => discovery::root(given, &Layout::default(), PassedAs::Argument)?,
        None => discovery::root_or_example(&Layout::default())?,
    };
    let config = Config::read(arguments.config.as_deref())?;
    let mode = if arguments.dry_run { Mode::DryRun } else { Mode::Real };
    let named = arguments.config.as_deref();
    let sandbox = sandbox_folder::of_up(arguments.sandbox.as_deref(), &config, named, &repo)?;
    let at = SandboxLocation { folder: sandbox.as_deref(), repo: Some(&repo) };
    let targets = Targets::new(&config, at, mode)?;
    // Only the plan goes to stdout.
    let prints_plan = arguments.once && mode == Mode::DryRun;
    let UpOutput { screen, log, is_live } = UpOutput::new(&arguments, prints_plan);
    let place =
        sandbox.as_ref().map_or_else(|| "real targets".to_owned(), |folder| folder.display().to_string());
    let targets_word = sandbox.as_ref().map_or_else(|| place.clone(), |_| format!("sandbox {place}"));
    let data_word = discovery::title(&repo);
    log.write(&LogLine::new(Level::Info, format!("up: {mode} of {} on {place}", repo.display())));
    let feed = Arc::new(WatchedRepo::new(repo, Layout::default()));
    let printer = Printer::default();
    if matches!(
        feed.poll(&|text| printer.note(text.trim_end()))?,
        PollResult::Invalid | PollResult::StillInvalid
    ) {
        return Ok(Exit::Failure);
    }
    let _lock = sandbox.as_deref().filter(|_| mode == Mode::Real).map(sandbox_folder::lock).transpose()?;
    log.write(&bundle_line(&*feed.current()?.source, sandbox.as_deref()));
    let runs = arguments.runs.clone().or_else(|| variable("QONTRACT_RUNS").map(PathBuf::from));
    let metrics = BUILD.metrics();
    let opened = OpenJournal::with_metrics(&config, sandbox.as_deref(), runs, mode, metrics.journal())?;
    let (ledger, leases) = (opened.ledger(), opened.leases()?);
    let OpenJournal { journal, folder: journal_folder, runs, .. } = opened;
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if sandbox.is_some() {
        // Runs have their own threads; the worker only waits.
        threads.worker_threads(1);
    }
    let runtime = threads.enable_all().build().context("cannot start threads")?;
    let kind = JournalKind::of(journal_folder.as_deref());
    let orders = match mode {
        Mode::Real => Some(runtime.block_on(OrderFeed::start(&journal, kind, Arc::clone(&log)))),
        Mode::DryRun => None,
    };
    let supervisor = Supervisor {
        integrations: REGISTRY,
        config,
        targets: targets.with_log(&log),
        source: Arc::clone(&feed) as _,
        ledger,
        leases,
        orders,
        journal,
        journal_folder,
        runs,
        log: Arc::clone(&log),
        metrics,
        // If the table shows the results of runs, the results are logged only at the debug level.
        run_level: if is_live { Level::Debug } else { Level::Info },
        mode,
        bodies: if arguments.full { Bodies::Shown } else { Bodies::Hidden },
        every: arguments.every,
        limiter: supervisor::limiter(sandbox.as_deref()),
        isolation: Isolation::Thread,
        unchecked: UncheckedIntegrations::default(),
    };
    if arguments.once {
        return once(&supervisor, runtime, &arguments, sandbox.as_deref());
    }
    watch(&feed, &supervisor, &screen);
    let _keys = is_live.then(EchoGuard::start);
    let title = StatusTitle { data: data_word, mode, targets: targets_word, ..StatusTitle::default() };
    let exit = runtime.block_on(run_loops(&supervisor, &screen, title, arguments.listen))?;
    screen.close();
    // The shutdown does not wait for blocked threads.
    runtime.shutdown_background();
    Ok(exit)
}

/// Runs the loops until a shutdown, and draws their status.
async fn run_loops(
    supervisor: &Supervisor,
    screen: &Arc<Screen>,
    title: StatusTitle,
    listen: Option<SocketAddr>,
) -> anyhow::Result<Exit> {
    let (stopper, stop) = ShutdownSignal::pair();
    let reporters = Arc::<LoopRegistry>::default();
    if let Some(address) = listen {
        serve_health(address, supervisor, &reporters).await?;
    }
    let (known, reader, ends) = (Arc::clone(&reporters), Arc::clone(screen), stopper.clone());
    tokio::spawn(async move {
        reader.wait_until_closed().await;
        ends.request();
    });
    signals::listen(stopper.clone(), move || known.all(), Arc::clone(&supervisor.log))?;
    let (source, unchecked) = (Arc::clone(&supervisor.source), Arc::clone(&supervisor.unchecked));
    let title = move || status_view::title(&*source, unchecked.lock().len(), &title);
    tokio::spawn(draw(Arc::clone(screen), Arc::clone(&reporters), title));
    let ends = stop.clone();
    tokio::spawn(async move {
        ends.requested().await;
        // From here on, the process may be killed at any time.
        terminal::restore();
    });
    let exit = supervisor.run(reporters, stop).await?;
    Ok(signals::exit_of_loop(&stopper, exit))
}

/// Runs every integration once. A dry run prints the plan.
fn once(
    supervisor: &Supervisor,
    runtime: tokio::runtime::Runtime,
    arguments: &UpArgs,
    sandbox: Option<&Path>,
) -> anyhow::Result<Exit> {
    let is_sandbox_missing = sandbox.is_some_and(|folder| !folder.is_dir());
    let ended = runtime.block_on(async {
        let (stopper, stop) = ShutdownSignal::pair();
        signals::listen(stopper, Vec::new, Arc::clone(&supervisor.log))?;
        supervisor.once(&stop).await
    });
    runtime.shutdown_background();
    let (exit, records) = ended?;
    if let (true, Some(records)) = (arguments.dry_run, records) {
        let mut report = plan_report::from_records(&records);
        if is_sandbox_missing {
            report.notes.push(sandbox_folder::MISSING.to_owned());
        }
        for (integration, reason) in supervisor.unchecked() {
            report.add_unchecked(UncheckedIntegration { integration, reason });
        }
        let (side, detail) = (supervisor.source.current()?, plan_output::detail(arguments.full));
        plan_output::print(
            &report,
            arguments.output,
            detail,
            &|file| side.display(file),
            &Printer::default(),
        )?;
    }
    Ok(exit)
}

/// The line that names the bundle, and the clusters of the data if they are the targets.
fn bundle_line(source: &dyn BundleReader, sandbox: Option<&Path>) -> LogLine {
    let sha = source.sha().chars().take(12).collect::<String>();
    let names = if sandbox.is_some() { Vec::new() } else { clusters::names(source) };
    let clusters = clusters::format_list(&names);
    let clusters = if clusters.is_empty() { clusters } else { format!(" · {clusters}") };
    LogLine::new(Level::Info, format!("bundle {sha}{clusters}"))
}

/// The outputs of `up`.
struct UpOutput {
    screen: Arc<Screen>,
    log: Arc<Log>,
    /// Whether a terminal shows the table.
    is_live: bool,
}

impl UpOutput {
    fn new(arguments: &UpArgs, prints_plan: bool) -> Self {
        let form = if prints_plan {
            arguments.log.line_format(&std::io::stderr())
        } else {
            arguments.log.line_format(&std::io::stdout())
        };
        let is_live = !arguments.once && form != LineFormat::Json && std::io::stdout().is_terminal();
        let screen = Arc::new(Screen::new(is_live, printer::has_colours(&std::io::stdout())));
        let log = Log::new(arguments.log.level().into());
        let log = if prints_plan {
            log.with_output(form, std::io::stderr())
        } else {
            log.with_output(form, screen.sink())
        };
        Self { screen, log: Arc::new(log), is_live }
    }
}

/// Serves the health and the metrics of the loops.
async fn serve_health(
    address: SocketAddr,
    supervisor: &Supervisor,
    reporters: &Arc<LoopRegistry>,
) -> anyhow::Result<()> {
    let (known, missed, unchecked) =
        (Arc::clone(reporters), Arc::clone(reporters), Arc::clone(&supervisor.unchecked));
    let health = Health {
        metrics: Arc::clone(&supervisor.metrics),
        reporters: Arc::new(move || known.all()),
        unstarted: Arc::new(move || missed.unstarted()),
        unchecked: Arc::new(move || unchecked.lock().keys().cloned().collect()),
        data_source: Arc::new(OnceLock::from(Arc::clone(&supervisor.source))),
    };
    let bound = health.serve(address).await?;
    let text = format!("listening on {}", health::addresses(bound));
    supervisor.log.write(&LogLine::new(Level::Info, text));
    Ok(())
}

/// Watches the data repo, in its own thread.
fn watch(feed: &Arc<WatchedRepo>, supervisor: &Supervisor, screen: &Arc<Screen>) {
    let (log, gauges) = (Arc::clone(&supervisor.log), supervisor.metrics.data_validity());
    feed.report_to(DataReporter { log, gauges, activity: DataUse::Reconcile });
    let (feed, log, screen) = (Arc::clone(feed), Arc::clone(&supervisor.log), Arc::clone(screen));
    std::thread::spawn(move || {
        // A closed terminal does not stop the watcher.
        let show = |text: &str| drop(screen.text(text));
        feed.watch(&show, |result| {
            if result == PollResult::New {
                log.write(&LogLine::new(Level::Info, "the data changed"));
            }
        });
    });
}

/// Interval at which the table is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Draws the table until the process ends.
async fn draw(screen: Arc<Screen>, reporters: Arc<LoopRegistry>, title: impl Fn() -> StatusTitle) {
    loop {
        let now = Instant::now();
        let loops = reporters.all();
        let loops =
            loops.iter().map(|reporter| loop_view(reporter.integration(), &reporter.status(), now)).collect();
        let size = TerminalSize::of_stdout();
        screen
            .show(status_table::lines(&StatusView { title: title(), loops }, size.width, size.height), size);
        tokio::time::sleep(REDRAW_INTERVAL).await;
    }
}
