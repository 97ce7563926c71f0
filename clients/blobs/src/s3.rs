//! S3 and compatible servers, through the AWS SDK.
//!
//! **Invariant:** in a dry run, an interceptor in the SDK refuses all methods except `GET`, `HEAD` and
//! `OPTIONS`, regardless of the permit. A write with a bounded permit is refused.

mod endpoint;
mod failure;
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

use crate::blob::{
    Blob, BlobContent, BlobEntry, BlobHead, BlobKey, BlobPage, Cursor, Etag, Metadata, Precondition,
};
use crate::error::BlobsError;
use crate::{BlobReader, BlobWriter};

pub use endpoint::{S3Endpoint, S3EndpointError};
use failure::{S3Failure, is_conflict};
use guard::DryRunGuard;
use limit::{BodyLimit, NoRetryOfTooLarge, is_too_large};
pub use settings::{S3Credentials, S3Settings};

/// Maximum number of attempts of a conditional write while the store reports a conflict or overload.
const MAX_ATTEMPTS: u32 = 8;

/// Maximum number of keys on a page of a listing.
const MAX_PAGE_KEYS: u16 = 1000;

/// A bucket. Clones share one state.
#[derive(Clone)]
pub struct S3 {
    client: Client,
    mode: Mode,
    shared: Arc<SharedBucket>,
}

/// The state that the clients of all runs share.
struct SharedBucket {
    settings: S3Settings,
    limiter: Limiter,
}

impl S3 {
    /// Creates a client of the bucket in these settings, with the mode of the run that `permit` belongs to.
    /// Sends no requests.
    pub async fn new(permit: &ReadPermit, settings: S3Settings) -> Self {
        let builder = settings.builder().await;
        let limiter = Limiter::new(settings.concurrency).with_wait_timeout(settings.deadline);
        Self::with_mode(builder, permit.mode(), Arc::new(SharedBucket { settings, limiter }))
    }

    /// Creates a client of the same bucket for another run.
    #[must_use]
    pub fn for_run(&self, permit: &ReadPermit) -> Self {
        Self::with_mode(self.client.config().to_builder(), permit.mode(), Arc::clone(&self.shared))
    }

    fn with_mode(mut builder: Builder, mode: Mode, shared: Arc<SharedBucket>) -> Self {
        builder.set_interceptors([
            SharedInterceptor::permanent(DryRunGuard { mode }),
            SharedInterceptor::permanent(BodyLimit { object: shared.settings.max_blob_bytes }),
        ]);
        let builder = builder.retry_classifier(NoRetryOfTooLarge);
        Self { client: Client::from_conf(builder.build()), mode, shared }
    }

    /// Refuses a write with a bounded permit, because the requests of the SDK are not compared with the
    /// bounds of the permit.
    fn refuse_bounded(&self, permit: &WritePermit) -> Result<(), BlobsError> {
        let Some(bounds) = permit.bounds() else { return Ok(()) };
        let bucket = &self.shared.settings.bucket;
        Err(BlobsError::Unsupported(format!(
            "writing to bucket `{bucket}` is refused: the write permit of this run allows {bounds}"
        )))
    }

    /// Waits for a permit of the concurrency limit.
    async fn acquire(&self) -> Result<Permit, BlobsError> {
        self.shared.limiter.acquire().await.map_err(|_| BlobsError::Unreachable {
            what: format!("waiting for bucket `{}`", self.shared.settings.bucket),
            reason: "timed out waiting for other calls".to_owned(),
            transient: true,
        })
    }

