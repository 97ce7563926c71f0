//! One integration in a loop.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use qontract_access::Mode;
use qontract_bundle::Layout;
use qontract_runtime::looping::{Carrier, Crowd, Finish, Interruption, Limits, Loop, Pace, Stop};
use qontract_runtime::slot::Slot;
use qontract_runtime::{Bodies, Ended};
use qontract_telemetry::log::{Level, Line, Log};
use qontract_telemetry::metrics::{Metrics, Process};
use tokio::sync::{Notify, watch};

use crate::announce::Announcement;
use crate::cli::{Chosen, RunOptions};
use crate::config::Config;
use crate::data::{Connection, Side};
use crate::discovery::{self, PassedAs};
use crate::exit::{Exit, UsageError};
use crate::input::Opener;
use crate::integrations;
use crate::journal;
use crate::keep::feed::{Feed, Folder, Look, Remote};
use crate::keep::health::Health;
use crate::keep::invalid::{DataReporter, DataUse};
use crate::keep::push::{Ends, Push, Pushing};
use crate::keep::signals;
use crate::keep::turn::{Manner, Runner};
use crate::keep::voice::Voice;
use crate::printer::Printer;
use crate::runs::Runs;
use crate::targets::Targets;

/// How often a server is asked whether it has a new bundle.
const ASK: Duration = Duration::from_secs(10);

/// How a loop is kept.
pub struct Keeping {
    /// When runs are due.
    pub pace: Pace,
    /// Whether it ends after the first.
    pub once: bool,
    /// Where lines go.
    pub log: Arc<Log>,
    /// Where it answers.
    pub listen: Option<SocketAddr>,
    /// The name of this shard in metrics.
    pub shard: Option<String>,
    /// Where metrics are handed over after each run.
    pub push: Option<Push>,
}

/// The metrics of this process, with the version of the binary.
pub fn build_metrics() -> Arc<Metrics> {
    let metrics = Metrics::default();
    metrics.set_build(env!("CARGO_PKG_VERSION"), env!("QONTRACT_BUILD_COMMIT"));
    Arc::new(metrics)
}

