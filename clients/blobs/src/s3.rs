//! S3 and compatible servers, through the AWS SDK.
//!
//! **Invariant:** in a dry run an interceptor in the SDK refuses everything but `GET`, `HEAD` and `OPTIONS`,
//! whichever permit is passed.

mod answer;
mod endpoint;
mod guard;
mod limit;
mod settings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Builder, SharedInterceptor};
use aws_sdk_s3::primitives::ByteStream;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{Mode, ReadPermit, WritePermit};
use qontract_concurrency::{Limiter, Permit};
use tokio::time::timeout;

use crate::blob::{Blob, Content, Cursor, Entry, Etag, Head, Key, Metadata, Page, Precondition};
use crate::error::BlobsError;
use crate::{Reader, Writer};

use answer::{Failure, is_conflict};
pub use endpoint::{S3Endpoint, S3EndpointError};
use guard::DryRunGuard;
use limit::{BodyLimit, NoRetryOfTooLarge, is_too_large};
pub use settings::{Credentials, S3Settings};

/// Maximum number of attempts of a conditional write while the store reports a conflict or overload.
const TRIES: u32 = 8;

/// Maximum number of keys on a page of a listing.
const MAX_PAGE_KEYS: u16 = 1000;

/// A bucket. Clones share their state.
#[derive(Clone)]
pub struct S3 {
    client: Client,
    mode: Mode,
    shared: Arc<Shared>,
}

/// The state that all runs share.
struct Shared {
    settings: S3Settings,
    limiter: Limiter,
}

impl S3 {
    /// The bucket of these settings, for the run of this permit. Sends nothing yet.
    pub async fn new(permit: &ReadPermit, settings: S3Settings) -> Self {
        let builder = settings.builder().await;
        let limiter = Limiter::new(settings.concurrency).with_wait_timeout(settings.deadline);
        Self::guarded(builder, permit.mode(), Arc::new(Shared { settings, limiter }))
    }

