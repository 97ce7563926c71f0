//! The data server: loads bundles, serves them over HTTP, watches a data repo, and logs these events.

pub mod bundle_sources;
mod file_limit;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use qontract_server::{
    AccessLog, BundleEvent, BundleObserver, BundleRegistry, BundleSource, BundleStore, Bundles,
    DegradationProbe, HostPolicy, ReleaseHook, Server, Settings, Token,
};
use qontract_telemetry::log::{Level, Log, LogLine};
use qontract_telemetry::server_metrics::ServerMetrics;
use tokio::net::TcpListener;

use crate::data_validity::{DataReporter, DataUse};
use crate::exit::{Exit, UsageError};
use crate::signals;
use crate::source::{DataSource as _, PollResult, WatchedRepo};

/// Maximum number of bundles that stay loaded because requests named their shas.
const MAX_FETCHED: usize = 8;

/// Time after which an idle thread for large responses ends.
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The bundles to serve, and the settings of the server.
pub struct ServeOptions {
    /// The bundles to load at the start; the last one is the latest.
    pub initial_bundles: Vec<Arc<dyn BundleSource>>,
    /// The bundle source that `/reload` reads again.
    pub reload_source: Option<Arc<dyn BundleSource>>,
    /// The store of other bundles, by sha.
    pub store: Option<BundleStore>,
    /// The time for which a bundle stays loaded after its last request.
    pub ttl: Duration,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Host names that are accepted besides loopback names.
    pub allow_host: Vec<String>,
    /// Settings of the server.
    pub settings: Settings,
    /// The data repo to watch.
    pub watched_repo: Option<Arc<WatchedRepo>>,
    /// The log of the server.
    pub log: Arc<Log>,
    /// Creates the hook that is called when a large response has been freed. The argument is the time after which an
    /// idle thread for large responses ends.
    pub release_hook: fn(Duration) -> ReleaseHook,
}

/// The token that requests must send as `Authorization`; `None` if requests are not authenticated.
pub fn read_token(file: Option<PathBuf>) -> anyhow::Result<Option<Token>> {
    let text = match file {
        Some(file) => Some(
            std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?,
        ),
        // An empty variable is a mistake, so it must not disable authentication.
        None => std::env::var("QONTRACT_SERVER_TOKEN").ok(),
    };
    let text = text.map(|text| text.trim().to_owned());
    if text.as_ref().is_some_and(String::is_empty) {
        return Err(UsageError(
            "the server token is empty: check `--token-file` and `$QONTRACT_SERVER_TOKEN`".to_owned(),
        )
        .into());
    }
    Ok(text.map(|text| Token::new(&text)))
}

/// Runs a server on threads of a separate runtime.
pub fn start(serving: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    // Memory that another thread freed is returned to the system only when the thread that allocated it works again
    // or ends.
    threads.thread_keep_alive(BLOCKING_KEEP_ALIVE);
    let runtime = threads.enable_all().build().context("cannot start threads")?;
    let exit = runtime.block_on(serving);
    // Responses without a waiting client are abandoned.
    runtime.shutdown_background();
    exit
}

/// Serves until a shutdown signal.
pub async fn serve(plan: ServeOptions) -> anyhow::Result<Exit> {
    let ServeOptions {
        initial_bundles: first,
        reload_source: again,
        store,
        ttl,
        listen,
        allow_host,
        settings,
        watched_repo: followed,
        log,
        release_hook,
    } = plan;
    let ended = signals::shutdown_signal()?;
    let wind_down = settings.shutdown_timeout.as_secs();
    let settings = Settings {
        max_connections: file_limit::connections(settings.max_connections, &log),
        hosts: host_policy(listen, settings.token.is_some(), allow_host),
        access_log: Some(access_log(Arc::clone(&log))),
        degradation: followed.clone().map(degradation_probe),
        on_release: Some(release_hook(BLOCKING_KEEP_ALIVE)),
        ..settings
    };
    let metrics = Arc::new(ServerMetrics::default());
    let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let is_started = Arc::new(AtomicBool::new(false));
    let listener = event_logger(Arc::clone(&log), Arc::clone(&metrics), Arc::clone(&is_started));
    let bundles = Arc::new(Bundles::new(BundleRegistry::new(ttl, MAX_FETCHED), again, store, listener));
    let mut ended = std::pin::pin!(ended);
    for origin in first {
        let name = origin.name();
        tokio::select! {
            loaded = bundles.load(origin) => loaded.with_context(|| format!("cannot serve `{name}`"))?,
            signal = &mut ended => {
                log.write(&LogLine::new(Level::Info, format!("{} received; exiting", signal.name())));
                return Ok(Exit::Ok);
            }
        };
    }
    is_started.store(true, Ordering::Relaxed);
    // Requests are accepted only once a bundle is loaded.
    let listener = bind(listen).await?;
    let address = listener.local_addr()?;
    log.write(&LogLine::new(Level::Info, format!("Running at http://{address}/graphql")));
    if let Some(folder) = followed {
        watch_repo(folder, &bundles, &metrics, &log);
    }
    let new_id = || RandomState::new().build_hasher().finish();
    let server = Server::new(settings, bundles, metrics, new_id);
    server
        .serve(listener, async {
            let signal = ended.await.name();
            let text = format!("{signal} received; finishing open requests, {wind_down} s at most");
            log.write(&LogLine::new(Level::Info, text));
        })
        .await;
    Ok(Exit::Ok)
}

