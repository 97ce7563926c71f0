//! Records the inputs of the first plan of each shard of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::plan_digest;
use crate::key::ShardKey;
use crate::plan::PlanDigest;
use crate::recording::{
    DeclaringSide, InputRecorder, PlannedRun, RECORDING_VERSION, RecordedShard, Recording, ShardInputs,
};
use crate::redaction::ShardRedactor;
use crate::run_request::RunRequest;
use crate::secrets::ShardSecrets;
use crate::type_erasure::{AnyDeclaredState, DynIntegration};
use crate::wire_dimensions::WireDimensions;

/// Passes the recording of a run to the sink.
pub(crate) fn finish_recording(
    recorder: &InputRecorder,
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
        key: recorder.fingerprints().key_id(),
        plan_digest,
        shards,
    };
    let (head, base) = (&request.head, request.base.as_ref());
    recorder.sink.planned(PlannedRun { recording, head, base, applies_steps });
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
