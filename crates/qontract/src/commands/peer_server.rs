//! `qontract-server`: serves GraphQL over HTTP, configured by the peer's environment variables.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qontract_daemon::allocator::{self, PurgeDelay};
use qontract_daemon::bundle_analysis::DataAnalysis;
use qontract_daemon::exit::{Exit, UsageError};
use qontract_server::{BundleSource, FileSource, Settings};
use qontract_telemetry::log::{Level, LineFormat, Log};

use qontract_cli::{PeerServerArgs, variable};

use qontract_daemon::data_server::{ServeOptions, bundle_sources, read_token, serve, start};

/// Default of `BUNDLE_SHA_TTL`: how long a bundle stays loaded after its last request, in milliseconds.
const DEFAULT_TTL_MS: u64 = 1_200_000;

/// Serves until a shutdown.
pub fn run(arguments: &PeerServerArgs) -> anyhow::Result<Exit> {
    allocator::reexec_with_purge_delay(PurgeDelay::Short);
    let log = Arc::new(Log::new(Level::Info).with_output(LineFormat::Text, std::io::stdout()));
    let analysis = Arc::new(DataAnalysis::without_files());
    let settings = Settings { token: read_token(None)?, analysis: Some(analysis), ..Settings::default() };
    start(async {
        // With `INIT_BUNDLES`, an invalid `LOAD_METHOD` only disables `/reload`.
        let (again, first) = if let Some(places) = variable("INIT_BUNDLES") {
            (load_method_source().await.ok().flatten(), initial_bundles(&places).await?)
        } else {
            let source = load_method_source().await?;
            (source.clone(), source.into_iter().collect())
        };
        if first.is_empty() {
            let text = "nothing to serve: set `LOAD_METHOD` to `fs` or `s3`, or `INIT_BUNDLES`";
            return Err(UsageError(text.to_owned()).into());
        }
        let listen = arguments.listen;
        let plan = ServeOptions {
            initial_bundles: first,
            reload_source: again,
            store: None,
            ttl: ttl(),
            listen,
            allow_host: Vec::new(),
            settings,
            watched_repo: None,
            log,
            release_hook: allocator::purge_when_released,
        };
        serve(plan).await
    })
}

/// The bundle source that `LOAD_METHOD` selects.
async fn load_method_source() -> anyhow::Result<Option<Arc<dyn BundleSource>>> {
    let needed = |name: &str| variable(name).ok_or_else(|| UsageError(format!("`{name}` is not set")));
    match variable("LOAD_METHOD").as_deref() {
        None => Ok(None),
        Some("fs") => Ok(Some(Arc::new(FileSource(PathBuf::from(needed("DATAFILES_FILE")?))))),
        Some("s3") => {
            Ok(Some(bundle_sources::s3_blob(&needed("AWS_S3_BUCKET")?, &needed("AWS_S3_KEY")?).await?))
        }
        Some(other) => Err(UsageError(format!("`LOAD_METHOD` must be `fs` or `s3`, not `{other}`")).into()),
    }
}

/// The bundle sources in `INIT_BUNDLES`: `fs://PATH` and `s3://KEY`, separated by commas.
async fn initial_bundles(places: &str) -> anyhow::Result<Vec<Arc<dyn BundleSource>>> {
    let mut origins: Vec<Arc<dyn BundleSource>> = Vec::new();
    for place in places.split(',').map(str::trim).filter(|place| !place.is_empty()) {
        match place.split_once("://") {
            Some(("fs", path)) => origins.push(Arc::new(FileSource(PathBuf::from(path)))),
            Some(("s3", key)) => {
                let bucket = variable("AWS_S3_BUCKET")
                    .ok_or_else(|| UsageError("`AWS_S3_BUCKET` is not set".to_owned()))?;
                origins.push(bundle_sources::s3_blob(&bucket, key).await?);
            }
            _ => return Err(UsageError(format!("incorrect bundle {place} specified")).into()),
        }
    }
    Ok(origins)
}

/// The value of `BUNDLE_SHA_TTL` in milliseconds; the default if it is not a positive number.
fn ttl() -> Duration {
    let given = variable("BUNDLE_SHA_TTL").and_then(|text| text.trim().parse().ok()).filter(|ttl| *ttl > 0);
    Duration::from_millis(given.unwrap_or(DEFAULT_TTL_MS))
}
