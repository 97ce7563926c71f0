//! Message queues: queues of SQS, or directories of the sandbox. They are opened by the first call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_http::{Http, Secret, Settings};
use qontract_client_queue::{
    MessageCounts, MessageId, NewMessage, Queue, QueueAddress, QueueDirectory, QueueError, QueueName,
    QueueReader, QueueWriter, ReceiptHandle, ReceiveOptions, ReceivedMessage, Sqs, SqsCredentials,
    SqsLocation, SqsLocationError, SqsSettings,
};
use qontract_client_secrets::SecretReader;
use qontract_config::{ConfigError, QueueTable, TargetsTable};

use super::SandboxFolders;
use crate::exit::UsageError;

/// The queues of this process.
pub struct QueueStores {
    permit: ReadPermit,
    source: QueueSource,
    /// Caches the queues by key of the configuration, so that all users share one concurrency limit. Entries are
    /// never invalidated.
    opened: Mutex<BTreeMap<String, Arc<dyn Queue>>>,
}

/// The location of the queues.
enum QueueSource {
    /// The directories of a sandbox. The configuration determines which of the queues are FIFO queues.
    Sandbox { folders: SandboxFolders, tables: BTreeMap<String, QueueTable> },
    /// The queues of a configuration.
    Configured { tables: BTreeMap<String, QueueTable>, secrets: Arc<dyn SecretReader> },
    /// One queue that is used for every name.
    Given(Arc<dyn Queue>),
    /// No queues, because the command only reads data.
    Unused,
}

impl QueueStores {
    /// Creates the queues in the directories of a sandbox. A queue is a FIFO queue if its name ends in `.fifo`, or if
    /// the configured queue is a FIFO queue.
    pub fn in_sandbox(permit: &ReadPermit, sandbox: &Path, tables: &TargetsTable) -> Self {
        let (folders, tables) = (SandboxFolders::new(sandbox), tables.queue.clone());
        Self::new(permit, QueueSource::Sandbox { folders, tables })
    }

    /// Creates access to the queues of a configuration.
    pub fn configured(permit: &ReadPermit, tables: &TargetsTable, secrets: Arc<dyn SecretReader>) -> Self {
        Self::new(permit, QueueSource::Configured { tables: tables.queue.clone(), secrets })
    }

    /// Uses one queue for every name.
    pub(super) fn of(queue: Arc<dyn Queue>) -> Self {
        Self::new(&ReadPermit::for_data(), QueueSource::Given(queue))
    }

    /// Creates a value without queues: every use is an error.
    pub(super) fn unused() -> Self {
        Self::new(&ReadPermit::for_data(), QueueSource::Unused)
    }

    fn new(permit: &ReadPermit, source: QueueSource) -> Self {
        Self { permit: permit.clone(), source, opened: Mutex::default() }
    }

    /// The queue with this name in the configuration.
    pub fn queue(&self, name: &str) -> anyhow::Result<Arc<dyn Queue>> {
        let mut opened = self.opened.lock();
        if let Some(queue) = opened.get(name) {
            return Ok(Arc::clone(queue));
        }
        let queue = self.open(name)?;
        opened.insert(name.to_owned(), Arc::clone(&queue));
        Ok(queue)
    }

    fn open(&self, name: &str) -> anyhow::Result<Arc<dyn Queue>> {
        let key = format!("targets.queue.{name}");
        match &self.source {
            QueueSource::Sandbox { folders, tables } => {
                let wrong = |error: QueueError| UsageError(format!("`{key}`: {error}"));
                let queue = QueueName::new(name).map_err(wrong)?;
                let configured = tables.get(name).map(|table| location(&key, table)).transpose()?;
                let is_fifo = configured.is_some_and(|location| location.name().is_fifo());
                let queue = if is_fifo { queue.into_fifo() } else { queue };
                Ok(Arc::new(QueueDirectory::new(folders.queue(name), queue).for_run(&self.permit)))
            }
            QueueSource::Configured { tables, secrets } => {
                let missing = || {
                    UsageError(format!(
                        "no queue `{name}` is configured: set `{key}.url` or `{key}.name`, or pass `--sandbox DIR`"
                    ))
                };
                let table = tables.get(name).ok_or_else(missing)?;
                let location = location(&key, table)?;
                let http = Http::new(&self.permit, Settings::default())?;
                let secret = table
                    .secret
                    .as_ref()
                    .map(|path| QueueSecret { path: path.clone(), named_by: format!("{key}.secret") });
                let (permit, secrets) = (self.permit.clone(), Arc::clone(secrets));
                let opened = tokio::sync::Mutex::default();
                Ok(Arc::new(LazyQueue { location, secret, http, permit, secrets, opened }))
            }
            QueueSource::Given(queue) => Ok(Arc::clone(queue)),
            QueueSource::Unused => Err(anyhow::anyhow!("a command that only reads data does not use queues")),
        }
    }
}

