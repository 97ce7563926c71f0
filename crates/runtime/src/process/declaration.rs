//! The shards that a program declares for the integration that manages them.

use serde::de::DeserializeOwned;

use super::wire::{ResultPointer, ShownTexts};
use crate::fault::Fault;
use crate::key::ShardKey;
use crate::source_location::SourceLocation;

/// A shard in the response to `declare`, in the form of the integration that manages it.
pub trait ProgramShard: DeserializeOwned + ShownTexts {
    /// The location of the shard in the query results.
    fn pointer(&self) -> Option<&ResultPointer>;
}

/// The shards that a program declares.
#[derive(Debug)]
pub struct ProgramDeclaration<S> {
    /// The shards, each with its source location.
    pub shards: Vec<LocatedShard<S>>,
    /// Faults of individual shards.
    pub faults: Vec<ShardFault>,
}

/// A declared shard with its source location.
#[derive(Debug)]
pub struct LocatedShard<S> {
    /// The shard in the form of the managing integration.
    pub shard: S,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// A fault of a shard.
#[derive(Debug)]
pub struct ShardFault {
    /// The key of the shard.
    pub key: ShardKey,
    /// The fault of the shard's declaration.
    pub fault: Fault,
}
