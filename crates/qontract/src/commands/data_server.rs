//! `serve`: GraphQL over HTTP, for many bundles.

use std::path::PathBuf;
use std::sync::Arc;

use qontract_bundle::Layout;
use qontract_cli::Serve;
use qontract_daemon::data_server::{ServePlan, places, serve, start, token};
use qontract_daemon::discovery::{self, PassedAs};
use qontract_daemon::exit::{Exit, UsageError};
use qontract_daemon::source::WatchedRepo;
use qontract_server::Settings;
use qontract_telemetry::log::Log;

use crate::allocator::{self, PurgeDelay};

/// Serves until a shutdown.
pub fn run(arguments: Serve) -> anyhow::Result<Exit> {
    // Before the token is read, which may come from a pipe.
    allocator::reexec_with_purge_delay(PurgeDelay::Soon);
    let talk = arguments.talk.with_environment()?;
    let log = Arc::new(Log::new(talk.level().into()).to(talk.form(&std::io::stderr()), std::io::stderr()));
    let settings = Settings {
        token: token(arguments.token_file)?,
        answers: arguments.limits.answer_cache << 20,
        connections: arguments.limits.connections,
        query_time: arguments.limits.query_time,
        patience: arguments.limits.write_timeout,
        ..Settings::default()
    };
    let at_a_time = arguments.limits.concurrency.unwrap_or(settings.at_a_time);
    let settings = Settings { at_a_time, ..settings };
    start(async {
        let store = match &arguments.store {
            Some(place) => Some(places::store(place).await?),
            None => None,
        };
        let mut first = Vec::new();
        for place in &arguments.bundle {
            first.push(places::bundle(place).await?);
        }
        let mut followed = None;
        if first.is_empty() {
            let layout = Layout::from(arguments.layout);
            let given = arguments.repo.unwrap_or_else(|| PathBuf::from("."));
            let folder = discovery::root(&given, &layout, PassedAs::Argument)?;
            if !folder.is_dir() {
                return Err(UsageError(format!("`{}` is not a folder", folder.display())).into());
            }
            let folder = Arc::new(WatchedRepo::new(folder, layout));
            followed = arguments.watch.then(|| Arc::clone(&folder));
            first.push(places::repo(folder, &log));
        }
        let again = first.last().cloned();
        serve(ServePlan {
            first,
            again,
            store,
            ttl: arguments.ttl,
            listen: arguments.listen,
            allow_host: arguments.allow_host,
            settings,
            followed,
            log,
            release_hook: allocator::purge_when_released,
        })
        .await
    })
}
