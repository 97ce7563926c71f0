//! Resources that are fetched in batches, so that a remote bundle needs few requests.

use std::collections::{BTreeMap, BTreeSet};

use super::{Data, DataError};

/// The contents of resources that were fetched in a batch.
///
/// **Invariant:** a batch returns the same content as [`Data::resource`] and logs only the resources that are read
/// from it.
#[derive(Clone, Debug)]
pub struct ResourceBatch {
    data: Data,
    requested: BTreeSet<String>,
    /// The contents, if the source fetches in batches; `None` for a bundle in this process, from which resources are
    /// read on demand.
    fetched: Option<BTreeMap<String, String>>,
}

impl ResourceBatch {
    pub(super) fn fetch(data: &Data, requested: BTreeSet<String>) -> Result<Self, DataError> {
        let fetched = if requested.is_empty() { None } else { data.source.fetch_resources(&requested)? };
        Ok(Self { data: data.clone(), requested, fetched })
    }

    /// The content of a resource. A resource outside the batch is read individually.
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
