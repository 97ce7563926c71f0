//! The established runtime's state: JSON under `state/<integration>/<key>`, read and written by both.

mod settings;

use std::sync::Arc;

use qontract_access::{ReadPermit, WritePermit};
use serde_json::Value;

use crate::blob::{Content, Etag, Key, Metadata, Precondition};
use crate::error::BlobsError;
use crate::{Blobs, list_all};

pub use settings::{StateCredentials, StateSettings};

/// The state of one integration.
#[derive(Clone)]
pub struct State {
    blobs: Arc<dyn Blobs>,
    /// Ends without a slash.
    path: String,
}

/// A value as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The value.
    pub value: Value,
    /// Its tag, for who wants to replace just this.
    pub etag: Etag,
    /// What is kept beside it.
    pub metadata: Metadata,
}

/// A value to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The value.
    pub value: Value,
    /// What is kept beside it.
    pub metadata: Metadata,
}

impl From<Value> for Draft {
    fn from(value: Value) -> Self {
        Self { value, metadata: Metadata::new() }
    }
}

/// What must hold for a value to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Add {
    /// The key is not there.
    IfAbsent,
    /// The key has this tag.
    IfMatch(Etag),
    /// Nothing: what is there is written over.
    Force,
}

impl State {
    /// The state of an integration; without a name, that of all of them.
    pub fn new(blobs: Arc<dyn Blobs>, integration: &str) -> Self {
        let path = if integration.is_empty() { "state".to_owned() } else { format!("state/{integration}") };
        Self { blobs, path }
    }

    /// The keys, each with a slash before it, in order.
    pub async fn ls(&self, permit: &ReadPermit) -> Result<Vec<String>, BlobsError> {
        let entries = list_all(&*self.blobs, permit, &format!("{}/", self.path)).await?;
        let below =
            entries.into_iter().filter_map(|entry| Some(entry.key.strip_prefix(&self.path)?.to_owned()));
        Ok(below.collect())
    }

    /// What is kept beside a value, if the key is there.
    pub async fn head(&self, permit: &ReadPermit, key: &str) -> Result<Option<Metadata>, BlobsError> {
        Ok(self.blobs.head(permit, &self.key(key)?).await?.map(|head| head.metadata))
    }

    /// A value, if the key is there. One that is not JSON is a failure, not absent.
    pub async fn get(&self, permit: &ReadPermit, key: &str) -> Result<Option<Stored>, BlobsError> {
        let key = self.key(key)?;
        let Some(blob) = self.blobs.get(permit, &key).await? else { return Ok(None) };
        let value = serde_json::from_slice(&blob.bytes)
            .map_err(|_| BlobsError::Malformed { key: key.to_string(), why: "it is not JSON" })?;
        Ok(Some(Stored { value, etag: blob.head.etag, metadata: blob.head.metadata }))
    }

    /// Writes a value.
    pub async fn add(
        &self,
        permit: &WritePermit,
        key: &str,
        draft: &Draft,
        add: Add,
    ) -> Result<Etag, BlobsError> {
        let precondition = match add {
            Add::IfAbsent => Precondition::IfAbsent,
            Add::IfMatch(etag) => Precondition::IfMatch(etag),
            Add::Force => Precondition::Any,
        };
        let content = Content {
            bytes: qontract_python_json::to_string(&draft.value).into_bytes(),
            metadata: draft.metadata.clone(),
        };
        self.blobs.put(permit, &self.key(key)?, &content, &precondition).await
    }

    /// Removes a value, which must be there.
    pub async fn rm(&self, read: &ReadPermit, write: &WritePermit, key: &str) -> Result<(), BlobsError> {
        let key = self.key(key)?;
        match self.blobs.head(read, &key).await? {
            Some(_) => self.blobs.delete(write, &key, None).await,
            None => Err(BlobsError::NotFound(key)),
        }
    }

    fn key(&self, key: &str) -> Result<Key, BlobsError> {
        Key::new(format!("{}/{}", self.path, key.trim_start_matches('/')))
    }
}