/// The host names that a server accepts. It accepts all host names if it requires a token or listens on more than the
/// loopback interface.
fn host_policy(listen: SocketAddr, has_token: bool, allowed: Vec<String>) -> HostPolicy {
    if has_token || !listen.ip().to_canonical().is_loopback() {
        return HostPolicy::Any;
    }
    HostPolicy::Loopback(allowed)
}

/// Binds the listener. On a machine without IPv6, `[::]` means all IPv4 interfaces.
async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.ip() == std::net::Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
    .with_context(|| format!("cannot listen on {address}"))
}

/// Logs every request at debug level.
fn access_log(log: Arc<Log>) -> AccessLog {
    Arc::new(move |request| {
        let milliseconds = u64::try_from(request.took.as_millis()).unwrap_or(u64::MAX);
        let line = LogLine::new(Level::Debug, format!("{} {}", request.method, request.path));
        log.write(&line.with("status", request.status).with("milliseconds", milliseconds));
    })
}

/// Logs bundle events. A failure before the server has started is not logged, because the command ends with this
/// error.
fn event_logger(log: Arc<Log>, metrics: Arc<ServerMetrics>, is_started: Arc<AtomicBool>) -> BundleObserver {
    Arc::new(move |event| {
        let (level, text) = match event {
            BundleEvent::Loaded(sha) => {
                metrics.count_load();
                (Level::Info, format!("bundle loaded: {sha}"))
            }
            BundleEvent::Same(_) => (Level::Info, "skipping reload, data already loaded".to_owned()),
            BundleEvent::RolledBack(sha) => {
                (Level::Info, format!("bundle loaded: {sha} (it was still in memory)"))
            }
            BundleEvent::Fetched(sha) => (Level::Info, format!("bundle loaded from the store: {sha}")),
            BundleEvent::Dropped(sha) => (Level::Info, format!("removing expired bundle: {sha}")),
            BundleEvent::Failed(why) => {
                metrics.count_failed_load();
                if !is_started.load(Ordering::Relaxed) {
                    return;
                }
                (Level::Error, format!("reload failed; still serving the previous bundle: {why}"))
            }
        };
        log.write(&LogLine::new(level, text));
    })
}

/// Describes invalid data of a watched repo for health checks. The description names no files, because clients of
/// health checks need no token.
fn degradation_probe(folder: Arc<WatchedRepo>) -> DegradationProbe {
    Arc::new(move || {
        let invalid = folder.invalid()?;
        Some(invalid.public_summary(Timestamp::now(), DataUse::Serve))
    })
}

/// Watches a data repo and serves each new bundle.
fn watch_repo(
    folder: Arc<WatchedRepo>,
    bundles: &Arc<Bundles>,
    metrics: &Arc<ServerMetrics>,
    log: &Arc<Log>,
) {
    let (bundles, log, runtime) = (Arc::clone(bundles), Arc::clone(log), tokio::runtime::Handle::current());
    let metrics = Arc::clone(metrics);
    std::thread::spawn(move || {
        let show = {
            let log = Arc::clone(&log);
            move |text: &str| log.write(&LogLine::of_lines(Level::Error, text))
        };
        folder.report_to(DataReporter { log, gauges: metrics.data_validity(), activity: DataUse::Serve });
        folder.watch(&show, |result| match result {
            PollResult::New => {
                // The result is ignored, because the bundle observer logs and counts failures.
                let _ = runtime.block_on(bundles.load(bundle_sources::current_bundle(Arc::clone(&folder))));
            }
            PollResult::Invalid => metrics.count_failed_load(),
            PollResult::Unchanged
            | PollResult::StillInvalid
            | PollResult::ValidAgain
            | PollResult::Unsettled => {}
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_on_the_loopback_interface_without_a_token() {
        let check = |listen: &str, has_token: bool, expect: HostPolicy| {
            assert_eq!(host_policy(listen.parse().unwrap(), has_token, Vec::new()), expect, "{listen}");
        };
        for own in ["127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            check(own, false, HostPolicy::Loopback(Vec::new()));
            check(own, true, HostPolicy::Any);
        }
        for open in ["0.0.0.0:0", "[::]:0", "10.0.0.1:0"] {
            check(open, false, HostPolicy::Any);
        }
    }
}
