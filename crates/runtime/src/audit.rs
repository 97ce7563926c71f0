//! What was written, told at the moment it is: one line per step, whatever becomes of the run.

use std::fmt;

use crate::fault::Fault;
use crate::key::ShardKey;
use crate::plan::Change;

/// A step that was done, or tried: the world may have changed.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// The run.
    pub run: &'a str,
    /// The shard.
    pub shard: &'a ShardKey,
    /// What the step changes.
    pub changes: &'a [Change],
    /// Why it failed, if it did: what it did before that is not known, unless the fault says that it is.
    pub failed: Option<&'a Fault>,
}

/// A step that begins, or whose result is known.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The shard.
    pub shard: &'a ShardKey,
    /// What the step changes.
    pub changes: &'a [Change],
}

/// Receives every write.
pub trait Audit: fmt::Debug + Send + Sync {
    /// A step begins: from now on the world may change.
    fn begin(&self, _: &Attempt<'_>) {}
    /// The result of a step is known. It follows [`Audit::wrote`], if that is called for the step.
    fn end(&self, _: &Attempt<'_>) {}
    /// Something was written.
    fn wrote(&self, written: &Written<'_>);
}

/// Drops every write.
#[derive(Debug)]
pub struct NoAudit;

impl Audit for NoAudit {
    fn wrote(&self, _: &Written<'_>) {}
}