/// Keeps an integration going until the end is asked for.
pub fn keep(options: &RunOptions, integration: &Chosen, keeping: &Keeping) -> anyhow::Result<Exit> {
    let config = options.configuration()?;
    let mode = if options.dry_run { Mode::DryRun } else { Mode::Real };
    let targets = Targets::new(&config, options.sandbox_at(), mode)?.with_log(&keeping.log);
    let room = Arc::new(integrations::room(&integration.name, &config, &targets)?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let (id, shards) = (options.shard_id.unwrap_or(0), options.shards.unwrap_or(1));
    let process = Process {
        integration: integration.name.clone(),
        shards: shards.to_string(),
        shard_id: keeping.shard.clone().unwrap_or_else(|| format!("{id}-{shards}")),
    };
    let metrics = build_metrics();
    let voice = Arc::new(Voice::new(process.clone(), Arc::clone(&keeping.log), Arc::clone(&metrics)));
    let pushing = match &keeping.push {
        None => None,
        Some(push) => {
            let pushing = Pushing::new(push, process, Arc::clone(&metrics), Arc::clone(&keeping.log))?;
            Some(Arc::new(pushing))
        }
    };
    let slot = Slot::new(id, shards).map_err(|error| UsageError(error.to_string()))?;
    let runs = Arc::new(Runs::new(options.runs.clone())?);
    let health_feed = Arc::new(OnceLock::new());
    if let Some(address) = keeping.listen {
        let known = Arc::clone(&voice);
        let voices = Arc::new(move || vec![Arc::clone(&known)]);
        let (metrics, feed) = (Arc::clone(&metrics), Arc::clone(&health_feed));
        let health =
            Health { metrics, voices, unstarted: Arc::new(Vec::new), unchecked: Arc::new(Vec::new), feed };
        let bound = runtime.block_on(health.serve(address))?;
        keeping.log.write(&Line::new(Level::Info, format!("answers on http://{bound}/")));
    }
    // After all that may fail and be tried again: the thread that follows the data lives as long as the process.
    let (feed, looked) = feed(options, &config, runtime.handle(), &keeping.log, &metrics)?;
    let _ = health_feed.set(Arc::clone(&feed));
    // Only data that is at hand: a server that does not answer must not hold up the loop.
    let is_local = config.server(options.data.as_deref()).is_none() && feed.bundle_in_use().is_some();
    if let Some(head) = is_local.then(|| feed.side().ok()).flatten() {
        let announcement = Announcement { options, config: &config, room: &room, mode };
        keeping.log.write(&Line::new(Level::Info, announcement.line(&integration.options, &head)));
    }
    if keeping.once && matches!(looked, Look::Bad | Look::StillBad) {
        return Ok(Exit::Failure);
    }
    let runner = Runner {
        room,
        options: integration.options.clone(),
        feed: Arc::clone(&feed),
        manner: Manner {
            mode,
            slot,
            budgets: config.guards.budgets(),
            ledger: journal::of(config.sandbox_folder(options.sandbox.as_deref()), &runs),
            validate_schemas: options.validate_schemas || !options.no_validate_schemas,
            bodies: if options.full { Bodies::Shown } else { Bodies::Hidden },
        },
        runs,
        kept: Arc::clone(&voice) as _,
    };
    let limits = Limits { beat: Duration::from_secs(1), ..Limits::default() };
    let (carrier, crowd) = (Carrier::Thread, Crowd::default());
    let looping = Loop { pace: keeping.pace, limits, carrier, crowd, once: keeping.once };
    let (stopper, stop) = Stop::pair();
    let finish = runtime.block_on(async {
        let known = Arc::clone(&voice);
        signals::listen(stopper.clone(), move || vec![Arc::clone(&known)], Arc::clone(&keeping.log))?;
        let (chance, ended) = (fastrand::f64, Arc::new(Notify::new()));
        if let Some(pushing) = pushing.clone() {
            let ended = Arc::clone(&ended);
            tokio::spawn(async move {
                loop {
                    ended.notified().await;
                    pushing.push().await;
                }
            });
        }
        let told = Ends { voice: Arc::clone(&voice), ended };
        let finish = looping.keep(Arc::new(runner), feed.news(), stop, (chance, &told)).await;
        if matches!(finish, Finish::Once(_)) {
            voice.log_run(None);
        }
        if let Some(pushing) = pushing {
            pushing.push().await;
        }
        anyhow::Ok(finish)
    })?;
    // The process ends now: threads that still query a server would panic without the runtime.
    std::mem::forget(runtime);
    Ok(match finish {
        Finish::Once(Ended::Interrupted) => {
            Exit::Run(stopper.interruption().map_or(130, Interruption::exit_code))
        }
        Finish::Once(ended) => Exit::Run(ended.code()),
        Finish::Stopped => signals::exit_of_loop(&stopper, Exit::Ok),
        Finish::GaveUp => Exit::Failure,
    })
}

/// Where the data comes from: the server of the configuration, a folder that is watched, or something that stays as it is.
fn feed(
    options: &RunOptions,
    config: &Config,
    runtime: &tokio::runtime::Handle,
    log: &Arc<Log>,
    metrics: &Arc<Metrics>,
) -> anyhow::Result<(Arc<dyn Feed>, Look)> {
    let failed = |log: &Log, error: &anyhow::Error| {
        log.write(&Line::new(Level::Warning, format!("cannot look for new data: {error:#}")));
    };
    if let Some(graphql) = config.server(options.data.as_deref()) {
        let connection = Connection::new(&graphql, runtime.clone())?;
        let remote = Arc::new(Remote::new(connection, options.gql_sha_url || !options.no_gql_sha_url));
        let (looking, log) = (Arc::clone(&remote), Arc::clone(log));
        std::thread::spawn(move || {
            loop {
                looking.look().unwrap_or_else(|error| failed(&log, &error));
                std::thread::sleep(ASK);
            }
        });
        return Ok((remote, Look::New));
    }
    let word = options.data.as_deref().unwrap_or(".");
    if !Path::new(word).is_dir() {
        return Ok((Arc::new(Opened { word: word.to_owned(), repo: options.repo.clone() }), Look::New));
    }
    let root = discovery::root(Path::new(word), &Layout::default(), PassedAs::Option)?;
    let folder = Arc::new(Folder::new(root, Layout::default()));
    let shown = Arc::clone(log);
    let show = move |text: &str| shown.write(&Line::of_lines(Level::Error, text));
    let (log, metrics) = (Arc::clone(log), Some(Arc::clone(metrics)));
    folder.report_to(DataReporter { log, metrics, activity: DataUse::Reconcile });
    let looked = folder.look(&show)?;
    let looking = Arc::clone(&folder);
    // A new bundle starts a run, which is logged.
    std::thread::spawn(move || looking.watch(&show, |_| {}));
    Ok((folder, looked))
}

/// A bundle file or a Git revision, which is opened for each run.
struct Opened {
    word: String,
    repo: std::path::PathBuf,
}

impl Feed for Opened {
    fn side(&self) -> anyhow::Result<Arc<Side>> {
        let printer = Printer::default();
        let opener = Opener::new(&self.repo, Layout::default(), &printer);
        let mut side = Side::open(&opener, &self.word, None)?;
        side.require_valid(&self.word, &printer)?;
        Ok(Arc::new(side))
    }

    fn news(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
