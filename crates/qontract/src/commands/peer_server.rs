//! `qontract-server`: serves GraphQL over HTTP, configured by the peer's environment variables.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qontract_daemon::exit::{Exit, UsageError};
use qontract_server::{File, Origin, Settings};
use qontract_telemetry::log::{Form, Level, Log};

use qontract_cli::{PeerServer, variable};

use qontract_daemon::data_server::{ServePlan, places, serve, start, token};

use crate::allocator::{self, PurgeDelay};

/// Default of `BUNDLE_SHA_TTL`: milliseconds that a bundle stays loaded after its last request.
const TTL: u64 = 1_200_000;

/// Serves until a shutdown.
pub fn run(arguments: &PeerServer) -> anyhow::Result<Exit> {
    allocator::reexec_with_purge_delay(PurgeDelay::Soon);
    let log = Arc::new(Log::new(Level::Info).to(Form::Text, std::io::stdout()));
    let settings = Settings { token: token(None)?, ..Settings::default() };
    start(async {
        // With `INIT_BUNDLES`, an invalid `LOAD_METHOD` only disables `/reload`.
        let (again, first) = if let Some(places) = variable("INIT_BUNDLES") {
            (source().await.ok().flatten(), initial(&places).await?)
        } else {
            let source = source().await?;
            (source.clone(), source.into_iter().collect())
        };
        if first.is_empty() {
            let text = "nothing to serve: set `LOAD_METHOD` to `fs` or `s3`, or `INIT_BUNDLES`";
            return Err(UsageError(text.to_owned()).into());
        }
        let listen = arguments.listen;
        let plan = ServePlan {
            first,
            again,
            store: None,
            ttl: ttl(),
            listen,
            allow_host: Vec::new(),
            settings,
            followed: None,
            log,
            release_hook: allocator::purge_when_released,
        };
        serve(plan).await
    })
}

/// The origin that `LOAD_METHOD` selects.
async fn source() -> anyhow::Result<Option<Arc<dyn Origin>>> {
    let needed = |name: &str| variable(name).ok_or_else(|| UsageError(format!("`{name}` is not set")));
    match variable("LOAD_METHOD").as_deref() {
        None => Ok(None),
        Some("fs") => Ok(Some(Arc::new(File(PathBuf::from(needed("DATAFILES_FILE")?))))),
        Some("s3") => Ok(Some(places::stored(&needed("AWS_S3_BUCKET")?, &needed("AWS_S3_KEY")?).await?)),
        Some(other) => Err(UsageError(format!("`LOAD_METHOD` must be `fs` or `s3`, not `{other}`")).into()),
    }
}

/// The origins in `INIT_BUNDLES`: `fs://PATH` and `s3://KEY`, separated by commas.
async fn initial(places: &str) -> anyhow::Result<Vec<Arc<dyn Origin>>> {
    let mut origins: Vec<Arc<dyn Origin>> = Vec::new();
    for place in places.split(',').map(str::trim).filter(|place| !place.is_empty()) {
        match place.split_once("://") {
            Some(("fs", path)) => origins.push(Arc::new(File(PathBuf::from(path)))),
            Some(("s3", key)) => {
                let bucket = variable("AWS_S3_BUCKET")
                    .ok_or_else(|| UsageError("`AWS_S3_BUCKET` is not set".to_owned()))?;
                origins.push(places::stored(&bucket, key).await?);
            }
            _ => return Err(UsageError(format!("incorrect bundle {place} specified")).into()),
        }
    }
    Ok(origins)
}

/// The value of `BUNDLE_SHA_TTL` in milliseconds; the default if it is not a positive number.
fn ttl() -> Duration {
    let given = variable("BUNDLE_SHA_TTL").and_then(|text| text.trim().parse().ok()).filter(|ttl| *ttl > 0);
    Duration::from_millis(given.unwrap_or(TTL))
}
