//! A store with its permits, and short methods for tests.

use std::sync::Arc;
use std::time::Duration;

use qontract_access::{Mode, Permits, ReadPermit, WritePermit};
use qontract_client_blobs::{
    Blob, BlobContent, BlobEntry, BlobKey, Blobs, BlobsError, Directory, Etag, Precondition, S3,
    S3Credentials, S3Settings, list_all,
};
use qontract_client_http::Secret;
use qontract_testkit::aws::TestAws;
use qontract_testkit::permits;

const MINUTE: Duration = Duration::from_mins(1);

/// A store with its permits.
pub struct Store {
    pub blobs: Arc<dyn Blobs>,
    permits: Permits,
}

impl Store {
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, permits: permits(Mode::Real) }
    }

    pub fn folder(root: &std::path::Path) -> Self {
        Self::new(Arc::new(Directory::new(root)))
    }

    /// A new bucket.
    pub async fn bucket(server: &TestAws, name: &str) -> Self {
        server.bucket(name);
        Self::new(Arc::new(s3(server, name, Mode::Real).await))
    }

    pub fn read(&self) -> &ReadPermit {
        &self.permits.read
    }

    pub fn write(&self) -> &WritePermit {
        self.permits.write.as_ref().expect("a real run")
    }

    pub async fn put(&self, key: &str, bytes: &str, precondition: &Precondition) -> Result<Etag, BlobsError> {
        self.blobs.put(self.write(), &self::key(key), &BlobContent::new(bytes), precondition).await
    }

    pub async fn get(&self, key: &str) -> Option<Blob> {
        self.blobs.get(self.read(), &self::key(key)).await.unwrap()
    }

    pub async fn text(&self, key: &str) -> Option<String> {
        self.get(key).await.map(|blob| String::from_utf8(blob.bytes).unwrap())
    }

    pub async fn delete(&self, key: &str, expected: Option<&Etag>) -> Result<(), BlobsError> {
        self.blobs.delete(self.write(), &self::key(key), expected).await
    }

    pub async fn list(&self, prefix: &str) -> Vec<BlobEntry> {
        list_all(&*self.blobs, self.read(), prefix).await.unwrap()
    }

    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        self.list(prefix).await.into_iter().map(|entry| entry.key).collect()
    }
}

/// A client of a bucket.
pub async fn s3(server: &TestAws, bucket: &str, mode: Mode) -> S3 {
    let credentials = S3Credentials::Keys { id: "AKIATEST".to_owned(), secret: Secret::new("s3cret-key") };
    let mut settings = S3Settings::new(bucket, "us-east-1", credentials);
    // All calls run concurrently, also on a busy machine.
    (settings.concurrency, settings.attempt_timeout, settings.deadline) = (1000, 5 * MINUTE, 10 * MINUTE);
    settings.endpoint = Some(server.url().parse().unwrap());
    S3::new(&permits(mode).read, settings).await
}

pub fn key(text: &str) -> BlobKey {
    BlobKey::new(text).unwrap()
}

pub fn is_stale<T>(outcome: &Result<T, BlobsError>) -> bool {
    matches!(outcome, Err(BlobsError::Stale { .. }))
}
