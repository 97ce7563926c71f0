//! Blob stores: buckets of S3, or directories of the sandbox. They are opened by the first call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{
    Blob, BlobContent, BlobHead, BlobKey, BlobPage, BlobReader, BlobWriter, Blobs, BlobsError, Cursor,
    Directory, Etag, Precondition, S3, S3Credentials, S3Endpoint, S3Settings, StateCredentials,
    StateSettings,
};
use qontract_client_secrets::SecretReader;
use qontract_config::{BucketTable, ConfigError, TargetsTable};

use super::SandboxFolders;
use crate::exit::UsageError;

/// Timeout of one attempt of a request to the bucket of the journal.
const JOURNAL_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of all attempts of such a request together.
const JOURNAL_DEADLINE: Duration = Duration::from_secs(15);

/// Maximum size of a blob of the journal, in bytes. The journal contains compressed bundles.
const MAX_JOURNAL_BLOB_BYTES: u64 = 256 << 20;

/// The region of a bucket for which no region is configured.
const DEFAULT_REGION: &str = "us-east-1";

/// The prefix of the environment variables of qontract-reconcile that describe its state store.
const STATE_VARIABLES: &str = "APP_INTERFACE_STATE_";

/// The blob stores of this process.
pub struct BlobStores {
    permit: ReadPermit,
    source: StoreSource,
    /// Caches the stores by key of the configuration, so that all users share one concurrency limit. Entries
    /// are never invalidated.
    opened: Mutex<BTreeMap<String, Arc<dyn Blobs>>>,
}

/// The location of the stores.
enum StoreSource {
    /// The directories of a sandbox.
    Sandbox(SandboxFolders),
    /// The buckets of a configuration.
    Buckets { tables: Box<TargetsTable>, secrets: Arc<dyn SecretReader> },
    /// One store that is used for every name.
    Given(Arc<dyn Blobs>),
    /// No stores, because the command only reads data.
    Unused,
}

impl BlobStores {
    /// Creates the stores in the directories of a sandbox.
    pub fn in_sandbox(permit: &ReadPermit, sandbox: &Path) -> Self {
        Self::new(permit, StoreSource::Sandbox(SandboxFolders::new(sandbox)))
    }

    /// Creates access to the buckets of a configuration.
    pub fn in_buckets(permit: &ReadPermit, tables: TargetsTable, secrets: Arc<dyn SecretReader>) -> Self {
        Self::new(permit, StoreSource::Buckets { tables: Box::new(tables), secrets })
    }

    /// Uses one store for every name.
    pub(super) fn of(blobs: Arc<dyn Blobs>) -> Self {
        Self::new(&ReadPermit::for_data(), StoreSource::Given(blobs))
    }

    /// Creates a value without stores: every use is an error.
    pub(super) fn unused() -> Self {
        Self::new(&ReadPermit::for_data(), StoreSource::Unused)
    }

    fn new(permit: &ReadPermit, source: StoreSource) -> Self {
        Self { permit: permit.clone(), source, opened: Mutex::default() }
    }

    /// The bucket with this name in the configuration.
    pub fn blobs(&self, name: &str) -> anyhow::Result<Arc<dyn Blobs>> {
        let key = format!("targets.blobs.{name}");
        self.cached(&key, |source| match source {
            StoreSource::Sandbox(folders) => {
                let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
                anyhow::ensure!(
                    is_name,
                    UsageError(format!("`{key}`: `{name}` is not the name of a bucket"))
                );
                Ok(self.directory(&folders.blobs(name)))
            }
            StoreSource::Buckets { tables, secrets } => {
                let missing = || {
                    UsageError(format!(
                        "no bucket `{name}` is configured: set `{key}.bucket`, or pass `--sandbox DIR`"
                    ))
                };
                let bucket = Bucket::of_table(&key, tables.blobs.get(name).ok_or_else(missing)?)?;
                Ok(self.bucket(bucket, secrets))
            }
            StoreSource::Given(blobs) => Ok(Arc::clone(blobs)),
            StoreSource::Unused => Err(unused()),
        })
    }

