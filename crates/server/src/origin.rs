//! Where bundles come from.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::ReadPermit;
use qontract_bundle::{Bundle, Pool, Sha256};
use qontract_client_blobs::{BlobsError, Key, Reader};

/// Where a bundle comes from.
pub trait Origin: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> String;

    /// What is there now. Documents that are in the pool are shared.
    fn read<'a>(&'a self, pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, OriginError>>;
}

/// What an origin has.
pub enum Content {
    /// The bytes of a bundle.
    Bytes(Vec<u8>),
    /// A bundle that was made on the spot.
    Bundle(Arc<Bundle>),
}

/// Why there is nothing good.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A store cannot be read.
    #[error("cannot read the store")]
    Store(#[source] BlobsError),
    /// There is no such blob.
    #[error("there is no `{0}` in the store")]
    Absent(String),
    /// Whatever else; the text has been shown to whoever can mend it.
    #[error("{0}")]
    Other(String),
}

/// A bundle in a file.
pub struct File(pub PathBuf);

impl Origin for File {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, OriginError>> {
        async {
            let failed = |source| OriginError::File { path: self.0.clone(), source };
            Ok(Content::Bytes(tokio::fs::read(&self.0).await.map_err(failed)?))
        }
        .boxed()
    }
}

/// A bundle in a store of blobs.
pub struct Stored {
    /// The store.
    pub blobs: Arc<dyn Reader>,
    /// The blob.
    pub key: Key,
}

impl Origin for Stored {
    fn name(&self) -> String {
        self.key.to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, OriginError>> {
        async {
            let blob = self.blobs.get(&ReadPermit::for_data(), &self.key).await.map_err(OriginError::Store)?;
            Ok(Content::Bytes(blob.ok_or_else(|| OriginError::Absent(self.key.to_string()))?.bytes))
        }
        .boxed()
    }
}

/// Bundles by their shas: the blob `<prefix><sha>.json` is the bundle of that sha.
pub struct Store {
    /// The store.
    pub blobs: Arc<dyn Reader>,
    /// What the keys begin with.
    pub prefix: String,
}

impl Store {
    /// The key of a bundle.
    pub fn key(&self, sha: Sha256) -> Result<Key, BlobsError> {
        Key::new(format!("{}{sha}.json", self.prefix))
    }

    /// The bytes of a bundle, if the store has it.
    pub async fn fetch(&self, sha: Sha256) -> Result<Option<Vec<u8>>, BlobsError> {
        let blob = self.blobs.get(&ReadPermit::for_data(), &self.key(sha)?).await?;
        Ok(blob.map(|blob| blob.bytes))
    }
}
