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
            let blob =
                self.blobs.get(&ReadPermit::for_data(), &self.key).await.map_err(OriginError::Store)?;
            Ok(Content::Bytes(blob.ok_or_else(|| OriginError::Absent(self.key.to_string()))?.bytes))
        }
        .boxed()
    }
}

/// Bundles by their shas: what is called `<sha>.json` is the bundle of that sha.
pub enum Store {
    /// Files of a folder.
    Folder(PathBuf),
    /// Blobs.
    Blobs {
        /// The store.
        blobs: Arc<dyn Reader>,
        /// What the keys begin with.
        prefix: String,
    },
}

impl Store {
    /// The bytes of a bundle, if the store has it.
    pub async fn fetch(&self, sha: Sha256) -> Result<Option<Vec<u8>>, OriginError> {
        match self {
            Store::Folder(folder) => {
                let path = folder.join(format!("{sha}.json"));
                match tokio::fs::read(&path).await {
                    Ok(bytes) => Ok(Some(bytes)),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(source) => Err(OriginError::File { path, source }),
                }
            }
            Store::Blobs { blobs, prefix } => {
                let key = Key::new(format!("{prefix}{sha}.json")).map_err(OriginError::Store)?;
                let blob = blobs.get(&ReadPermit::for_data(), &key).await.map_err(OriginError::Store)?;
                Ok(blob.map(|blob| blob.bytes))
            }
        }
    }
}
