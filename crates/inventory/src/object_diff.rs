//! What a write changes inside an object: every field, list item and key that is removed, changed or added.
//!
//! [`compare`](crate::compare) decides whether an object is written, and tolerates what only the live object has. What is shown is what the write
//! does: the live object against the object after the write, as the client previews it. **Invariant:** what is shown as removed is what
//! is gone after the write, but for what the API server fills in again by default (`crates/objects/tests/whole_diff.rs`).

mod defaults;
mod walk;

use serde_json::Value;

use crate::difference::{Difference, Disclosure, Show, Side};
use crate::mark::{RECYCLE_PENDING, SENSITIVE, annotation};
use crate::normal;
use crate::object::{Desired, Live};
use crate::path::{PathCursor, says_nothing};

use walk::FieldWalk;

/// A write onto a live object, as the client previews it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectWrite<'a> {
    /// What is declared.
    pub desired: &'a Desired,
    /// The object before the write.
    pub live: &'a Live,
    /// The object after the write.
    pub after: &'a Value,
    /// The object without everything that only we own.
    pub without_ours: &'a Value,
    /// Who wrote the values of the live object.
    pub writer: LiveWriter<'a>,
}

/// Who wrote the values of a live object. Other tools do not mark what they make of secrets, so their values are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveWriter<'a> {
    /// We did.
    Us,
    /// We did, but the write also removes fields that others own: the values of those are not shown.
    UsAndOthers {
        /// The live object without everything that only we own.
        others: &'a Value,
    },
    /// Another tool, from which we take the object over: no value of the live object is shown.
    Others,
}

/// What a write changes inside an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDiff {
    /// What differs: removed fields first.
    pub differences: Vec<Difference>,
    /// What the object loses.
    pub loss: KeyLoss,
}

/// How much of what we own an object loses. A key is a leaf: a scalar, wherever it is, or an empty item of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyLoss {
    /// Keys that are gone after the write.
    pub lost: usize,
    /// Keys before the write that only we own, or that we declare.
    pub of: usize,
    /// Lists that have no items any more.
    pub lists: usize,
}

/// What a write changes, as far as it may be shown.
pub fn diff(write: &ObjectWrite<'_>, disclosure: Disclosure<'_>) -> ObjectDiff {
    let (before, after) = (normalized(write.live.body()), normalized(write.after));
    let was_sensitive = annotation(write.live.body(), SENSITIVE) == Some("true");
    let visible = match disclosure {
        Disclosure::PathsOf(declared) => Some(normalized(declared)),
        // The names of fields that go may come from a secret, like their values.
        Disclosure::Everything if was_sensitive => Some(normalized(write.desired.body())),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let is_open = !was_sensitive && is_open(write.desired, disclosure);
    let mut walk =
        FieldWalk::new(write.desired.kind(), write.desired.group(), shown(is_open), visible.as_ref());
    walk.show_before = shown(is_open && write.writer != LiveWriter::Others);
    let others = match write.writer {
        LiveWriter::UsAndOthers { others } => Some(normalized(others)),
        LiveWriter::Us | LiveWriter::Others => None,
    };
    walk.owned_by_others = PathCursor::new(others.as_ref());
    walk.value(Some(&before), Some(&after));
    let owned = leaves(&before).saturating_sub(leaves(&normalized(write.without_ours)));
    // A list that is one value loses items even where another manager owns it.
    let declared = leaves(&content(write.desired)).saturating_sub(walk.added);
    let of = owned.max(walk.lost + declared);
    let loss = KeyLoss { lost: walk.lost, of, lists: walk.lists };
    let mut differences = walk.differences();
    if matches!(disclosure, Disclosure::Nothing) && !differences.is_empty() {
        differences = vec![secret_content()];
    }
    ObjectDiff { differences, loss }
}

/// All fields of an object that is created, as far as they may be shown.
pub fn body(desired: &Desired, disclosure: Disclosure<'_>) -> Vec<Difference> {
    if matches!(disclosure, Disclosure::Nothing) {
        return vec![secret_content()];
    }
    let visible = match disclosure {
        Disclosure::PathsOf(declared) => Some(normalized(declared)),
        Disclosure::Everything | Disclosure::Paths | Disclosure::Nothing => None,
    };
    let show = shown(is_open(desired, disclosure));
    let mut walk = FieldWalk::new(desired.kind(), desired.group(), show, visible.as_ref());
    walk.expands_items = true;
    walk.value(None, Some(&content(desired)));
    walk.differences()
}

/// What is declared, without what says which object it is.
fn content(desired: &Desired) -> Value {
    let mut body = normalized(desired.body());
    for pointer in ["/kind", "/metadata/name"] {
        if let Some(value) = body.pointer_mut(pointer) {
            *value = Value::Null;
        }
    }
    body
}

fn is_open(desired: &Desired, disclosure: Disclosure<'_>) -> bool {
    matches!(disclosure, Disclosure::Everything) && desired.kind() != "Secret"
}

fn shown(is_open: bool) -> Show {
    if is_open { Show::Values } else { Show::Paths }
}

fn secret_content() -> Difference {
    Difference { path: "object".to_owned(), before: Side::Hidden, after: Side::SecretContent }
}

/// An object as it is compared, on either side.
fn normalized(object: &Value) -> Value {
    let mut object = normal::of_desired(object);
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| name != SENSITIVE && name != RECYCLE_PENDING);
    }
    object
}

/// How many keys a value has.
fn leaves(value: &Value) -> usize {
    match value {
        value if says_nothing(value) => 0,
        Value::Object(map) => map.values().map(leaves).sum(),
        Value::Array(items) => items.iter().map(item_leaves).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// How many keys an item of a list has: one that is empty is something.
fn item_leaves(item: &Value) -> usize {
    leaves(item).max(1)
}

#[cfg(test)]
mod tests;
