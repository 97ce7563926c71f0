//! The audit trail: reports the steps of a shard before the first of them is applied (write-ahead), and then their
//! results. It also reports every write when it happens, regardless of the outcome of the run.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::plan::{Change, ChangeKind, Plan, PlanDigest};
use crate::source_location::SourceLocation;

/// A step that was applied or attempted: the target may have changed.
#[derive(Clone, Copy, Debug)]
pub struct WriteRecord<'a> {
    /// The name of the run.
    pub run: &'a str,
    /// The key of the shard.
    pub shard: &'a ShardKey,
    /// The changes of the step.
    pub changes: &'a [Change],
    /// The fault, if the step failed. The step may be partially applied, unless [`Fault::is_undone`] is set.
    pub fault: Option<&'a Fault>,
}

/// The steps of a shard that a round is about to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntendedRound {
    /// The key of the shard.
    pub shard: ShardKey,
    /// The steps, in the order of the plan.
    pub steps: Vec<IntendedStep>,
    /// The source locations of the changes of all steps; they are logged when the changes are made.
    pub places: Vec<SourceLocation>,
}

impl IntendedRound {
    /// Creates the round of an integration without shards, which makes one change.
    pub(crate) fn of_change(change: &Change) -> Self {
        let mut plan = Plan::default();
        plan.add_step(change.clone(), ());
        let step = IntendedStep { digest: plan.digest(), changes: vec![IntendedChange::from(change)] };
        Self { shard: ShardKey::default(), steps: vec![step], places: change.place.iter().cloned().collect() }
    }
}

/// A step that a round is about to apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntendedStep {
    /// The digest of the step.
    pub digest: PlanDigest,
    /// The changes of the step.
    pub changes: Vec<IntendedChange>,
}

/// A change that a round is about to make. It contains no values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntendedChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The action as shown to people, with the sign of the change.
    pub text: String,
    /// The precondition of the write: the version of the object that was read. `None` if the object must not exist or
    /// the target has no versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl From<&Change> for IntendedChange {
    fn from(change: &Change) -> Self {
        Self { kind: change.kind, text: change.to_string(), version: change.incarnation.clone() }
    }
}

/// Identifies a round whose steps were reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundNumber(pub u32);

/// Receives every write.
pub trait Audit: fmt::Debug + Send + Sync {
    /// Reports the steps of a round before the first of them is applied. The round is applied even if this fails.
    fn begin_round<'a>(&'a self, _round: &'a IntendedRound) -> BoxFuture<'a, RoundNumber> {
        std::future::ready(RoundNumber(0)).boxed()
    }

    /// Reports the attempted changes with their results.
    fn end_round<'a>(&'a self, _round: RoundNumber, _tried: &'a [Change]) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }

    /// Records a write.
    fn record_write(&self, written: &WriteRecord<'_>);
}

/// An audit trail that discards every report.
#[derive(Debug)]
pub struct NoAudit;

impl Audit for NoAudit {
    fn record_write(&self, _: &WriteRecord<'_>) {}
}
