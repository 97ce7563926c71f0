//! Replays the plans of a run from recorded inputs, without a target, a secret store or the data repo.
//!
//! A plan follows from the desired and the current state of its shard. A run records these two states for the first
//! plan of each shard. The declared state is not recorded: a replay declares it again from the bundle and compares
//! its digest.
//!
//! **Invariant:** a recording contains no secret: an integration replaces the values of sensitive objects by
//! keyed fingerprints, and the runner replaces every other string that contains a secret that the shard has
//! read (`crates/qontract/tests/suite/replay.rs`).
//!
//! **Invariant:** with the binary that recorded them, recorded inputs produce the recorded plan. Each shard is replayed
//! when it is recorded. If the plan differs, because it depends on a value that is not stored, the recording contains
//! this reason instead of the inputs (`inputs_that_do_not_give_the_plan_are_not_stored`).

mod inputs;
mod recorder;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use qontract_redaction::Redactor;

use crate::data::Data;
use crate::fault::Fault;
use crate::integration::{Integration, IntegrationForm};
use crate::key::ShardKey;
use crate::options::Options;
use crate::plan::{Plan, PlanDigest};
use crate::redaction::ShardRedactor;
use crate::type_erasure::{AnyDeclaredState, DynIntegration, OpaqueValue};

pub use crate::contract::PlanInputs;
pub use crate::fingerprint::{FINGERPRINT_PREFIX, Fingerprints};
pub use inputs::RecordedInputs;
pub(crate) use recorder::{RecordedPlan, finish_recording, record_shard};

pub use crate::recording::{
    DeclaringSide, InputRecorder, PlannedRun, RECORDING_VERSION, RecordedShard, Recording, RecordingSink,
    ShardInputs,
};
pub use crate::secrets::RecordedSecret;

/// The first difference between the inputs of a replay and those of the run, or the first input that is missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputDifference {
    /// The integration has a form without plans.
    #[error("`{0}` has no plans that can be replayed: it is not of the staged or process form")]
    Form(String),
    /// The declared state cannot be computed from the bundle.
    #[error("the data of {side} cannot be declared: {fault}")]
    Declaration {
        /// The bundle from which the state is declared.
        side: DeclaringSide,
        /// The fault of the declaration.
        fault: String,
    },
    /// A bundle does not declare a recorded shard.
    #[error("the data of {side} does not declare the shard `{shard}`")]
    Shard {
        /// The bundle that does not declare the shard.
        side: DeclaringSide,
        /// The key of the recorded shard.
        shard: ShardKey,
    },
    /// The declared state of a shard differs from the recorded one.
    #[error("the data declares another state for the shard `{0}`")]
    DeclaredState(ShardKey),
    /// The inputs of a shard were not recorded.
    #[error("the inputs of the shard `{shard}` are not recorded: {why}")]
    NotRecorded {
        /// The key of the shard.
        shard: ShardKey,
        /// The reason why the inputs were not recorded.
        why: String,
    },
    /// The inputs of a shard are recorded in a format that this binary cannot read.
    #[error("the recorded inputs of the shard `{0}` cannot be read")]
    Unreadable(ShardKey),
    /// The recorded inputs result in a plan that differs from the recorded plan.
    #[error(
        "the same inputs result in a different plan for the shard `{shard}`: {replayed} instead of {recorded}"
    )]
    Plan {
        /// The key of the shard.
        shard: ShardKey,
        /// The recorded digest.
        recorded: PlanDigest,
        /// The digest of the replayed plan.
        replayed: PlanDigest,
    },
}

/// The data from which a replay declares the state of the shards.
#[derive(Clone, Copy, Debug)]
pub struct ReplayData<'d> {
    /// The data of the run.
    pub head: &'d Data,
    /// The base bundle of the run, if it had one.
    pub base: Option<&'d Data>,
    /// The integration's options.
    pub options: &'d Options,
}

/// Replays the plans of a recording and returns the combined digest of the plans. With `data`, the declared state of
/// each shard is also compared. Fails with the first input that differs.
pub fn replay(
    integration: &Integration,
    recording: &Recording,
    data: Option<ReplayData<'_>>,
) -> Result<PlanDigest, InputDifference> {
    let IntegrationForm::Staged(staged) = integration.form() else {
        return Err(InputDifference::Form(integration.meta().name.clone()));
    };
    if let Some(data) = data {
        check_declared(&**staged, recording, data)?;
    }
    let mut digests: BTreeMap<ShardKey, PlanDigest> = BTreeMap::new();
    for shard in &recording.shards {
        let key = shard.key();
        let inputs = match &shard.inputs {
            ShardInputs::Recorded(inputs) => inputs,
            ShardInputs::Missing(why) => {
                return Err(InputDifference::NotRecorded { shard: key, why: why.clone() });
            }
        };
        let Some(replayed) = plan_digest(&**staged, inputs) else {
            return Err(InputDifference::Unreadable(key));
        };
        if replayed != shard.plan_digest {
            let recorded = shard.plan_digest.clone();
            return Err(InputDifference::Plan { shard: key, recorded, replayed });
        }
        digests.insert(key, replayed);
    }
    Ok(PlanDigest::of_shards(&digests.iter().collect()))
}

/// The digest of the plan that results from recorded inputs; `None` if the inputs cannot be read.
pub(crate) fn plan_digest(staged: &dyn DynIntegration, inputs: &str) -> Option<PlanDigest> {
    let mut plan = staged.replay_plan(&serde_json::from_str(inputs).ok()?)?;
    drop_empty_steps(&mut plan);
    // In the recording, every string with a secret is replaced by a fingerprint.
    let redactor = ShardRedactor::for_replay(Redactor::new([FINGERPRINT_PREFIX]));
    Some(redactor.redact_diffs(&mut plan).digest())
}

/// Drops the steps without changes and returns the names of their groups. A plan does not show a step without
/// changes, so such a step must not be applied.
pub(crate) fn drop_empty_steps(plan: &mut Plan<OpaqueValue>) -> Vec<String> {
    let mut names = Vec::new();
    for group in &mut plan.groups {
        let before = group.steps.len();
        group.steps.retain(|step| !step.changes.is_empty());
        if group.steps.len() < before {
            names.push(group.name.clone());
        }
    }
    names
}

/// Compares the declared states with those of the run.
fn check_declared(
    staged: &dyn DynIntegration,
    recording: &Recording,
    data: ReplayData<'_>,
) -> Result<(), InputDifference> {
    let declare = |side: DeclaringSide| -> Result<Box<dyn AnyDeclaredState>, InputDifference> {
        let failed = |fault: Fault| InputDifference::Declaration { side, fault: fault.text };
        let data_of_side = match side {
            DeclaringSide::Head => Some(data.head),
            DeclaringSide::Base => data.base,
        };
        let data_of_side =
            data_of_side.ok_or_else(|| failed(Fault::operator("the recording names no base")))?;
        staged.declare(data_of_side, data.options).map_err(failed)
    };
    let mut states: BTreeMap<DeclaringSide, Box<dyn AnyDeclaredState>> = BTreeMap::new();
    for shard in &recording.shards {
        let side = shard.side;
        let state = match states.entry(side) {
            Entry::Occupied(state) => state.into_mut(),
            Entry::Vacant(state) => state.insert(declare(side)?),
        };
        let declared = state.shard_digest(&shard.key());
        let Some(declared) = declared else {
            return Err(InputDifference::Shard { side, shard: shard.key() });
        };
        if declared.to_string() != shard.declared {
            return Err(InputDifference::DeclaredState(shard.key()));
        }
    }
    Ok(())
}