    /// The bucket of the state store: the bucket of the configuration or, without one, the bucket that the
    /// environment describes.
    pub fn state(&self) -> anyhow::Result<Arc<dyn Blobs>> {
        let key = "targets.state";
        self.cached(key, |source| match source {
            StoreSource::Sandbox(folders) => Ok(self.directory(&folders.state())),
            StoreSource::Buckets { tables, secrets } => {
                let missing = || {
                    UsageError(format!(
                        "no state store is configured: set `{key}.bucket` or `{STATE_VARIABLES}BUCKET`, or pass `--sandbox DIR`"
                    ))
                };
                let bucket = match &tables.state {
                    Some(table) => Bucket::of_table(key, table)?,
                    None => Bucket::of_variables(state_settings().ok_or_else(missing)?)?,
                };
                Ok(self.bucket(bucket, secrets))
            }
            StoreSource::Given(blobs) => Ok(Arc::clone(blobs)),
            StoreSource::Unused => Err(unused()),
        })
    }

    /// The bucket that the configuration names for the journal.
    pub fn journal(&self) -> anyhow::Result<Arc<dyn Blobs>> {
        let key = "targets.journal";
        self.cached(key, |source| match source {
            StoreSource::Buckets { tables, secrets } => {
                let missing = || UsageError(format!("no journal is configured: set `{key}.bucket`"));
                let mut bucket = Bucket::of_table(key, tables.journal.as_ref().ok_or_else(missing)?)?;
                // A run must not wait long for a bucket that does not respond.
                bucket.settings.attempt_timeout = JOURNAL_ATTEMPT_TIMEOUT;
                bucket.settings.deadline = JOURNAL_DEADLINE;
                bucket.settings.max_blob_bytes = MAX_JOURNAL_BLOB_BYTES;
                Ok(self.bucket(bucket, secrets))
            }
            StoreSource::Given(blobs) => Ok(Arc::clone(blobs)),
            StoreSource::Sandbox(_) | StoreSource::Unused => Err(unused()),
        })
    }

    fn cached(
        &self,
        key: &str,
        open: impl FnOnce(&StoreSource) -> anyhow::Result<Arc<dyn Blobs>>,
    ) -> anyhow::Result<Arc<dyn Blobs>> {
        let mut opened = self.opened.lock();
        if let Some(store) = opened.get(key) {
            return Ok(Arc::clone(store));
        }
        let store = open(&self.source)?;
        opened.insert(key.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    fn directory(&self, folder: &Path) -> Arc<dyn Blobs> {
        Arc::new(Directory::new(folder).for_run(&self.permit))
    }

    fn bucket(&self, bucket: Bucket, secrets: &Arc<dyn SecretReader>) -> Arc<dyn Blobs> {
        let (permit, secrets) = (self.permit.clone(), Arc::clone(secrets));
        Arc::new(LazyBucket { bucket, permit, secrets, opened: tokio::sync::Mutex::default() })
    }
}

fn unused() -> anyhow::Error {
    anyhow::anyhow!("a command that only reads data does not use blob stores")
}

/// The settings of the state store in the environment, as in qontract-reconcile.
pub fn state_settings() -> Option<StateSettings> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    StateSettings::from_variables(&variables.collect(), Path::is_file)
}

/// A bucket, with the location of its access key.
struct Bucket {
    /// The settings of the bucket. Their credentials are used if no secret is configured.
    settings: S3Settings,
    secret: Option<BucketSecret>,
}

/// The location of the secret with the access key of a bucket.
struct BucketSecret {
    path: String,
    version: Option<u64>,
    /// The setting that names the secret, for messages.
    named_by: String,
}

impl Bucket {
    /// Creates the bucket of a table in the configuration.
    fn of_table(key: &str, table: &BucketTable) -> Result<Self, ConfigError> {
        let BucketTable { bucket, region, endpoint, secret } = table;
        let region = region.as_deref().unwrap_or(DEFAULT_REGION);
        let parse = |text: &String| text.parse::<S3Endpoint>();
        let endpoint = endpoint.as_ref().map(parse).transpose();
        let wrong = |error| ConfigError::new(format!("`{key}.endpoint`: {error}"));
        let mut settings = S3Settings::new(bucket, region, S3Credentials::Environment);
        settings.endpoint = endpoint.map_err(wrong)?;
        let secret = secret.as_ref().map(|path| BucketSecret {
            path: path.clone(),
            version: None,
            named_by: format!("{key}.secret"),
        });
        Ok(Self { settings, secret })
    }

