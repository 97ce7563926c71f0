//! The table `[targets]`: target systems other than those with their own table at the top level.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{KubernetesTable, VaultTable};

/// Target systems. A target that is not configured is never contacted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetsTable {
    /// Buckets, by the names that integrations use.
    pub blobs: BTreeMap<String, BucketTable>,
    /// Queues, by the names that integrations use.
    pub queue: BTreeMap<String, QueueTable>,
    /// The bucket of the state store. Without it, the environment variables of qontract-reconcile apply.
    pub state: Option<BucketTable>,
    /// The bucket of the journal. Without it, the journal is a directory next to the run records.
    pub journal: Option<BucketTable>,
    /// The Prometheus server with the metrics of the loops.
    pub prometheus: Option<PrometheusTable>,
    /// An alternative position of `[kubernetes]`.
    pub(super) kubernetes: Option<KubernetesTable>,
    /// An alternative position of `[vault]`.
    pub(super) vault: Option<VaultTable>,
}

/// A Prometheus server, or a server with the same query API.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrometheusTable {
    /// The URL.
    pub url: String,
    /// The bearer token; by default, requests have no credentials.
    pub token: Option<String>,
}

impl std::fmt::Debug for PrometheusTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrometheusTable").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A bucket of S3, or of a compatible server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketTable {
    /// The name of the bucket.
    pub bucket: String,
    /// The region; `us-east-1` by default.
    pub region: Option<String>,
    /// URL of a server other than AWS.
    pub endpoint: Option<String>,
    /// Path of the secret with the access key; by default, the key is in the environment.
    pub secret: Option<String>,
}

/// A queue of SQS, or of a compatible server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    /// The URL of the queue, unless `name` is set.
    pub url: Option<String>,
    /// The name of the queue, in the AWS account of the access key.
    pub name: Option<String>,
    /// The region; by default that of the URL, or `us-east-1` if the URL does not contain a region.
    pub region: Option<String>,
    /// URL of a server other than AWS.
    pub endpoint: Option<String>,
    /// Path of the secret with the access key; by default, the key is in the environment.
    pub secret: Option<String>,
}
