//! `qontract serve`: serves many bundles as GraphQL over HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use qontract_bundle::Layout;
use qontract_cli::ServeArgs;
use qontract_daemon::allocator::{self, PurgeDelay};
use qontract_daemon::bundle_analysis::DataAnalysis;
use qontract_daemon::data_server::{ServeOptions, bundle_sources, read_token, serve, start};
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::source::WatchedRepo;
use qontract_server::Settings;

/// Serves until a shutdown.
pub fn run(arguments: ServeArgs) -> anyhow::Result<Exit> {
    // The program is re-executed before the token is read, because the token may come from a pipe.
    allocator::reexec_with_purge_delay(PurgeDelay::Short);
    let log_options = arguments.log.with_environment()?;
    let log = Arc::new(log_options.stderr_log());
    let settings = Settings {
        token: read_token(arguments.token_file)?,
        cache_bytes: arguments.limits.answer_cache << 20,
        max_connections: arguments.limits.connections,
        query_timeout: arguments.limits.query_time,
        write_timeout: arguments.limits.write_timeout,
        ..Settings::default()
    };
    let max_concurrent_queries = arguments.limits.concurrency.unwrap_or(settings.max_concurrent_queries);
    let settings = Settings { max_concurrent_queries, ..settings };
    start(async {
        let store = match &arguments.store {
            Some(place) => Some(bundle_sources::store(place).await?),
            None => None,
        };
        let mut first = Vec::new();
        for place in &arguments.bundle {
            first.push(bundle_sources::bundle(place).await?);
        }
        let (mut watched, mut analysis) = (None, DataAnalysis::without_files());
        if first.is_empty() {
            let layout = Layout::from(arguments.layout);
            let given = arguments.repo.unwrap_or_else(|| PathBuf::from("."));
            let folder = discovery::root(&given, &layout, PassedAs::Argument)?;
            if !folder.is_dir() {
                return Err(UsageError(format!("`{}` is not a directory", folder.display())).into());
            }
            analysis = DataAnalysis::of_repo(folder.clone(), layout.clone());
            let folder = Arc::new(WatchedRepo::new(folder, layout));
            watched = arguments.watch.then(|| Arc::clone(&folder));
            first.push(bundle_sources::repo(folder, &log));
        }
        let reload_source = first.last().cloned();
        serve(ServeOptions {
            initial_bundles: first,
            reload_source,
            store,
            ttl: arguments.ttl,
            listen: arguments.listen,
            allow_host: arguments.allow_host,
            settings: Settings { analysis: Some(Arc::new(analysis)), ..settings },
            watched_repo: watched,
            log,
            release_hook: allocator::purge_when_released,
        })
        .await
    })
}
