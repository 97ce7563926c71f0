//! The measurements of a run, from which metrics are updated.

use std::collections::BTreeMap;
use std::time::Duration;

/// A measurement of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// The duration of a list request to a cluster.
    Listed {
        /// The name of the cluster.
        cluster: String,
        /// The kind of the objects.
        kind: String,
        /// The duration of the request.
        took: Duration,
    },
    /// The number of current or desired objects.
    Objects {
        /// The name of the cluster.
        cluster: String,
        /// The namespace; empty for objects of the cluster itself.
        namespace: String,
        /// The kind of the objects.
        kind: String,
        /// The shard that counted the objects. Counts of different shards for one kind and namespace are added up.
        shard: String,
        /// Whether current or desired objects were counted.
        state: ObjectState,
        /// The number of objects.
        count: usize,
    },
    /// The time that a run spent on a shard, in one phase.
    Shard {
        /// The dimensions of the key of the shard, with their values.
        dimensions: BTreeMap<String, String>,
        /// The duration.
        took: Duration,
    },
    /// A field of a report contained a secret and was replaced.
    Redacted,
}

/// The state whose objects are counted: current or desired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectState {
    /// The current state.
    Current,
    /// The desired state.
    Desired,
}

impl ObjectState {
    /// The value of the label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Desired => "desired",
        }
    }
}
