//! S3, or a server that speaks as it does, through the vendor's library.
//!
//! **Invariant:** in a dry run the library itself is stopped before it sends anything but `GET`, `HEAD` and `OPTIONS`,
//! whichever permit is shown.

mod answer;
mod guard;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aws_config::profile::ProfileFileCredentialsProvider;
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation,
    SharedInterceptor,
};
use aws_sdk_s3::primitives::ByteStream;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_client_http::{Secret, Url};

use crate::blob::{Blob, Content, Cursor, Entry, Etag, Head, Key, Metadata, Page, Precondition};
use crate::error::BlobsError;
use crate::{Reader, Writer};

use answer::{Failure, is_conflict};
use guard::DryRunGuard;

/// How often a write with a precondition is tried while the store says that it has not decided.
const TRIES: u32 = 8;

/// Where a bucket is and how it is spoken to.
#[derive(Clone, Debug)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// Its region.
    pub region: String,
    /// Another server than the vendor's.
    pub endpoint: Option<Url>,
    /// Who we are.
    pub credentials: Credentials,
    /// How long a call may take, with all its attempts and pauses.
    pub deadline: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// How many more attempts a call has after the first.
    pub retries: u32,
    /// How many bytes a blob may have that is read.
    pub largest: u64,
}

impl S3Settings {
    /// The usual settings.
    pub fn new(bucket: impl Into<String>, region: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            bucket: bucket.into(),
            region: region.into(),
            endpoint: None,
            credentials,
            deadline: Duration::from_mins(1),
            attempt: Duration::from_secs(30),
            retries: 4,
            largest: 64 << 20,
        }
    }
}

/// Who we are to S3.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// By a key.
    Keys {
        /// Its identifier.
        id: String,
        /// The key.
        secret: Secret,
    },
    /// By a profile in a configuration file.
    Profile {
        /// Its name.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// As the environment says: variables, the usual profile, the identity of the pod or of the machine.
    Environment,
}

/// A bucket. A clone is the same one.
#[derive(Clone)]
pub struct S3 {
    client: Client,
    mode: Mode,
    settings: Arc<S3Settings>,
}

