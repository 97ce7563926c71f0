//! Finds the items that the plan of a change omits: the declared differences of skipped shards, and objects
//! that are no longer managed. Pure.

use qontract_diagnostics::pluralize;

use crate::field_diff::{DiffEntry, FieldChange, FieldDiff};
use crate::integration::Integration;
use crate::key::ShardKey;
use crate::state::{Difference, DisabledReason};
use crate::truncation;
use crate::type_erasure::AnyDeclaredState;
use crate::unplanned::{DeclaredDifference, ObjectFate, ReleasedObjects, ReleasedPart, UnplannedItem};

/// Creates the item for a shard that is skipped because its address is not trusted.
pub fn untrusted_shard(
    key: &ShardKey,
    base: Option<&dyn AnyDeclaredState>,
    head: &dyn AnyDeclaredState,
    differences: &[Difference],
) -> UnplannedItem {
    let is_new = base.is_none_or(|base| !base.has(key));
    let what = if is_new { "it is new in this change" } else { "its address is new in this change" };
    let text = format!(
        "`{key}`: {what} and is not contacted before it is merged; after the merge the shard is planned and applied there"
    );
    let declared = base.map(|base| declared_differences(key, base, head, differences)).unwrap_or_default();
    UnplannedItem { text, places: head.place(key).into_iter().collect(), declared }
}

/// The fields that differ between base and head, with their values.
fn declared_differences(
    key: &ShardKey,
    base: &dyn AnyDeclaredState,
    head: &dyn AnyDeclaredState,
    differences: &[Difference],
) -> Vec<DeclaredDifference> {
    let (Some(before), Some(after)) = (base.state_json(key), head.state_json(key)) else { return Vec::new() };
    let differences = differences.iter().filter(|difference| !difference.path.is_empty());
    differences
        .flat_map(|Difference { path, place }| {
            let (before, after) = (before.pointer(path).cloned(), after.pointer(path).cloned());
            let change = match (&before, &after) {
                (None, _) => FieldChange::Added,
                (_, None) => FieldChange::Removed,
                (Some(_), Some(_)) => FieldChange::Changed,
            };
            let field = FieldDiff { change, path: path.clone(), before, after };
            truncation::truncate_entries(vec![field.into()]).into_iter().filter_map(
                move |entry| match entry {
                    DiffEntry::Field(field) => Some(DeclaredDifference { field, place: place.clone() }),
                    DiffEntry::Note(_) => None,
                },
            )
        })
        .collect()
}

/// The objects in these shards that base manages and head does not manage, although head does not remove them.
///
/// Shards that only base declares are not included, because their objects are removed.
pub fn released<'k>(
    integration: &Integration,
    base: &dyn AnyDeclaredState,
    head: &dyn AnyDeclaredState,
    keys: impl Iterator<Item = &'k ShardKey>,
) -> Vec<ReleasedObjects> {
    let mut released = Vec::new();
    for key in keys.filter(|key| base.has(key) && base.disabled(key).is_none()) {
        if let Some(disabled) = head.disabled(key) {
            let parts = integration.released(base, None, key);
            released.extend(parts.into_iter().map(|part| of_disabled_shard(key, disabled, &part)));
        } else if is_moved(base, head, key) {
            let parts = integration.released(base, None, key);
            released.extend(parts.into_iter().map(|part| of_moved_shard(key, head, &part)));
        } else if head.has(key) {
            let parts = integration.released(base, Some(head), key);
            released.extend(parts.into_iter().map(|part| of_running_shard(key, head, part)));
        }
    }
    released.retain(|objects| objects.count != Some(0));
    released
}

fn of_disabled_shard(key: &ShardKey, disabled: &DisabledReason, part: &ReleasedPart) -> ReleasedObjects {
    let DisabledReason { by, place, removes_target } = disabled;
    let objects = objects_text(part);
    let (fate, text) = if *removes_target {
        (ObjectFate::RemovedWithTarget, format!("`{key}`: {objects}: {by}"))
    } else {
        let end = plural_verb(part, "no longer managed, and stay in the target");
        (ObjectFate::Stay, format!("`{key}`: disabled for {by}: {objects} {end}"))
    };
    let (shard, count, place) = (key.clone(), part.count, part.place.clone().or_else(|| place.clone()));
    ReleasedObjects { shard, text, count, fate, place }
}

/// Whether the address of a shard's target changes and no other shard has the old address.
fn is_moved(base: &dyn AnyDeclaredState, head: &dyn AnyDeclaredState, key: &ShardKey) -> bool {
    let (Some(before), Some(after)) = (base.target_key(key), head.target_key(key)) else { return false };
    before != after && head.shard_on_target(before).is_none()
}

fn of_moved_shard(key: &ShardKey, head: &dyn AnyDeclaredState, part: &ReleasedPart) -> ReleasedObjects {
    let objects = objects_text(part);
    let end = plural_verb(part, "no longer managed, and stay at the old address");
    let text = format!(
        "`{key}`: the address of the target changes: {objects} {end}, unless the new address leads to the same target"
    );
    let (shard, count, place) = (key.clone(), part.count, head.place(key));
    ReleasedObjects { shard, text, count, fate: ObjectFate::Stay, place }
}

fn of_running_shard(key: &ShardKey, head: &dyn AnyDeclaredState, part: ReleasedPart) -> ReleasedObjects {
    let objects = objects_text(&part);
    let end = plural_verb(&part, "no longer managed, and stay in the target");
    let place = part.place.or_else(|| head.place(key));
    let text = match &part.kind {
        Some(kind) => format!("`{key}`: {kind} is no longer a managed kind: {objects} {end}"),
        None => format!("`{key}`: {objects} {end}"),
    };
    ReleasedObjects { shard: key.clone(), text, count: part.count, fate: ObjectFate::Stay, place }
}

fn objects_text(part: &ReleasedPart) -> String {
    match part.count {
        Some(count) => pluralize(count, "declared object"),
        None => "what it declared there".to_owned(),
    }
}

/// The end of a sentence about the objects, with the verb in singular or plural.
fn plural_verb(part: &ReleasedPart, end: &str) -> String {
    if part.count.is_some_and(|count| count != 1) {
        format!("are {end}")
    } else {
        format!("is {}", end.replace("and stay", "and stays"))
    }
}