    /// A client of the bucket for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self::guarded(self.client.config().to_builder(), permit.mode(), Arc::clone(&self.shared))
    }

    fn guarded(mut builder: Builder, mode: Mode, shared: Arc<Shared>) -> Self {
        builder.set_interceptors([
            SharedInterceptor::permanent(DryRunGuard { mode }),
            SharedInterceptor::permanent(BodyLimit { object: shared.settings.largest }),
        ]);
        let builder = builder.retry_classifier(NoRetryOfTooLarge);
        Self { client: Client::from_conf(builder.build()), mode, shared }
    }

    /// Waits for a permit of the concurrency limit.
    async fn acquire(&self) -> Result<Permit, BlobsError> {
        self.shared.limiter.acquire().await.map_err(|_| BlobsError::Unreachable {
            what: format!("waiting for bucket `{}`", self.shared.settings.bucket),
            reason: "timed out waiting for other calls".to_owned(),
            transient: true,
        })
    }

    async fn fetch(&self, key: &Key) -> Result<Option<Blob>, BlobsError> {
        let answer =
            self.client.get_object().bucket(&self.shared.settings.bucket).key(key.as_str()).send().await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.absent(Failure::of(&error), || format!("reading blob `{key}`")),
        };
        let limit = self.shared.settings.largest;
        let broken = |error| {
            if is_too_large(&error) {
                return BlobsError::TooLarge { key: key.clone(), limit };
            }
            let (what, reason) = (format!("reading blob `{key}`"), "the connection broke".to_owned());
            BlobsError::Unreachable { what, reason, transient: true }
        };
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.body.next().await {
            bytes.extend_from_slice(&chunk.map_err(broken)?);
        }
        let head = head(answer.e_tag, bytes.len() as u64, answer.metadata);
        Ok(Some(Blob { bytes, head }))
    }

    async fn look(&self, key: &Key) -> Result<Option<Head>, BlobsError> {
        let answer =
            self.client.head_object().bucket(&self.shared.settings.bucket).key(key.as_str()).send().await;
        match answer {
            Ok(answer) => {
                let size =
                    answer.content_length.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
                Ok(Some(head(answer.e_tag, size, answer.metadata)))
            }
            Err(error) => self.absent(Failure::of(&error), || format!("reading the head of blob `{key}`")),
        }
    }

    async fn page(&self, prefix: &str, cursor: Option<&Cursor>) -> Result<Page, BlobsError> {
        let request = self.client.list_objects_v2().bucket(&self.shared.settings.bucket).prefix(prefix);
        let request = request.max_keys(MAX_PAGE_KEYS.into());
        let request = request.set_continuation_token(cursor.map(|Cursor(token)| token.clone()));
        let answer = request.send().await.map_err(|error| {
            Failure::of(&error).tell(&self.shared.settings.bucket, format!("listing blobs below `{prefix}`"))
        })?;
        let next = answer.next_continuation_token.filter(|_| answer.is_truncated == Some(true));
        let objects = answer.contents.unwrap_or_default();
        if objects.len() > usize::from(MAX_PAGE_KEYS) {
            return Err(BlobsError::Unreachable {
                what: format!("listing blobs below `{prefix}`"),
                reason: format!("the store sent {} keys in a page of at most {MAX_PAGE_KEYS}", objects.len()),
                transient: false,
            });
        }
        let entries = objects.into_iter().map(|object| {
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
                .bucket(&self.shared.settings.bucket)
                .key(key.as_str())
                .set_metadata(Some(metadata))
                .body(ByteStream::from(content.bytes.clone()));
            // A retry after a lost response would find the blob of the first attempt, so conditional writes
            // are not retried by the SDK, but only below, if the store reports that it did nothing.
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
            // Without a blob, `IfMatch` cannot hold.
            let is_stale = is_conflict(&failure) || (is_conditional && failure.is_absent());
            return Err(if is_stale {
                BlobsError::Stale { key: key.clone() }
            } else {
                failure.tell(&self.shared.settings.bucket, format!("writing blob `{key}`"))
            });
        }
    }

    async fn remove(&self, key: &Key, expected: Option<&Etag>) -> Result<(), BlobsError> {
        let stale = || BlobsError::Stale { key: key.clone() };
        if let Some(expected) = expected {
            // Servers without support for `If-Match` would delete any content, so the tag is compared first.
            match self.look(key).await? {
                None => return Ok(()),
                Some(head) if head.etag != *expected => return Err(stale()),
                Some(_) => {}
            }
        }
        let request = self.client.delete_object().bucket(&self.shared.settings.bucket).key(key.as_str());
        match request.set_if_match(expected.map(|Etag(tag)| tag.clone())).send().await {
            Ok(_) => Ok(()),
            Err(error) => match Failure::of(&error) {
                failure if failure.is_absent() => Ok(()),
                // An earlier attempt may have deleted it, and its response was lost.
                failure if is_conflict(&failure) && self.look(key).await?.is_none() => Ok(()),
                failure if is_conflict(&failure) => Err(stale()),
                failure => Err(failure.tell(&self.shared.settings.bucket, format!("removing blob `{key}`"))),
            },
        }
    }

    /// `None` if the blob does not exist; a missing bucket is an error.
    fn absent<T>(&self, failure: Failure, what: impl FnOnce() -> String) -> Result<Option<T>, BlobsError> {
        if failure.is_absent() { Ok(None) } else { Err(failure.tell(&self.shared.settings.bucket, what())) }
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
        write!(f, "S3(bucket `{}`, {})", self.shared.settings.bucket, self.mode.as_str())
    }
}

impl Reader for S3 {
    fn get<'a>(&'a self, _: &'a ReadPermit, key: &'a Key) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            // The timeout of the SDK does not cover reading the body.
            timeout(self.shared.settings.deadline, self.fetch(key)).await.unwrap_or_else(|_| {
                let what = format!("reading blob `{key}`");
                Err(BlobsError::Unreachable { what, reason: "timed out".to_owned(), transient: true })
            })
        }
        .boxed()
    }

    fn head<'a>(
        &'a self,
        _: &'a ReadPermit,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Option<Head>, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            self.look(key).await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<Page, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            self.page(prefix, cursor).await
        }
        .boxed()
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
        async move {
            let _permit = self.acquire().await?;
            self.store(key, content, precondition).await
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        _: &'a WritePermit,
        key: &'a Key,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            self.remove(key, expected).await
        }
        .boxed()
    }
}
