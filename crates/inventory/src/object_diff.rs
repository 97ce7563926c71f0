//! The effect of a write on an object: every field, list item and key that is removed, changed or added.
//!
//! [`compare`](crate::compare) decides whether an object is written, and tolerates fields that only the live
//! object has. The diff shows the effect of the write: it compares the live object with the object after the
//! write, as the client previews it. **Invariant:** exactly the fields shown as removed do not exist after
//! the write, except defaults that the API server sets again (`crates/objects/tests/suite/whole_diff.rs`).

mod defaults;
mod walk;

use serde_json::Value;

use crate::canonical::remove;
use crate::difference::{DifferenceSide, Disclosure, FieldDifference, Visibility};
use crate::mark::{RECYCLE_PENDING, SENSITIVE, annotation};
use crate::normalize;
use crate::object::{DesiredBody, LiveBody};
use crate::path::{PathCursor, is_empty_value};

use walk::FieldWalk;

/// A write to a live object, as the client previews it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectWrite<'a> {
    /// The declared object.
    pub desired: &'a DesiredBody,
    /// The object before the write.
    pub live: &'a LiveBody,
    /// The object after the write.
    pub after: &'a Value,
    /// The part of the live object that only we own, or that is declared. The keys that the object can lose
    /// are in this part.
    pub ours: &'a Value,
    /// The declared object, as it is written.
    pub declared: &'a Value,
    /// The writer of the live object's values.
    pub writer: LiveWriter<'a>,
}

/// The writer of a live object's values. Other tools do not mark objects that contain secrets, so the values
/// that they wrote are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveWriter<'a> {
    /// Our integration.
    Us,
    /// Our integration, but the write also removes fields of other managers, whose values are not shown.
    UsAndOthers {
        /// The live object without the fields that only we own.
        others: &'a Value,
    },
    /// Another tool, from which we take over the object: no live value is shown.
    Others,
}

/// The effect of a write on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDiff {
    /// The differences, removed fields first.
    pub differences: Vec<FieldDifference>,
    /// The keys that the object loses.
    pub loss: KeyLoss,
}

/// Counts the keys that an object loses, of those that only we own or that we declare. A key is a leaf: a
/// scalar, or an empty map or list, at any depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyLoss {
    /// Number of keys that the write removes.
    pub lost: usize,
    /// Number of keys before the write that only we own, or that we declare.
    pub of: usize,
    /// Number of lists that lose all their items.
    pub lists: usize,
}

/// Computes the effect of a write on an object, limited to the parts that may be shown.
pub fn diff(write: &ObjectWrite<'_>, disclosure: Disclosure<'_>) -> ObjectDiff {
    let (before, after) = (normalized(write.live.body()), normalized(write.after));
    let was_sensitive = annotation(write.live.body(), SENSITIVE) == Some("true");
    let visible = match disclosure {
        Disclosure::PathsOf(declared) => Some(normalized(declared)),
        // The names of removed fields may come from a secret, like their values.
        Disclosure::Everything if was_sensitive => Some(normalized(write.desired.body())),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let is_open = !was_sensitive && is_open(write.desired, disclosure);
    let mut walk =
        FieldWalk::new(write.desired.kind(), write.desired.group(), visibility(is_open), visible.as_ref());
    walk.show_before = visibility(is_open && write.writer != LiveWriter::Others);
    let others = match write.writer {
        LiveWriter::UsAndOthers { others } => Some(normalized(others)),
        LiveWriter::Us | LiveWriter::Others => None,
    };
    walk.owned_by_others = PathCursor::new(others.as_ref());
    walk.value(Some(&before), Some(&after));
    let loss = key_loss(write);
    let mut differences = walk.differences();
    if matches!(disclosure, Disclosure::Nothing) && !differences.is_empty() {
        differences = vec![secret_content()];
    }
    ObjectDiff { differences, loss }
}

/// The keys that the object loses. Defaults that are removed together with a field are not ours, so they do not
/// count.
fn key_loss(write: &ObjectWrite<'_>) -> KeyLoss {
    let [ours, declared] = [write.ours, write.declared].map(without_identity);
    let mut walk = FieldWalk::new(write.desired.kind(), write.desired.group(), Visibility::Paths, None);
    walk.value(Some(&ours), Some(&declared));
    KeyLoss { lost: walk.lost, of: leaves(&ours), lists: walk.lists }
}

/// All fields of a created object, limited to the parts that may be shown.
pub fn body_differences(desired: &DesiredBody, disclosure: Disclosure<'_>) -> Vec<FieldDifference> {
    if matches!(disclosure, Disclosure::Nothing) {
        return vec![secret_content()];
    }
    let visible = match disclosure {
        Disclosure::PathsOf(declared) => Some(normalized(declared)),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let show = visibility(is_open(desired, disclosure));
    let mut walk = FieldWalk::new(desired.kind(), desired.group(), show, visible.as_ref());
    walk.expands_items = true;
    walk.value(None, Some(&without_identity(desired.body())));
    walk.differences()
}

/// The normalized object without the fields that identify it.
fn without_identity(object: &Value) -> Value {
    let mut body = normalized(object);
    for pointer in ["/kind", "/metadata/name"] {
        if let Some(value) = body.pointer_mut(pointer) {
            *value = Value::Null;
        }
    }
    body
}

fn is_open(desired: &DesiredBody, disclosure: Disclosure<'_>) -> bool {
    matches!(disclosure, Disclosure::Everything) && desired.kind() != "Secret"
}

fn visibility(is_open: bool) -> Visibility {
    if is_open { Visibility::Values } else { Visibility::Paths }
}

fn secret_content() -> FieldDifference {
    FieldDifference {
        path: "object".to_owned(),
        before: DifferenceSide::Hidden,
        after: DifferenceSide::SecretContent,
    }
}

/// Normalizes an object on either side of the diff.
fn normalized(object: &Value) -> Value {
    let mut object = normalize::normalize_desired(object);
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| name != SENSITIVE && name != RECYCLE_PENDING);
    }
    // Maps that had only marks are empty.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, value| {
            !matches!(name.as_str(), "annotations" | "labels") || !is_empty_value(value)
        });
        if metadata.is_empty() {
            remove(&mut object, "metadata");
        }
    }
    object
}

/// Number of keys of a value. An empty map or list is a key.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(map) if !map.is_empty() => map.values().map(leaves).sum(),
        Value::Array(items) if !items.is_empty() => items.iter().map(item_leaves).sum(),
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => 1,
    }
}

/// Number of keys of a list item; an empty item counts as one.
fn item_leaves(item: &Value) -> usize {
    leaves(item).max(1)
}

#[cfg(test)]
mod tests;
