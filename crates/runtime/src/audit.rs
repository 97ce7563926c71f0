//! The audit trail: reports every write when it happens, one record per step, regardless of the outcome of
//! the run.

use std::fmt;

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::plan::Change;

/// A step that was applied or tried: the target may have changed.
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

/// A step that starts, or whose result is known.
#[derive(Clone, Copy, Debug)]
pub struct StepAttempt<'a> {
    /// The key of the shard.
    pub shard: &'a ShardKey,
    /// The changes of the step.
    pub changes: &'a [Change],
}

/// Receives every write.
pub trait Audit: fmt::Debug + Send + Sync {
    /// A step starts: from now on the target may change.
    fn begin(&self, _: &StepAttempt<'_>) {}
    /// The result of a step is known. It follows [`Audit::record_write`], if that is called for the step.
    fn end(&self, _: &StepAttempt<'_>) {}
    /// Records a write.
    fn record_write(&self, written: &WriteRecord<'_>);
}

/// Drops every write.
#[derive(Debug)]
pub struct NoAudit;

impl Audit for NoAudit {
    fn record_write(&self, _: &WriteRecord<'_>) {}
}
