//! Records the inputs of the first plan of each shard of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fingerprint::Fingerprints;
use super::plan_digest;
use crate::key::ShardKey;
use crate::plan::PlanDigest;
use crate::process::WireDimensions;
use crate::redaction::ShardRedactor;
use crate::run_request::RunRequest;
use crate::secrets::ShardSecrets;
use crate::type_erasure::{AnyDeclaredState, DynIntegration};

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
    key: WireDimensions,
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

/// A secret that a shard has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSecret {
    /// The path of the secret.
    pub path: String,
    /// The field of the secret.
    pub field: String,
    /// The version of the secret; `None` for the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The fingerprint of the value.
    pub fingerprint: String,
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
    /// The input of the run.
    pub request: &'r RunRequest,
    /// Whether the run is about to apply steps.
    pub applies_steps: bool,
}

/// Records the inputs of one run.
#[derive(Clone)]
pub struct InputRecorder {
    fingerprints: Arc<Fingerprints>,
    /// The number of bytes that may still be recorded.
    left: Arc<Mutex<usize>>,
    sink: Arc<dyn RecordingSink>,
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

    /// Passes the recording of a run to the sink.
    pub(crate) fn finish(
        &self,
        integration: &str,
        request: &RunRequest,
        shards: Vec<RecordedShard>,
        applies_steps: bool,
    ) {
        let keyed: BTreeMap<ShardKey, &PlanDigest> =
            shards.iter().map(|shard| (shard.key(), &shard.plan_digest)).collect();
        let plan_digest = PlanDigest::of_shards(&keyed.iter().map(|(key, digest)| (key, *digest)).collect());
        let options = request.options.iter().map(|(flag, values)| (flag.to_owned(), values.to_vec()));
        let recording = Recording {
            version: RECORDING_VERSION,
            run: request.run.clone(),
            integration: integration.to_owned(),
            head: request.head.sha().to_owned(),
            base: request.base.as_ref().map(|base| base.sha().to_owned()),
            options: options.collect(),
            key: self.fingerprints.key_id(),
            plan_digest,
            shards,
        };
        self.sink.planned(PlannedRun { recording, request, applies_steps });
    }
}

/// A plan whose inputs are recorded.
pub(crate) struct RecordedPlan<'a> {
    pub(crate) integration: &'a dyn DynIntegration,
    pub(crate) key: &'a ShardKey,
    pub(crate) declared: &'a dyn AnyDeclaredState,
    pub(crate) side: DeclaringSide,
    pub(crate) secrets: &'a ShardSecrets,
    pub(crate) planned_at: Timestamp,
    pub(crate) plan_digest: PlanDigest,
}

/// Records the inputs of a plan, without secrets. The inputs are stored only if planning from them results in the
/// same plan.
pub(crate) fn record_shard(
    recorder: &InputRecorder,
    plan: RecordedPlan<'_>,
    inputs: Option<Value>,
    redactor: &ShardRedactor,
) -> RecordedShard {
    let RecordedPlan { integration, key, declared, side, secrets, planned_at, plan_digest: expected } = plan;
    let fingerprints = recorder.fingerprints();
    let missing = |why: &str| ShardInputs::Missing(why.to_owned());
    let inputs = match inputs {
        None => missing("the integration does not support it"),
        Some(mut inputs) => {
            fingerprints.mask_secrets(&mut inputs, redactor.redactor());
            let text = inputs.to_string();
            drop(inputs);
            let mut left = recorder.left.lock();
            if text.len() > *left {
                missing("they are too large")
            } else if plan_digest(integration, &text).as_ref() != Some(&expected) {
                missing("the plan depends on values that are not stored, such as secrets")
            } else {
                *left -= text.len();
                ShardInputs::Recorded(text)
            }
        }
    };
    RecordedShard {
        key: WireDimensions::from(key),
        side,
        declared: declared.shard_digest(key).map(|digest| digest.to_string()).unwrap_or_default(),
        planned_at,
        secrets: secrets.fingerprints(fingerprints),
        plan_digest: expected,
        inputs,
    }
}
