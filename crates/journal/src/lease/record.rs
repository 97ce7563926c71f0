//! The blob of a lease.

use std::time::Duration;

use jiff::Timestamp;
use qontract_bundle::Sha256;
use qontract_client_blobs::{BlobKey, BlobsError, Etag};
use qontract_runtime::ShardKey;
use serde::{Deserialize, Serialize};

use super::timing::LeaseTiming;

/// The key prefix of leases.
const PREFIX: &str = "lease/";

/// The process that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseProcess {
    /// A random id that no other process has.
    pub id: String,
    /// The name of the process's host, for messages.
    pub host: String,
    /// The process id on its host.
    pub pid: u32,
    /// The start time of the process. Together with `pid`, it identifies the process on its machine.
    pub started: u64,
    /// Identifies the boot of the machine and the namespace in which `pid` is valid; `None` if it is unknown.
    pub machine: Option<String>,
}

/// Whether a lease is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// The lease is held until it expires.
    Held,
    /// The last holder released the lease.
    Released,
}

/// The content of a lease.
///
/// **Invariant:** no two writes have the same content, so a tag identifies a write: no process uses a sequence number
/// twice, even if a write fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// Whether the lease is held.
    pub state: LeaseState,
    /// The process that wrote this content.
    pub process: LeaseProcess,
    /// The number of this write among all writes of leases of the process.
    pub sequence: u64,
    /// The number of this write among all writes of this lease.
    pub counter: u64,
    /// The run that holds or held the lease, for messages.
    pub run: String,
    /// The shard, for messages.
    pub shard: String,
    /// The duration of the lease.
    pub milliseconds: u64,
    /// The wall-clock time of the write. The time is only shown to people.
    pub renewed: Timestamp,
}

impl LeaseRecord {
    /// The timing of the lease, as its holder uses it.
    pub fn timing(&self) -> LeaseTiming {
        LeaseTiming::new(Duration::from_millis(self.milliseconds))
    }

    /// Encodes the lease.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a lease can be written as JSON")
    }
}

/// A lease that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLease {
    /// The tag of the blob, which identifies the write.
    pub etag: Etag,
    /// The content; `None` if the blob is damaged or was written by another version.
    pub record: Option<LeaseRecord>,
}

impl StoredLease {
    /// Decodes the blob of a lease.
    pub fn decode(etag: Etag, bytes: &[u8]) -> Self {
        Self { etag, record: serde_json::from_slice(bytes).ok() }
    }

    /// Whether the lease was written by this process with the write of this number.
    pub fn is_write_of(&self, process: &str, sequence: u64) -> bool {
        self.record.as_ref().is_some_and(|record| record.process.id == process && record.sequence == sequence)
    }
}

/// The key of the lease of a shard. Shard keys may contain any character, so their digest is used.
pub fn lease_key(integration: &str, shard: &ShardKey) -> Result<BlobKey, BlobsError> {
    let parts: Vec<(&str, &str)> = shard.parts().collect();
    let text = serde_json::to_vec(&parts).expect("strings can be written as JSON");
    BlobKey::new(format!("{PREFIX}{integration}/{}", Sha256::of(&text)))
}

/// The key prefix of the leases of an integration, or of all integrations.
pub fn lease_prefix(integration: Option<&str>) -> String {
    integration.map_or_else(|| PREFIX.to_owned(), |name| format!("{PREFIX}{name}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_whose_keys_have_the_same_text_have_different_leases() {
        let ambiguous = [ShardKey::new([("a", "b, c=d")]), ShardKey::new([("a", "b"), ("c", "d")])];
        assert_eq!(ambiguous[0].to_string(), ambiguous[1].to_string());
        let [one, other] = ambiguous.map(|key| lease_key("x", &key).unwrap());
        assert_ne!(one, other);
        assert!(one.as_str().starts_with("lease/x/"), "{one}");
    }

    #[test]
    fn a_damaged_lease_is_read_without_content() {
        let etag = Etag("e".to_owned());
        assert_eq!(StoredLease::decode(etag.clone(), b"{").record, None);
        assert_eq!(StoredLease::decode(etag, br#"{"format": 9}"#).record, None);
    }
}