    /// Creates the bucket that the environment describes.
    fn of_variables(state: StateSettings) -> Result<Self, UsageError> {
        let StateSettings { bucket, region, credentials } = state;
        let wrong = |name: &str, why: &str| UsageError(format!("`{STATE_VARIABLES}{name}` {why}"));
        let mut secret = None;
        let credentials = match credentials {
            StateCredentials::Profile { name, file } => S3Credentials::Profile { name, file },
            StateCredentials::Keys { id, secret } => S3Credentials::Keys { id, secret },
            StateCredentials::Vault { path, version } => {
                let version = version.map(|version| version.parse());
                let version =
                    version.transpose().map_err(|_| wrong("VAULT_SECRET_VERSION", "is not a number"))?;
                let named_by = format!("{STATE_VARIABLES}VAULT_SECRET");
                secret = Some(BucketSecret { path, version, named_by });
                S3Credentials::Environment
            }
            StateCredentials::Account { .. } => {
                return Err(wrong("BUCKET_ACCOUNT", "is not supported: set `targets.state.secret` instead"));
            }
        };
        let settings =
            S3Settings::new(bucket, region.unwrap_or_else(|| DEFAULT_REGION.to_owned()), credentials);
        Ok(Self { settings, secret })
    }
}

/// A bucket that is opened by the first call. The access key is read before each call, through the cache of the
/// secret store, so that a rotated key takes effect.
struct LazyBucket {
    bucket: Bucket,
    permit: ReadPermit,
    secrets: Arc<dyn SecretReader>,
    opened: tokio::sync::Mutex<Option<OpenBucket>>,
}

/// An open bucket with its credentials.
struct OpenBucket {
    credentials: S3Credentials,
    client: S3,
}

impl LazyBucket {
    async fn client(&self) -> Result<S3, BlobsError> {
        let credentials = self.credentials().await?;
        let mut opened = self.opened.lock().await;
        if let Some(open) = opened.as_ref().filter(|open| is_same(&open.credentials, &credentials)) {
            return Ok(open.client.clone());
        }
        let settings = S3Settings { credentials: credentials.clone(), ..self.bucket.settings.clone() };
        let client = S3::new(&self.permit, settings).await;
        *opened = Some(OpenBucket { credentials, client: client.clone() });
        Ok(client)
    }

    async fn credentials(&self) -> Result<S3Credentials, BlobsError> {
        let Bucket { settings, secret } = &self.bucket;
        let Some(BucketSecret { path, version, named_by }) = secret else {
            return Ok(settings.credentials.clone());
        };
        let failed = |reason, transient| BlobsError::Unreachable {
            what: format!("reading the key of bucket `{}` (`{named_by}`)", settings.bucket),
            reason,
            transient,
        };
        let fields = self.secrets.read_all(&self.permit, path, *version).await;
        let fields = fields.map_err(|error| failed(error.to_string(), error.is_transient()))?;
        let field = |field: &str| {
            fields.get(field).ok_or_else(|| failed(format!("`{path}` has no field `{field}`"), false))
        };
        Ok(S3Credentials::Keys {
            id: field("aws_access_key_id")?.expose().to_owned(),
            secret: field("aws_secret_access_key")?.clone(),
        })
    }
}

/// Whether a client with one set of credentials can be used for the other set. Credentials other than keys count as
/// unchanged.
fn is_same(one: &S3Credentials, other: &S3Credentials) -> bool {
    match (one, other) {
        (S3Credentials::Keys { id, secret }, S3Credentials::Keys { id: other_id, secret: other }) => {
            id == other_id && secret.is_same(other)
        }
        _ => true,
    }
}

impl BlobReader for LazyBucket {
    fn get<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        async move { self.client().await?.get(permit, key).await }.boxed()
    }

    fn head<'a>(
        &'a self,
        permit: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        async move { self.client().await?.head(permit, key).await }.boxed()
    }

    fn list<'a>(
        &'a self,
        permit: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        async move { self.client().await?.list(permit, prefix, cursor).await }.boxed()
    }
}

impl BlobWriter for LazyBucket {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        async move { self.client().await?.put(permit, key, content, precondition).await }.boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move { self.client().await?.delete(permit, key, expected).await }.boxed()
    }
}

#[cfg(test)]
mod tests;
