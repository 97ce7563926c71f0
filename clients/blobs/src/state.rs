//! The state store of qontract-reconcile: JSON under `state/<integration>/<key>`, which both programs can
//! read and write.

mod settings;

use std::sync::Arc;

use qontract_access::{ReadPermit, WritePermit};
use serde_json::Value;

use crate::blob::{BlobContent, BlobKey, Etag, Metadata, Precondition};
use crate::error::BlobsError;
use crate::{Blobs, list_all};

pub use settings::{StateCredentials, StateSettings};

/// The state store of one integration.
#[derive(Clone)]
pub struct StateStore {
    blobs: Arc<dyn Blobs>,
    /// The prefix of the keys of the integration, without a trailing slash.
    path: String,
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredValue {
    /// The value.
    pub value: Value,
    /// The tag, for a conditional write.
    pub etag: Etag,
    /// The metadata.
    pub metadata: Metadata,
}

/// A value to write.
#[derive(Clone, Debug, PartialEq)]
pub struct NewValue {
    /// The value.
    pub value: Value,
    /// The metadata.
    pub metadata: Metadata,
}

impl From<Value> for NewValue {
    fn from(value: Value) -> Self {
        Self { value, metadata: Metadata::new() }
    }
}

/// The precondition for adding a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddCondition {
    /// The key does not exist.
    IfAbsent,
    /// The value of the key has this tag.
    IfMatch(Etag),
    /// No precondition: an existing value is overwritten.
    Force,
}

impl StateStore {
    /// The state store of an integration; with an empty name, the state store of all integrations.
    pub fn new(blobs: Arc<dyn Blobs>, integration: &str) -> Self {
        let path = if integration.is_empty() { "state".to_owned() } else { format!("state/{integration}") };
        Self { blobs, path }
    }

    /// All keys, sorted, each with a leading slash.
    pub async fn ls(&self, permit: &ReadPermit) -> Result<Vec<String>, BlobsError> {
        let entries = list_all(&*self.blobs, permit, &format!("{}/", self.path)).await?;
        let below =
            entries.into_iter().filter_map(|entry| Some(entry.key.strip_prefix(&self.path)?.to_owned()));
        Ok(below.collect())
    }

    /// The metadata of a value, if the key exists.
    pub async fn head(&self, permit: &ReadPermit, key: &str) -> Result<Option<Metadata>, BlobsError> {
        Ok(self.blobs.head(permit, &self.key(key)?).await?.map(|head| head.metadata))
    }

    /// A value, if the key exists. A value that is not JSON is an error, not absent.
    pub async fn get(&self, permit: &ReadPermit, key: &str) -> Result<Option<StoredValue>, BlobsError> {
        let key = self.key(key)?;
        let Some(blob) = self.blobs.get(permit, &key).await? else { return Ok(None) };
        let value = serde_json::from_slice(&blob.bytes)
            .map_err(|_| BlobsError::Malformed { key: key.to_string(), why: "it is not JSON" })?;
        Ok(Some(StoredValue { value, etag: blob.head.etag, metadata: blob.head.metadata }))
    }

    /// Writes a value.
    pub async fn add(
        &self,
        permit: &WritePermit,
        key: &str,
        new: &NewValue,
        add: AddCondition,
    ) -> Result<Etag, BlobsError> {
        let precondition = match add {
            AddCondition::IfAbsent => Precondition::IfAbsent,
            AddCondition::IfMatch(etag) => Precondition::IfMatch(etag),
            AddCondition::Force => Precondition::Any,
        };
        let content = BlobContent {
            bytes: qontract_python_json::to_string(&new.value).into_bytes(),
            metadata: new.metadata.clone(),
        };
        self.blobs.put(permit, &self.key(key)?, &content, &precondition).await
    }

    /// Removes a value, which must exist.
    pub async fn rm(&self, read: &ReadPermit, write: &WritePermit, key: &str) -> Result<(), BlobsError> {
        let key = self.key(key)?;
        match self.blobs.head(read, &key).await? {
            Some(_) => self.blobs.delete(write, &key, None).await,
            None => Err(BlobsError::NotFound(key)),
        }
    }

    fn key(&self, key: &str) -> Result<BlobKey, BlobsError> {
        BlobKey::new(format!("{}/{}", self.path, key.trim_start_matches('/')))
    }
}
