//! The data server: loads bundles, serves them over HTTP, follows a data repo, and logs all of it.

mod file_limit;
pub mod places;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use qontract_server::{
    Bundles, Hearer, HostPolicy, Listener, Origin, ReleaseHook, Server, Settings, Shelf, Store, Token, Told,
};
use qontract_telemetry::log::{Level, Line, Log};
use qontract_telemetry::served::ServerMetrics;
use tokio::net::TcpListener;

use crate::exit::{Exit, UsageError};
use crate::invalid::{DataReporter, DataUse};
use crate::signals;
use crate::source::{PollResult, WatchedRepo};

/// Maximum number of bundles that are loaded because a request named their sha.
const MAX_FETCHED: usize = 8;

/// Time after which an idle thread for large answers ends.
const BLOCKING_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The bundles to serve, and the settings of the server.
pub struct ServePlan {
    /// The bundles to load at the start; the last one is the latest.
    pub first: Vec<Arc<dyn Origin>>,
    /// The origin that `/reload` reads again.
    pub again: Option<Arc<dyn Origin>>,
    /// The store of other bundles, by sha.
    pub store: Option<Store>,
    /// How long a bundle stays loaded after its last request.
    pub ttl: Duration,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Host names that are accepted besides loopback names.
    pub allow_host: Vec<String>,
    /// Settings of the server.
    pub settings: Settings,
    /// The data repo to follow.
    pub followed: Option<Arc<WatchedRepo>>,
    /// The log.
    pub log: Arc<Log>,
    /// Creates the hook that is called when a large answer has been freed. Its argument is how long idle
    /// threads for large answers live.
    pub release_hook: fn(Duration) -> ReleaseHook,
}

/// The token that requests must send as `Authorization`; `None` if requests are not authenticated.
pub fn token(file: Option<PathBuf>) -> anyhow::Result<Option<Token>> {
    let text = match file {
        Some(file) => Some(
            std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?,
        ),
        // An empty variable is a mistake, and must not disable authentication.
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

/// Runs a server on threads of its own.
pub fn start(serving: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    // Memory that another thread freed stays with the thread that allocated it until that thread works again
    // or ends.
    threads.thread_keep_alive(BLOCKING_KEEP_ALIVE);
    let runtime = threads.enable_all().build().context("cannot start threads")?;
    let exit = runtime.block_on(serving);
    // Answers that no client waits for any more are not finished.
    runtime.shutdown_background();
    exit
}

/// Serves until the process is asked to end.
pub async fn serve(plan: ServePlan) -> anyhow::Result<Exit> {
    let ServePlan { first, again, store, ttl, listen, allow_host, settings, followed, log, release_hook } =
        plan;
    let ended = signals::end()?;
    let wind_down = settings.wind_down.as_secs();
    let settings = Settings {
        connections: file_limit::connections(settings.connections, &log),
        hosts: host_policy(listen, settings.token.is_some(), allow_host),
        heard: Some(hearer(Arc::clone(&log))),
        released: Some(release_hook(BLOCKING_KEEP_ALIVE)),
        ..settings
    };
    let metrics = Arc::new(ServerMetrics::default());
    let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let is_started = Arc::new(AtomicBool::new(false));
    let listener = listener(Arc::clone(&log), Arc::clone(&metrics), Arc::clone(&is_started));
    let bundles = Arc::new(Bundles::new(Shelf::new(ttl, MAX_FETCHED), again, store, listener));
    let mut ended = std::pin::pin!(ended);
    for origin in first {
        let name = origin.name();
        tokio::select! {
            loaded = bundles.load(origin) => loaded.with_context(|| format!("cannot serve `{name}`"))?,
            signal = &mut ended => {
                log.write(&Line::new(Level::Info, format!("{} received; exiting", signal.name())));
                return Ok(Exit::Ok);
            }
        };
    }
    is_started.store(true, Ordering::Relaxed);
    // Nothing can be requested before there is a bundle.
    let listener = bind(listen).await?;
    let address = listener.local_addr()?;
    log.write(&Line::new(Level::Info, format!("Running at http://{address}/graphql")));
    if let Some(folder) = followed {
        follow(folder, &bundles, &log);
    }
    let new_id = || RandomState::new().build_hasher().finish();
    let server = Server::new(settings, bundles, metrics, new_id);
    server
        .serve(listener, async {
            let signal = ended.await.name();
            let text = format!("{signal} received; finishing open requests, {wind_down} s at most");
            log.write(&Line::new(Level::Info, text));
        })
        .await;
    Ok(Exit::Ok)
}

/// The host names that a server accepts: any, if it requires a token or listens on more than the loopback
/// interface.
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
fn hearer(log: Arc<Log>) -> Hearer {
    Arc::new(move |request| {
        let milliseconds = u64::try_from(request.took.as_millis()).unwrap_or(u64::MAX);
        let line = Line::new(Level::Debug, format!("{} {}", request.method, request.path));
        log.write(&line.with("status", request.status).with("milliseconds", milliseconds));
    })
}

/// Logs bundle events. A failure before the server has started is not logged here: it ends the server with an
/// error.
fn listener(log: Arc<Log>, metrics: Arc<ServerMetrics>, is_started: Arc<AtomicBool>) -> Listener {
    Arc::new(move |event| {
        let (level, text) = match event {
            Told::Loaded(sha) => {
                metrics.loaded();
                (Level::Info, format!("bundle loaded: {sha}"))
            }
            Told::Same(_) => (Level::Info, "skipping reload, data already loaded".to_owned()),
            Told::RolledBack(sha) => (Level::Info, format!("bundle loaded: {sha} (it was still held)")),
            Told::Fetched(sha) => (Level::Info, format!("bundle loaded from the store: {sha}")),
            Told::Dropped(sha) => (Level::Info, format!("removing expired bundle: {sha}")),
            Told::Failed(why) => {
                metrics.failed();
                if !is_started.load(Ordering::Relaxed) {
                    return;
                }
                (Level::Error, format!("reload failed; still serving the previous bundle: {why}"))
            }
        };
        log.write(&Line::new(level, text));
    })
}

/// Serves a data repo as it changes.
fn follow(folder: Arc<WatchedRepo>, bundles: &Arc<Bundles>, log: &Arc<Log>) {
    let (bundles, log, runtime) = (Arc::clone(bundles), Arc::clone(log), tokio::runtime::Handle::current());
    std::thread::spawn(move || {
        let show = {
            let log = Arc::clone(&log);
            move |text: &str| log.write(&Line::of_lines(Level::Error, text))
        };
        folder.report_to(DataReporter { log, metrics: None, activity: DataUse::Serve });
        folder.watch(&show, |result| {
            if result == PollResult::New {
                // The listener of the bundles logs failures.
                let _ = runtime.block_on(bundles.load(places::in_force(Arc::clone(&folder))));
            }
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
