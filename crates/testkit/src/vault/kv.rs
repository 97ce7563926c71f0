//! KV 2: secrets with versions. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Maximum number of versions of a secret.
const MAX_VERSIONS: usize = 10;

/// All secrets by path.
#[derive(Default)]
pub struct SecretStore {
    secrets: BTreeMap<String, StoredSecret>,
}

#[derive(Default)]
struct StoredSecret {
    versions: BTreeMap<u64, SecretVersion>,
    latest: u64,
    created: String,
    updated: String,
}

struct SecretVersion {
    data: Map<String, Value>,
    created: String,
    deleted: String,
    destroyed: bool,
}

/// A change of versions.
#[derive(Clone, Copy)]
pub enum VersionChange {
    /// Soft deletion.
    Delete,
    /// Reverts a soft deletion.
    Undelete,
    /// Permanent removal of the data.
    Destroy,
}

impl SecretVersion {
    fn metadata(&self, number: u64) -> Value {
        json!({"created_time": self.created, "custom_metadata": null, "deletion_time": self.deleted,
            "destroyed": self.destroyed, "version": number})
    }

    fn is_gone(&self) -> bool {
        self.destroyed || !self.deleted.is_empty()
    }
}

impl SecretStore {
    /// Writes the next version; `None` if the precondition does not hold.
    pub fn put(&mut self, path: &str, data: Map<String, Value>, cas: Option<u64>, now: &str) -> Option<u64> {
        let latest = self.secrets.get(path).map_or(0, |secret| secret.latest);
        if cas.is_some_and(|cas| cas != latest) {
            return None;
        }
        let secret = self.secrets.entry(path.to_owned()).or_default();
        if latest == 0 {
            now.clone_into(&mut secret.created);
        }
        now.clone_into(&mut secret.updated);
        secret.latest = latest + 1;
        let version =
            SecretVersion { data, created: now.to_owned(), deleted: String::new(), destroyed: false };
        secret.versions.insert(secret.latest, version);
        if secret.versions.len() > MAX_VERSIONS {
            secret.versions.pop_first();
        }
        Some(secret.latest)
    }

    /// Reads a version, by default the latest. Returns the status and the data of the response.
    pub fn get(&self, path: &str, number: Option<u64>) -> (u16, Option<Value>) {
        let Some(secret) = self.secrets.get(path) else { return (404, None) };
        let number = number.filter(|number| *number > 0).unwrap_or(secret.latest);
        let Some(version) = secret.versions.get(&number) else { return (404, None) };
        let metadata = version.metadata(number);
        if version.is_gone() {
            return (404, Some(json!({"data": null, "metadata": metadata})));
        }
        (200, Some(json!({"data": version.data, "metadata": metadata})))
    }

    /// The response data for a version that was just written.
    pub fn version_metadata(&self, path: &str, number: u64) -> Value {
        let version = self.secrets.get(path).and_then(|secret| secret.versions.get(&number));
        version.map(|version| version.metadata(number)).unwrap_or_default()
    }

    /// Deletes, undeletes or destroys the given versions, by default the latest.
    pub fn change(&mut self, path: &str, numbers: Option<Vec<u64>>, fate: VersionChange, now: &str) {
        let Some(secret) = self.secrets.get_mut(path) else { return };
        for number in numbers.unwrap_or_else(|| vec![secret.latest]) {
            let Some(version) = secret.versions.get_mut(&number) else { continue };
            match fate {
                VersionChange::Delete => now.clone_into(&mut version.deleted),
                VersionChange::Undelete => version.deleted.clear(),
                VersionChange::Destroy => {
                    version.destroyed = true;
                    version.data.clear();
                }
            }
        }
    }

    /// The metadata of a secret and all its versions.
    pub fn metadata(&self, path: &str) -> Option<Value> {
        let secret = self.secrets.get(path)?;
        let versions: BTreeMap<String, Value> = secret
            .versions
            .iter()
            .map(|(number, version)| {
                let metadata = json!({"created_time": version.created, "deletion_time": version.deleted,
                    "destroyed": version.destroyed});
                (number.to_string(), metadata)
            })
            .collect();
        let oldest = secret.versions.keys().next().filter(|_| secret.latest > MAX_VERSIONS as u64);
        Some(json!({"cas_required": false, "created_time": secret.created, "current_version": secret.latest,
            "custom_metadata": null, "delete_version_after": "0s", "max_versions": 0,
            "oldest_version": oldest.copied().unwrap_or_default(), "updated_time": secret.updated,
            "versions": versions}))
    }

    /// Removes a secret with all its versions.
    pub fn remove(&mut self, path: &str) {
        self.secrets.remove(path);
    }

    /// The names directly below a path; nested paths have a trailing slash.
    pub fn list(&self, folder: &str) -> BTreeSet<String> {
        let prefix =
            if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        let below = self.secrets.keys().filter_map(|path| path.strip_prefix(&prefix));
        below.map(|rest| rest.split_inclusive('/').next().unwrap_or_default().to_owned()).collect()
    }
}
