//! The bundle sources of `serve` that the command line and the environment name: a file, a directory, or a
//! bucket.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::ReadPermit;
use qontract_bundle::Pool;
use qontract_client_blobs::{BlobKey, BlobReader, S3, S3Credentials, S3Settings};
use qontract_config::variable;
use qontract_server::{BlobSource, BundleSource, BundleStore, Content, FileSource, SourceError};
use qontract_telemetry::log::{Level, Log, LogLine};

use crate::exit::UsageError;
use crate::source::{DataSource as _, PollResult, WatchedRepo};

/// Maximum size in bytes of a bundle in a bucket.
const MAX_BUNDLE_BYTES: u64 = 2 << 30;

/// Opens the source of a bundle: a file, `fs://PATH`, or `s3://BUCKET/KEY`.
pub async fn bundle(place: &str) -> anyhow::Result<Arc<dyn BundleSource>> {
    if let Some(path) = place.strip_prefix("s3://") {
        let (bucket, key) = bucket_of(place, path)?;
        return s3_blob(bucket, key).await;
    }
    let file = PathBuf::from(place.strip_prefix("fs://").unwrap_or(place));
    // A pipe is also accepted.
    if !file.exists() || file.is_dir() {
        return Err(UsageError(format!("`{place}` is not a file")).into());
    }
    Ok(Arc::new(FileSource(file)))
}

/// Opens a store of bundles by sha: a directory, `fs://PATH`, or `s3://BUCKET/PREFIX`.
pub async fn store(place: &str) -> anyhow::Result<BundleStore> {
    let Some(path) = place.strip_prefix("s3://") else {
        let folder = place.strip_prefix("fs://").unwrap_or(place);
        return Ok(BundleStore::Folder(PathBuf::from(folder)));
    };
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    // A prefix is a directory, with or without the trailing slash.
    let slash = if prefix.is_empty() || prefix.ends_with('/') { "" } else { "/" };
    Ok(BundleStore::Blobs { blobs: s3(bucket).await?, prefix: format!("{prefix}{slash}") })
}

fn bucket_of<'p>(place: &str, path: &'p str) -> Result<(&'p str, &'p str), UsageError> {
    let parts = path.split_once('/').filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty());
    parts.ok_or_else(|| UsageError(format!("`{place}` is not `s3://BUCKET/KEY`")))
}

/// Opens a blob of a bucket as the source of a bundle.
pub async fn s3_blob(bucket: &str, key: &str) -> anyhow::Result<Arc<dyn BundleSource>> {
    let key = BlobKey::new(key).map_err(|error| UsageError(error.to_string()))?;
    Ok(Arc::new(BlobSource { blobs: s3(bucket).await?, key }))
}

/// Opens a bucket with credentials from the environment: keys, a profile, or the identity of the pod.
async fn s3(bucket: &str) -> anyhow::Result<Arc<dyn BlobReader>> {
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = region.unwrap_or_else(|| "us-east-1".to_owned());
    let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].into_iter().find_map(|name| {
        let text = variable(name)?;
        Some(text.parse().map_err(|error| UsageError(format!("`{name}`: {error}"))))
    });
    let settings = S3Settings {
        endpoint: endpoint.transpose()?,
        max_blob_bytes: MAX_BUNDLE_BYTES,
        ..S3Settings::new(bucket, region, S3Credentials::Environment)
    };
    Ok(Arc::new(S3::new(&ReadPermit::for_data(), settings).await))
}

/// The source of the bundles of a data repo, which is bundled and validated when the source is read.
pub fn repo(folder: Arc<WatchedRepo>, log: &Arc<Log>) -> Arc<dyn BundleSource> {
    Arc::new(RepoSource { folder, log: Arc::clone(log) })
}

struct RepoSource {
    folder: Arc<WatchedRepo>,
    log: Arc<Log>,
}

impl BundleSource for RepoSource {
    fn name(&self) -> String {
        self.folder.repo().display().to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        let (folder, log) = (Arc::clone(&self.folder), Arc::clone(&self.log));
        let poll = move || {
            let show = |text: &str| log.write(&LogLine::of_lines(Level::Error, text));
            let other = |error: anyhow::Error| SourceError::Other(format!("{error:#}"));
            match folder.poll(&show).map_err(other)? {
                PollResult::Invalid | PollResult::StillInvalid => {
                    Err(SourceError::Other("the data has errors".to_owned()))
                }
                PollResult::New | PollResult::Unchanged | PollResult::ValidAgain | PollResult::Unsettled => {
                    content(&folder)
                }
            }
        };
        async {
            let polled = tokio::task::spawn_blocking(poll).await;
            polled.unwrap_or_else(|_| Err(SourceError::Other("bundling panicked: this is a bug".to_owned())))
        }
        .boxed()
    }
}

/// The source of the valid bundle of a data repo that is in use. Reading it does not poll the data repo again.
pub fn current_bundle(folder: Arc<WatchedRepo>) -> Arc<dyn BundleSource> {
    Arc::new(CurrentBundleSource(folder))
}

struct CurrentBundleSource(Arc<WatchedRepo>);

impl BundleSource for CurrentBundleSource {
    fn name(&self) -> String {
        self.0.repo().display().to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        std::future::ready(content(&self.0)).boxed()
    }
}

fn content(folder: &WatchedRepo) -> Result<Content, SourceError> {
    let side = folder.current().map_err(|error| SourceError::Other(format!("{error:#}")))?;
    let engine = side.source.engine().cloned();
    engine.map(Content::Ready).ok_or_else(|| SourceError::Other("no bundle is loaded".to_owned()))
}
