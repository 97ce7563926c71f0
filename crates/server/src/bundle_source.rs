//! Bundle sources: a file, a blob, or a bundle store keyed by sha.

use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::ReadPermit;
use qontract_bundle::{Bundle, Hasher, LoadError, Pool, Sha256, load, load_from};
use qontract_client_blobs::{BlobKey, BlobReader, BlobsError};
use qontract_graphql::Engine;

use crate::bundles::LoadFailure;

/// Provides a bundle.
pub trait BundleSource: Send + Sync {
    /// The name of the bundle source, for log lines.
    fn name(&self) -> String;

    /// Reads the current content. Documents that are already in the pool are shared.
    fn read<'a>(&'a self, pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>>;
}

/// The content of a source.
pub enum Content {
    /// The bytes of a bundle.
    Bytes(Vec<u8>),
    /// A bundle file, which is read while it is loaded.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The file, from its start.
        file: fs::File,
    },
    /// A bundle that was built in this process and is ready for queries.
    Ready(Arc<Engine>),
}

impl Content {
    /// The sha of the bundle.
    pub fn sha(&mut self) -> Result<Sha256, SourceError> {
        match self {
            Content::Bytes(bytes) => Ok(Sha256::of(bytes)),
            Content::Ready(engine) => Ok(engine.bundle().sha()),
            Content::File { path, file } => {
                hash(file).map_err(|source| SourceError::File { path: path.clone(), source })
            }
        }
    }

    /// Loads the bundle; documents that are already in the pool are shared.
    pub fn load(self, pool: &Pool) -> Result<Arc<Bundle>, LoadFailure> {
        match self {
            Content::Bytes(bytes) => Ok(Arc::new(load(&bytes, pool)?)),
            Content::Ready(engine) => Ok(Arc::clone(engine.bundle())),
            Content::File { path, mut file } => match load_from(&mut file, pool) {
                Ok(bundle) => Ok(Arc::new(bundle)),
                Err(LoadError::Source(source)) => Err(SourceError::File { path, source }.into()),
                Err(wrong) => Err(wrong.into()),
            },
        }
    }

    /// The content of a file. A regular file is opened now and read later. A pipe is read now, because it can be read
    /// only once.
    async fn of_file(path: PathBuf) -> io::Result<Self> {
        let mut file = tokio::fs::File::open(&path).await?;
        if file.metadata().await?.is_file() {
            return Ok(Content::File { path, file: file.into_std().await });
        }
        let mut bytes = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut file, &mut bytes).await?;
        Ok(Content::Bytes(bytes))
    }
}

/// Hashes a file. The cursor must be at the start of the file, and it is moved back to the start.
fn hash(file: &mut fs::File) -> io::Result<Sha256> {
    let (mut hasher, mut part) = (Hasher::default(), vec![0; HASH_CHUNK_BYTES]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            length => hasher.update(&part[..length]),
        }
    }
    file.rewind()?;
    Ok(hasher.finish())
}

/// Size of the buffer for hashing a file.
const HASH_CHUNK_BYTES: usize = 256 << 10;

/// The reason why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A blob store cannot be read.
    #[error("cannot read the store")]
    Store(#[source] BlobsError),
    /// The blob does not exist.
    #[error("no `{0}` in the store")]
    Absent(String),
    /// Any other error; its details were already reported to the operator.
    #[error("{0}")]
    Other(String),
}

/// A bundle in a file.
pub struct FileSource(pub PathBuf);

impl BundleSource for FileSource {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        async {
            let failed = |source| SourceError::File { path: self.0.clone(), source };
            Content::of_file(self.0.clone()).await.map_err(failed)
        }
        .boxed()
    }
}

/// A bundle in a blob store.
pub struct BlobSource {
    /// The store that contains the blob.
    pub blobs: Arc<dyn BlobReader>,
    /// The key of the blob.
    pub key: BlobKey,
}

impl BundleSource for BlobSource {
    fn name(&self) -> String {
        self.key.to_string()
    }

    fn read<'a>(&'a self, _pool: &'a Arc<Pool>) -> BoxFuture<'a, Result<Content, SourceError>> {
        async {
            let blob =
                self.blobs.get(&ReadPermit::for_data(), &self.key).await.map_err(SourceError::Store)?;
            Ok(Content::Bytes(blob.ok_or_else(|| SourceError::Absent(self.key.to_string()))?.bytes))
        }
        .boxed()
    }
}

/// A bundle store: each bundle is stored under the name `<sha>.json`.
pub enum BundleStore {
    /// Files in a directory.
    Folder(PathBuf),
    /// Blobs in a blob store.
    Blobs {
        /// The store that contains the blobs.
        blobs: Arc<dyn BlobReader>,
        /// The prefix of all keys.
        prefix: String,
    },
}

impl BundleStore {
    /// Fetches the bundle with this sha, if the store contains it.
    pub async fn fetch(&self, sha: Sha256) -> Result<Option<Content>, SourceError> {
        match self {
            BundleStore::Folder(folder) => {
                let path = folder.join(format!("{sha}.json"));
                match Content::of_file(path.clone()).await {
                    Ok(content) => Ok(Some(content)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(source) => Err(SourceError::File { path, source }),
                }
            }
            BundleStore::Blobs { blobs, prefix } => {
                let key = BlobKey::new(format!("{prefix}{sha}.json")).map_err(SourceError::Store)?;
                let blob = blobs.get(&ReadPermit::for_data(), &key).await.map_err(SourceError::Store)?;
                Ok(blob.map(|blob| Content::Bytes(blob.bytes)))
            }
        }
    }
}
