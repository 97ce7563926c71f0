//! The recorded inputs of a run, and the recorder that receives them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::data::BundleReader;
use crate::fingerprint::Fingerprints;
use crate::key::ShardKey;
use crate::plan::PlanDigest;
use crate::secrets::RecordedSecret;
use crate::wire_dimensions::WireDimensions;

/// The version of the recording format.
pub const RECORDING_VERSION: u32 = 1;

/// The recorded inputs of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The version of the recording format.
    pub version: u32,
    /// The name of the run.
    pub run: String,
    /// The integration that ran.
    pub integration: String,
    /// The sha of the bundle to which the run was pinned.
    pub head: String,
    /// The sha of the base bundle, if the run compared two bundles.
    pub base: Option<String>,
    /// The integration's options.
    pub options: BTreeMap<String, Vec<String>>,
    /// A text that identifies the key of the fingerprints.
    pub key: String,
    /// The digest of the plans of all shards.
    pub plan_digest: PlanDigest,
    /// The shards that were planned, in order of their keys.
    pub shards: Vec<RecordedShard>,
}

/// The bundle that declares a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclaringSide {
    /// The head bundle of the run.
    Head,
    /// The base bundle of the run: head no longer declares the shard.
    Base,
}

/// The recorded inputs of one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedShard {
    pub(crate) key: WireDimensions,
    /// The bundle that declares the shard.
    pub side: DeclaringSide,
    /// The digest of the shard's declared state.
    pub declared: String,
    /// The time that the integration used for the plan.
    pub planned_at: Timestamp,
    /// The secrets that the shard has read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<RecordedSecret>,
    /// The digest of the shard's plan.
    pub plan_digest: PlanDigest,
    /// The inputs of the shard's plan.
    pub inputs: ShardInputs,
}

/// The inputs of the plan of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShardInputs {
    /// JSON that only the integration interprets.
    Recorded(String),
    /// The inputs were not recorded, for this reason.
    Missing(String),
}

impl RecordedShard {
    /// The key of the shard.
    pub fn key(&self) -> ShardKey {
        self.key.key()
    }
}

/// Receives the recording of a run.
pub trait RecordingSink: Send + Sync {
    /// Called when all shards are planned, before any step is applied.
    fn planned(&self, run: PlannedRun<'_>);
}

/// A run whose shards are planned.
#[derive(Debug)]
pub struct PlannedRun<'r> {
    /// The recorded inputs.
    pub recording: Recording,
    /// The data of the run.
    pub head: &'r Arc<dyn BundleReader>,
    /// The data before a proposed change, if two bundles are compared.
    pub base: Option<&'r Arc<dyn BundleReader>>,
    /// Whether the run is about to apply steps.
    pub applies_steps: bool,
}

/// Records the inputs of one run.
#[derive(Clone)]
pub struct InputRecorder {
    fingerprints: Arc<Fingerprints>,
    /// The number of bytes that may still be recorded.
    pub(crate) left: Arc<Mutex<usize>>,
    pub(crate) sink: Arc<dyn RecordingSink>,
}

impl fmt::Debug for InputRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputRecorder({:?})", self.fingerprints)
    }
}

impl InputRecorder {
    /// Records at most `max_bytes` of inputs and passes them to `sink`.
    pub fn new(fingerprints: Arc<Fingerprints>, max_bytes: usize, sink: Arc<dyn RecordingSink>) -> Self {
        Self { fingerprints, left: Arc::new(Mutex::new(max_bytes)), sink }
    }

    /// The fingerprints that replace secrets.
    pub(crate) fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }
}

impl fmt::Display for DeclaringSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::Base => "base",
        })
    }
}
