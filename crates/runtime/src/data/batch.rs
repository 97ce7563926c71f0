//! Resources that are requested together, so that a remote bundle needs few requests for many of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Data, DataError};

/// The texts of resources that were requested together.
///
/// **Invariant:** a text is the one that [`Data::resource`] returns, and only the resources that are read are
/// logged.
#[derive(Clone, Debug)]
pub struct ResourceBatch {
    data: Data,
    requested: BTreeSet<String>,
    /// Set if the source fetches in batches; a bundle in this process is read when a text is needed.
    fetched: Option<BTreeMap<String, String>>,
}

impl ResourceBatch {
    pub(super) fn fetch(data: &Data, requested: BTreeSet<String>) -> Result<Self, DataError> {
        let fetched = if requested.is_empty() { None } else { data.source.fetch_resources(&requested)? };
        Ok(Self { data: data.clone(), requested, fetched })
    }

    /// The text of a resource. A resource outside of the batch is read individually.
    pub fn get(&self, path: &str) -> Result<Option<String>, DataError> {
        match &self.fetched {
            Some(fetched) if self.requested.contains(path) => {
                self.data.query_log.lock().resources.insert(path.to_owned());
                Ok(fetched.get(path).cloned())
            }
            Some(_) | None => self.data.resource(path),
        }
    }
}
