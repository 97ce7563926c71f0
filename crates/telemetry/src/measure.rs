//! Measurements of a run, for metrics.

use std::time::Duration;

/// A measurement of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    /// The duration of a list request to a cluster.
    Listed {
        /// The cluster.
        cluster: String,
        /// The kind of the objects.
        kind: String,
        /// The duration of the request.
        took: Duration,
    },
    /// The number of current or desired objects.
    Objects {
        /// The cluster.
        cluster: String,
        /// The namespace; empty for objects of the cluster itself.
        namespace: String,
        /// The kind of the objects.
        kind: String,
        /// The shard that counted them. Counts of different shards for the same kind and namespace are
        /// summed.
        shard: String,
        /// Current or desired.
        state: ObjectState,
        /// The number of objects.
        count: usize,
    },
    /// A field of a report contained a secret and was replaced.
    Redacted,
}

/// Current or desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectState {
    /// The current state.
    Current,
    /// The desired state.
    Desired,
}

impl ObjectState {
    /// The label value in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Desired => "desired",
        }
    }
}