/// The location of the queue of a table of the configuration.
fn location(key: &str, table: &QueueTable) -> Result<SqsLocation, ConfigError> {
    let QueueTable { url, name, region, endpoint, secret: _ } = table;
    let address = match (url, name) {
        (Some(url), None) => QueueAddress::Url(url),
        (None, Some(name)) => QueueAddress::Name(name),
        _ => return Err(ConfigError::new(format!("`{key}` must have either `url` or `name`"))),
    };
    SqsLocation::new(address, region.as_deref(), endpoint.as_deref()).map_err(|error| {
        let field = match error {
            SqsLocationError::Url => "url",
            SqsLocationError::Name => "name",
            SqsLocationError::Region => "region",
            SqsLocationError::Endpoint => "endpoint",
        };
        ConfigError::new(format!("`{key}.{field}`: {error}"))
    })
}

/// The location of the secret with the access key of a queue.
struct QueueSecret {
    path: String,
    /// The setting that names the secret, for messages.
    named_by: String,
}

/// A queue that is opened by the first call. The access key is read before each call, through the cache of the secret
/// store, so that a rotated key takes effect.
struct LazyQueue {
    location: SqsLocation,
    secret: Option<QueueSecret>,
    http: Http,
    permit: ReadPermit,
    secrets: Arc<dyn SecretReader>,
    opened: tokio::sync::Mutex<Option<OpenQueue>>,
}

/// An open queue with its credentials.
struct OpenQueue {
    credentials: SqsCredentials,
    client: Sqs,
}

impl LazyQueue {
    async fn client(&self) -> Result<Sqs, QueueError> {
        let credentials = self.credentials().await?;
        let mut opened = self.opened.lock().await;
        if let Some(open) = opened.as_ref().filter(|open| is_same(&open.credentials, &credentials)) {
            return Ok(open.client.clone());
        }
        let settings = SqsSettings { location: self.location.clone(), credentials: credentials.clone() };
        let client = Sqs::new(&self.http, settings);
        *opened = Some(OpenQueue { credentials, client: client.clone() });
        Ok(client)
    }

    async fn credentials(&self) -> Result<SqsCredentials, QueueError> {
        let Some(QueueSecret { path, named_by }) = &self.secret else {
            return Ok(SqsCredentials::Environment);
        };
        let failed = |reason, transient| QueueError::Unreachable {
            what: format!("reading the key of queue `{}` (`{named_by}`)", self.location.name()),
            reason,
            transient,
        };
        let fields = self.secrets.read_all(&self.permit, path, None).await;
        let fields = fields.map_err(|error| failed(error.to_string(), error.is_transient()))?;
        let field = |field: &str| -> Result<&Secret, QueueError> {
            fields.get(field).ok_or_else(|| failed(format!("`{path}` has no field `{field}`"), false))
        };
        Ok(SqsCredentials::Keys {
            id: field("aws_access_key_id")?.expose().to_owned(),
            secret: field("aws_secret_access_key")?.clone(),
        })
    }
}

/// Whether a client with one set of credentials can be used for the other set.
fn is_same(one: &SqsCredentials, other: &SqsCredentials) -> bool {
    match (one, other) {
        (SqsCredentials::Keys { id, secret }, SqsCredentials::Keys { id: other_id, secret: other }) => {
            id == other_id && secret.is_same(other)
        }
        (SqsCredentials::Environment, SqsCredentials::Environment) => true,
        (SqsCredentials::Keys { .. }, SqsCredentials::Environment)
        | (SqsCredentials::Environment, SqsCredentials::Keys { .. }) => false,
    }
}

impl QueueReader for LazyQueue {
    fn counts<'a>(
        &'a self,
        permit: &'a ReadPermit,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageCounts, QueueError>> {
        async move { self.client().await?.counts(permit, now).await }.boxed()
    }
}

impl QueueWriter for LazyQueue {
    fn send<'a>(
        &'a self,
        permit: &'a WritePermit,
        message: &'a NewMessage,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<MessageId, QueueError>> {
        async move { self.client().await?.send(permit, message, now).await }.boxed()
    }

    fn receive<'a>(
        &'a self,
        permit: &'a WritePermit,
        options: ReceiveOptions,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Vec<ReceivedMessage>, QueueError>> {
        async move { self.client().await?.receive(permit, options, now).await }.boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        async move { self.client().await?.delete(permit, receipt, now).await }.boxed()
    }

    fn change_visibility<'a>(
        &'a self,
        permit: &'a WritePermit,
        receipt: &'a ReceiptHandle,
        hidden_for: Duration,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        async move { self.client().await?.change_visibility(permit, receipt, hidden_for, now).await }.boxed()
    }
}

#[cfg(test)]
mod tests;
