//! What a run measured on its way, for metrics.

use std::time::Duration;

/// Something that a run measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// How long a list of a cluster's objects took.
    Listed {
        /// The cluster.
        cluster: String,
        /// The kind.
        kind: String,
        /// How long.
        took: Duration,
    },
    /// How many objects there are, or are wanted.
    Objects {
        /// The cluster.
        cluster: String,
        /// The namespace; empty for objects of the cluster itself.
        namespace: String,
        /// The kind.
        kind: String,
        /// The shard that counted them: shards that count objects of the same kind and namespace are added up.
        shard: String,
        /// Which of the two.
        state: Side,
        /// How many.
        count: usize,
    },
    /// A field of a report contained a secret and was replaced.
    Redacted,
}

/// What is there, or what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// What is there.
    Current,
    /// What is wanted.
    Desired,
}

impl Side {
    /// The word for it in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Desired => "desired",
        }
    }
}
