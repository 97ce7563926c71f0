//! Objects that a plan omits, because they were not planned or are no longer managed. Both are reported, so
//! that a plan without changes always means a change without effect.

use std::sync::Arc;

use crate::data::{BundleReader, Data, QueryPolicy};
use crate::field_diff::FieldDiff;
use crate::integration::Integration;
use crate::key::ShardKey;
use crate::options::Options;
use crate::source_location::SourceLocation;

/// The kind of an item that was not planned.
pub const AFTER_MERGE: &str = "it is planned and applied after the merge";

/// Something that was not planned, although the change may affect it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnplannedItem {
    /// A description of what was not planned, the reason, and what happens after the merge.
    pub text: String,
    /// The source locations, as far as they are known.
    pub places: Vec<SourceLocation>,
    /// The differences between the declared states of base and head. They were not compared with the target.
    pub declared: Vec<DeclaredDifference>,
}

impl UnplannedItem {
    /// An item without source locations.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), places: Vec::new(), declared: Vec::new() }
    }
}

/// A field of a declared state that differs between base and head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredDifference {
    /// The field, truncated.
    pub field: FieldDiff,
    /// The source location.
    pub place: Option<SourceLocation>,
}

/// The fate of objects that an integration no longer manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFate {
    /// They stay in the target.
    Stay,
    /// They are removed together with their target, such as a namespace with `delete: true`.
    RemovedWithTarget,
}

/// Objects of one shard that base manages and head does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedObjects {
    /// The shard.
    pub shard: ShardKey,
    /// A description of why they are no longer managed, and of what happens to them.
    pub text: String,
    /// Number of objects that base declares; `None` if it is not known.
    pub count: Option<usize>,
    /// Whether they stay or are removed.
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

/// Counts what an integration manages; `None` if it has no declared state.
pub fn count_declared(integration: &Integration, source: &Arc<dyn BundleReader>) -> Option<DeclaredCount> {
    let data = Data::new(Arc::clone(source), QueryPolicy::of(integration.meta()));
    let declared = integration.declare(&data, &Options::default()).ok().flatten()?;
    let managed = declared.keys().into_iter().filter(|key| declared.disabled(key).is_none());
    let mut count = DeclaredCount { shards: 0, objects: Some(0) };
    for key in managed {
        count.shards += 1;
        for part in integration.released(&*declared, None, key) {
            count.objects = count.objects.zip(part.count).map(|(all, more)| all + more);
        }
    }
    Some(count)
}

/// A part of a shard of base that head does not manage, as an integration reports it.
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
    /// A whole shard with an unknown number of objects.
    pub fn whole() -> Self {
        Self { kind: None, count: None, place: None }
    }
}