    async fn fetch(&self, key: &BlobKey) -> Result<Option<Blob>, BlobsError> {
        let answer =
            self.client.get_object().bucket(&self.shared.settings.bucket).key(key.as_str()).send().await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                return self.none_if_absent(S3Failure::classify(&error), || format!("reading blob `{key}`"));
            }
        };
        let limit = self.shared.settings.max_blob_bytes;
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

    async fn fetch_head(&self, key: &BlobKey) -> Result<Option<BlobHead>, BlobsError> {
        let answer =
            self.client.head_object().bucket(&self.shared.settings.bucket).key(key.as_str()).send().await;
        match answer {
            Ok(answer) => {
                let size =
                    answer.content_length.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
                Ok(Some(head(answer.e_tag, size, answer.metadata)))
            }
            Err(error) => self
                .none_if_absent(S3Failure::classify(&error), || format!("reading the head of blob `{key}`")),
        }
    }

    async fn fetch_page(&self, prefix: &str, cursor: Option<&Cursor>) -> Result<BlobPage, BlobsError> {
        let request = self.client.list_objects_v2().bucket(&self.shared.settings.bucket).prefix(prefix);
        let request = request.max_keys(MAX_PAGE_KEYS.into());
        let request = request.set_continuation_token(cursor.map(|Cursor(token)| token.clone()));
        let answer = request.send().await.map_err(|error| {
            S3Failure::classify(&error)
                .into_error(&self.shared.settings.bucket, format!("listing blobs below `{prefix}`"))
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
            BlobEntry { key, etag: Etag(object.e_tag.unwrap_or_default()), size }
        });
        Ok(BlobPage { entries: entries.collect(), next: next.map(Cursor) })
    }

    async fn store(
        &self,
        key: &BlobKey,
        content: &BlobContent,
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
            // A retry after a lost response would find the blob of the first attempt, so the SDK does not
            // retry conditional writes. These writes are retried below, only if the store reports that it did
            // nothing.
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
                Err(error) => S3Failure::classify(&error),
            };
            let is_conditional = *precondition != Precondition::Any;
            if is_conditional && failure.is_safe_to_retry() && tries < MAX_ATTEMPTS {
                tokio::time::sleep(Duration::from_millis(50 << tries.min(5))).await;
                continue;
            }
            // If the blob does not exist, the precondition `IfMatch` cannot be met.
            let is_stale = is_conflict(&failure) || (is_conditional && failure.is_absent());
            return Err(if is_stale {
                BlobsError::Stale { key: key.clone() }
            } else {
                failure.into_error(&self.shared.settings.bucket, format!("writing blob `{key}`"))
            });
        }
    }

    async fn remove(&self, key: &BlobKey, expected: Option<&Etag>) -> Result<(), BlobsError> {
        let stale = || BlobsError::Stale { key: key.clone() };
        if let Some(expected) = expected {
            // Servers without support for `If-Match` would delete any content, so the tag is compared first.
            match self.fetch_head(key).await? {
                None => return Ok(()),
                Some(head) if head.etag != *expected => return Err(stale()),
                Some(_) => {}
            }
        }
        let request = self.client.delete_object().bucket(&self.shared.settings.bucket).key(key.as_str());
        match request.set_if_match(expected.map(|Etag(tag)| tag.clone())).send().await {
            Ok(_) => Ok(()),
            Err(error) => match S3Failure::classify(&error) {
                failure if failure.is_absent() => Ok(()),
                // An earlier attempt whose response was lost may have deleted the blob.
                failure if is_conflict(&failure) && self.fetch_head(key).await?.is_none() => Ok(()),
                failure if is_conflict(&failure) => Err(stale()),
                failure => {
                    Err(failure.into_error(&self.shared.settings.bucket, format!("removing blob `{key}`")))
                }
            },
        }
    }

    /// `None` if the blob does not exist; a missing bucket is an error.
    fn none_if_absent<T>(
        &self,
        failure: S3Failure,
        what: impl FnOnce() -> String,
    ) -> Result<Option<T>, BlobsError> {
        if failure.is_absent() {
            Ok(None)
        } else {
            Err(failure.into_error(&self.shared.settings.bucket, what()))
        }
    }
}

fn head(
    etag: Option<String>,
    size: u64,
    metadata: Option<std::collections::HashMap<String, String>>,
) -> BlobHead {
    let metadata: Metadata = metadata.unwrap_or_default().into_iter().collect();
    BlobHead { etag: Etag(etag.unwrap_or_default()), size, metadata }
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3(bucket `{}`, {})", self.shared.settings.bucket, self.mode.as_str())
    }
}

impl BlobReader for S3 {
    fn get<'a>(
        &'a self,
        _: &'a ReadPermit,
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<Blob>, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            // The timeout of the SDK does not include reading the body, so the deadline is enforced here.
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
        key: &'a BlobKey,
    ) -> BoxFuture<'a, Result<Option<BlobHead>, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            self.fetch_head(key).await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        _: &'a ReadPermit,
        prefix: &'a str,
        cursor: Option<&'a Cursor>,
    ) -> BoxFuture<'a, Result<BlobPage, BlobsError>> {
        async move {
            let _permit = self.acquire().await?;
            self.fetch_page(prefix, cursor).await
        }
        .boxed()
    }
}

impl BlobWriter for S3 {
    fn put<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        content: &'a BlobContent,
        precondition: &'a Precondition,
    ) -> BoxFuture<'a, Result<Etag, BlobsError>> {
        async move {
            self.refuse_bounded(permit)?;
            let _permit = self.acquire().await?;
            self.store(key, content, precondition).await
        }
        .boxed()
    }

    fn delete<'a>(
        &'a self,
        permit: &'a WritePermit,
        key: &'a BlobKey,
        expected: Option<&'a Etag>,
    ) -> BoxFuture<'a, Result<(), BlobsError>> {
        async move {
            self.refuse_bounded(permit)?;
            let _permit = self.acquire().await?;
            self.remove(key, expected).await
        }
        .boxed()
    }
}