impl S3 {
    /// The bucket of these settings, for the run that the permit is of; nothing is sent to it yet.
    pub async fn new(permit: &ReadPermit, settings: S3Settings) -> Self {
        let mut builder = match &settings.credentials {
            Credentials::Keys { id, secret } => Builder::new().credentials_provider(
                aws_sdk_s3::config::Credentials::new(id, secret.expose(), None, None, "qontract"),
            ),
            Credentials::Profile { name, file } => {
                // Keys may be in either file, so both are looked at.
                let files = EnvConfigFiles::builder()
                    .with_file(EnvConfigFileKind::Config, file)
                    .include_default_credentials_file(true)
                    .build();
                let provider =
                    ProfileFileCredentialsProvider::builder().profile_files(files).profile_name(name).build();
                Builder::new().credentials_provider(provider)
            }
            Credentials::Environment => {
                let region = Region::new(settings.region.clone());
                let config = aws_config::defaults(BehaviorVersion::latest()).region(region).load().await;
                Builder::from(&config)
            }
        };
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(settings.deadline)
            .operation_attempt_timeout(settings.attempt)
            .connect_timeout(settings.attempt)
            .build();
        builder = builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(settings.region.clone()))
            .retry_config(RetryConfig::standard().with_max_attempts(settings.retries + 1))
            .timeout_config(timeouts)
            // Not every server knows the checksums that the vendor's does.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.endpoint_url(endpoint.as_str()).force_path_style(true);
        }
        Self::guarded(builder, permit.mode(), Arc::new(settings))
    }

    /// The same bucket for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self::guarded(self.client.config().to_builder(), permit.mode(), Arc::clone(&self.settings))
    }

    fn guarded(mut builder: Builder, mode: Mode, settings: Arc<S3Settings>) -> Self {
        builder.set_interceptors([SharedInterceptor::permanent(DryRunGuard { mode })]);
        Self { client: Client::from_conf(builder.build()), mode, settings }
    }

    async fn fetch(&self, key: &Key) -> Result<Option<Blob>, BlobsError> {
        let answer = self.client.get_object().bucket(&self.settings.bucket).key(key.as_str()).send().await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.absent(Failure::of(&error), || format!("reading blob `{key}`")),
        };
        let limit = self.settings.largest;
        let too_large = || BlobsError::TooLarge { key: key.clone(), limit };
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.body.next().await {
            let chunk = chunk.map_err(|_| BlobsError::Unreachable {
                what: format!("reading blob `{key}`"),
                said: "the connection broke".to_owned(),
                transient: true,
            })?;
            if (bytes.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        let head = head(answer.e_tag, bytes.len() as u64, answer.metadata);
        Ok(Some(Blob { bytes, head }))
    }

    async fn look(&self, key: &Key) -> Result<Option<Head>, BlobsError> {
        let answer = self.client.head_object().bucket(&self.settings.bucket).key(key.as_str()).send().await;
        match answer {
            Ok(answer) => {
                let size =
                    answer.content_length.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
                Ok(Some(head(answer.e_tag, size, answer.metadata)))
            }
            Err(error) => self.absent(Failure::of(&error), || format!("looking at blob `{key}`")),
        }
    }

    async fn page(&self, prefix: &str, cursor: Option<&Cursor>) -> Result<Page, BlobsError> {
        let request = self.client.list_objects_v2().bucket(&self.settings.bucket).prefix(prefix);
        let request = request.set_continuation_token(cursor.map(|Cursor(token)| token.clone()));
        let answer = request.send().await.map_err(|error| {
            Failure::of(&error).tell(&self.settings.bucket, format!("listing blobs below `{prefix}`"))
        })?;
        let next = answer.next_continuation_token.filter(|_| answer.is_truncated == Some(true));
        let entries = answer.contents.unwrap_or_default().into_iter().map(|object| {
            let size = object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
            let key = object.key.unwrap_or_default();
            Entry { key, etag: Etag(object.e_tag.unwrap_or_default()), size }
        });
        Ok(Page { entries: entries.collect(), next: next.map(Cursor) })
    }

    async fn store(
        &self,
        key: &Key,
        content: &Content,
        precondition: &Precondition,
    ) -> Result<Etag, BlobsError> {
        content.check(key)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let metadata = content.metadata.clone().into_iter().collect();
            let request = self
                .client
                .put_object()
                .bucket(&self.settings.bucket)
                .key(key.as_str())
                .set_metadata(Some(metadata))
                .body(ByteStream::from(content.bytes.clone()));
            // A second attempt after a lost answer would meet the first one's blob, so with a precondition there is
            // none, unless the store says that it did nothing.
            let once = aws_sdk_s3::config::Config::builder().retry_config(RetryConfig::disabled());
            let answer = match precondition {
                Precondition::Any => request.send().await,
                Precondition::IfAbsent => {
                    request.if_none_match("*").customize().config_override(once).send().await
                }
                Precondition::IfMatch(Etag(tag)) => {
                    request.if_match(tag).customize().config_override(once).send().await
                }
            };
            let failure = match answer {
                Ok(answer) => return Ok(Etag(answer.e_tag.unwrap_or_default())),
                Err(error) => Failure::of(&error),
            };
            let is_conditional = *precondition != Precondition::Any;
            if is_conditional && failure.has_done_nothing() && tries < TRIES {
                tokio::time::sleep(Duration::from_millis(50 << tries.min(5))).await;
                continue;
            }
            // There is nothing that could match.
            let is_stale = is_conflict(&failure) || (is_conditional && failure.is_absent());
            return Err(if is_stale {
                BlobsError::Stale { key: key.clone() }
            } else {
                failure.tell(&self.settings.bucket, format!("writing blob `{key}`"))
            });
        }
    }

    async fn remove(&self, key: &Key, expected: Option<&Etag>) -> Result<(), BlobsError> {
        let stale = || BlobsError::Stale { key: key.clone() };
        if let Some(expected) = expected {
            // Servers that do not know the precondition would remove anything, so it is looked at first.
            match self.look(key).await? {
                None => return Ok(()),
                Some(head) if head.etag != *expected => return Err(stale()),
                Some(_) => {}
            }
        }
        let request = self.client.delete_object().bucket(&self.settings.bucket).key(key.as_str());
        match request.set_if_match(expected.map(|Etag(tag)| tag.clone())).send().await {
            Ok(_) => Ok(()),
            Err(error) => match Failure::of(&error) {
                failure if failure.is_absent() => Ok(()),
                // It may have been us, and the answer was lost.
                failure if is_conflict(&failure) && self.look(key).await?.is_none() => Ok(()),
                failure if is_conflict(&failure) => Err(stale()),
                failure => Err(failure.tell(&self.settings.bucket, format!("removing blob `{key}`"))),
            },
        }
    }

    /// Nothing, if the blob is not there; but a bucket that is not there is a failure.
    fn absent<T>(&self, failure: Failure, what: impl FnOnce() -> String) -> Result<Option<T>, BlobsError> {
        if failure.is_absent() { Ok(None) } else { Err(failure.tell(&self.settings.bucket, what())) }
    }
}

fn head(
    etag: Option<String>,
    size: u64,
    metadata: Option<std::collections::HashMap<String, String>>,
) -> Head {
    let metadata: Metadata = metadata.unwrap_or_default().into_iter().collect();
    Head { etag: Etag(etag.unwrap_or_default()), size, metadata }
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3(bucket `{}`, {})", self.settings.bucket, self.mode.as_str())
    }
}

impl Reader for S3 {
    fn get<'a>(&'a self, _: &'a ReadPermit, key: &'a Key) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        self.fetch(key).boxed()
    }

    fn head<'a>(
        &'a self,
        _: &'a ReadPermit,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Head>, BlobsError>> {
        self.look(key).boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<Page, BlobsError>> {
        self.page(prefix, cursor).boxed()
    }
}

impl Writer for S3 {
    fn put<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a Key,
        content: &'a Content,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        self.store(key, content, precondition).boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a Key,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        self.remove(key, expected).boxed()
    }
}
