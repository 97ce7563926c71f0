//! Objects that a plan omits because they were not planned or are no longer managed. Such objects are reported, so
//! that a plan without changes and without such objects always means that the change has no effect.

use crate::field_diff::FieldDiff;
use crate::key::ShardKey;
use crate::source_location::SourceLocation;

/// The text that describes what happens to an item that was not planned.
pub const AFTER_MERGE: &str = "it is planned and applied after the merge";

/// An object, a scope or a shard that was not planned, although the change may affect it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnplannedItem {
    /// A description of the item, the reason why it was not planned, and what happens after the merge.
    pub text: String,
    /// The known source locations.
    pub places: Vec<SourceLocation>,
    /// The differences between the declared states of base and head. These differences were not compared with the
    /// target.
    pub declared: Vec<DeclaredDifference>,
}

impl UnplannedItem {
    /// Creates an item without source locations.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), places: Vec::new(), declared: Vec::new() }
    }
}

/// A field of a declared state that differs between base and head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredDifference {
    /// The field, with truncated values.
    pub field: FieldDiff,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// What happens to objects that an integration no longer manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFate {
    /// The objects stay in the target.
    Stay,
    /// The objects are removed together with their target, such as a namespace with `delete: true`.
    RemovedWithTarget,
}

/// Objects of one shard that base manages and head does not manage, although head does not remove them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedObjects {
    /// The key of the shard.
    pub shard: ShardKey,
    /// A description of why the objects are no longer managed, and of what happens to them.
    pub text: String,
    /// Number of objects that base declares; `None` if it is not known.
    pub count: Option<usize>,
    /// Whether the objects stay in the target or are removed together with it.
    pub fate: ObjectFate,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// Numbers of shards that an integration manages, and of objects that are declared in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredCount {
    /// Number of shards for which the data does not disable the integration.
    pub shards: usize,
    /// Number of objects; `None` if it is not known.
    pub objects: Option<usize>,
}

/// A part of a shard that base manages and head does not manage, as an integration reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedPart {
    /// The kind of the objects; `None` for the whole shard.
    pub kind: Option<String>,
    /// Number of objects that base declares; `None` if it is not known.
    pub count: Option<usize>,
    /// The source location in head, if the integration provides it.
    pub place: Option<SourceLocation>,
}

impl ReleasedPart {
    /// A whole shard, with an unknown number of objects.
    pub fn whole() -> Self {
        Self { kind: None, count: None, place: None }
    }
}
