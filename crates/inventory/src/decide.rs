//! Decides how to handle one object: a pure function that implements the ownership rules.
//!
//! **Invariant:** an object that is not ours is neither written nor removed unless the data requests it
//! (`tests/suite/ownership.rs` has a row per rule).

use std::collections::BTreeSet;

use crate::compare::{ObjectComparison, compare};
use crate::difference::{DifferenceSide, Disclosure, FieldDifference};
use crate::immutable::{self, Replacement};
use crate::mark::{CALLER, INTEGRATION, Owner, VERSION};
use crate::object::{Controller, DesiredBody, LiveBody};
use crate::ownership::{Callers, Ownership};
use crate::refusal::{self, RefusalContext};

/// A desired object.
#[derive(Clone, Copy, Debug)]
pub struct PresentIntent<'a> {
    /// The desired object.
    pub body: &'a DesiredBody,
    /// The integrations, by their names in marks, from which the data moved the object to us.
    pub moved_from: &'a BTreeSet<String>,
    /// The parts of the object that may be shown.
    pub disclosure: Disclosure<'a>,
    /// Whether the object may be replaced if it is a workload.
    pub replacement: Replacement,
}

/// The handling that the data requests for one object.
#[derive(Clone, Copy, Debug)]
pub enum ObjectIntent<'a> {
    /// The object is desired.
    Present(PresentIntent<'a>),
    /// The data explicitly deletes the object.
    Delete,
    /// The data does not mention the object.
    Absent,
}

/// The previous owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviousOwner {
    /// A caller of the same integration that no longer exists.
    Caller(String),
    /// Another integration, by its name in the mark.
    Integration(String),
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The object is up to date: nothing is done.
    Keep,
    /// Create the object.
    Create,
    /// Create the object as soon as the old one, which is being removed, is gone.
    Recreate,
    /// Update the object, which is ours.
    Change {
        /// The differences.
        differences: Vec<FieldDifference>,
    },
    /// Take ownership of the object, which is unmarked and desired.
    Adopt {
        /// The differences.
        differences: Vec<FieldDifference>,
    },
    /// Take ownership of the object from a previous owner that no longer declares it.
    TakeOver {
        /// The previous owner.
        from: PreviousOwner,
        /// The differences, marks first.
        differences: Vec<FieldDifference>,
    },
    /// Remove the object and create it again, because immutable fields change.
    Replace {
        /// The immutable fields that change.
        fields: Vec<String>,
        /// The differences.
        differences: Vec<FieldDifference>,
    },
    /// Remove the object.
    Remove,
    /// Leave the object unchanged, because it is not ours; this is not an error. Holds the reason.
    Leave(String),
    /// The object is being deleted; the next run decides again. Holds the reason.
    Wait(String),
    /// Do not change the object; the error message names both owners. Other objects are still processed.
    Refuse(String),
}

/// Decides how to handle an object, given the intent of the data and the live object.
///
/// ```
/// use qontract_inventory::{Callers, DesiredBody, Disclosure, LiveBody, ObjectIntent, Owner, Verdict};
/// use qontract_inventory::{PresentIntent, Replacement, decide, to_write};
/// # use serde_json::json;
/// # let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
/// let owner = Owner::new("groups", "0.1.0", None)?;
/// let desired = DesiredBody::new(body)?;
/// let moved_from = Default::default();
/// let present = ObjectIntent::Present(PresentIntent {
///     body: &desired,
///     moved_from: &moved_from,
///     disclosure: Disclosure::Everything,
///     replacement: Replacement::WithoutPods,
/// });
/// let verdict = |intent, live: Option<&LiveBody>| decide(&owner, &Callers::Unknown, intent, live);
/// assert_eq!(verdict(present, None), Verdict::Create);
///
/// let written = LiveBody::new(to_write(&desired, None, &owner, "2026-01-01T12:00:00"));
/// assert_eq!(verdict(present, Some(&written)), Verdict::Keep);
/// assert_eq!(verdict(ObjectIntent::Absent, Some(&written)), Verdict::Remove);
///
/// // An object without our mark is never removed unless the data deletes it explicitly.
/// let unmarked = LiveBody::new(desired.body().clone());
/// assert_eq!(verdict(ObjectIntent::Absent, Some(&unmarked)), Verdict::Leave("it is unmarked".to_owned()));
/// assert_eq!(verdict(ObjectIntent::Delete, Some(&unmarked)), Verdict::Remove);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn decide(
    owner: &Owner,
    callers: &Callers,
    wanted: ObjectIntent<'_>,
    live: Option<&LiveBody>,
) -> Verdict {
    let Some(live) = live else {
        return match wanted {
            ObjectIntent::Present(_) => Verdict::Create,
            ObjectIntent::Delete | ObjectIntent::Absent => Verdict::Keep,
        };
    };
    let ownership = Ownership::of(owner, callers, live.mark());
    let part = RefusalContext { owner, live };
    match wanted {
        ObjectIntent::Present(intent) => {
            if live.is_terminating() {
                return decide_terminating(&part, ownership, intent);
            }
            let comparison = compare(intent.body, live, intent.disclosure);
            decide_desired(&part, ownership, intent, comparison)
        }
        ObjectIntent::Delete => decide_deletion(&part, ownership),
        ObjectIntent::Absent => decide_undeclared(&part, ownership),
    }
}

/// Decides about a desired object that is being removed. A workload of ours is created again in the same step, so that
/// other steps of the run do not delay its pods.
fn decide_terminating(
    part: &RefusalContext<'_>,
    ownership: Ownership<'_>,
    intent: PresentIntent<'_>,
) -> Verdict {
    let is_ours = matches!(ownership, Ownership::Ours | Ownership::Outdated | Ownership::Unclaimed);
    if is_ours
        && immutable::is_replaced_with_pods(intent.body.kind(), intent.body.group(), intent.replacement)
    {
        return Verdict::Recreate;
    }
    Verdict::Wait(part.being_removed())
}

/// Decides about a desired object.
fn decide_desired(
    part: &RefusalContext<'_>,
    ownership: Ownership<'_>,
    intent: PresentIntent<'_>,
    comparison: ObjectComparison,
) -> Verdict {
    let PresentIntent { body, moved_from, disclosure: _, replacement: _ } = intent;
    if refusal::is_managed_by_argo(part.live.body()) && !refusal::is_managed_by_argo(body.body()) {
        return Verdict::Refuse(part.belongs_to_argo());
    }
    let is_equal = comparison == ObjectComparison::Equal;
    let fields = if is_equal {
        Vec::new()
    } else {
        immutable::immutable_changes(body.group(), body.body(), part.live.body())
    };
    let mut differences = mark_differences(part);
    differences.extend(comparison.differences());
    let verdict = match ownership {
        Ownership::Ours if is_equal => return Verdict::Keep,
        Ownership::Ours | Ownership::Outdated | Ownership::Unclaimed => Verdict::Change { differences },
        Ownership::Unmarked => match part.live.controller() {
            Some(controller) => return Verdict::Refuse(part.controlled_by(controller)),
            None if fields.is_empty() => return Verdict::Adopt { differences },
            None => return Verdict::Refuse(part.unmarked_immutable_fields(&fields)),
        },
        Ownership::Caller(caller, status) => match part.belongs_to_caller(caller, status) {
            Some(text) => return Verdict::Refuse(text),
            None => Verdict::TakeOver { from: PreviousOwner::Caller(caller.to_owned()), differences },
        },
        Ownership::Integration(name) if moved_from.contains(name) => {
            Verdict::TakeOver { from: PreviousOwner::Integration(name.to_owned()), differences }
        }
        Ownership::Integration(name) => return Verdict::Refuse(part.belongs_to_integration_message(name)),
    };
    check_immutable(part, intent, fields, verdict)
}

/// If the change would modify immutable fields, replaces the object instead, or refuses the change.
fn check_immutable(
    part: &RefusalContext<'_>,
    intent: PresentIntent<'_>,
    fields: Vec<String>,
    verdict: Verdict,
) -> Verdict {
    match verdict {
        Verdict::Change { differences } | Verdict::TakeOver { differences, .. } if !fields.is_empty() => {
            if immutable::is_replaceable(intent.body.kind(), intent.body.group(), intent.replacement) {
                Verdict::Replace { fields, differences }
            } else {
                Verdict::Refuse(part.immutable_fields(&fields))
            }
        }
        verdict => verdict,
    }
}

/// Decides about an object that the data explicitly deletes.
fn decide_deletion(part: &RefusalContext<'_>, ownership: Ownership<'_>) -> Verdict {
    if part.live.is_terminating() {
        return Verdict::Wait(part.being_removed());
    }
    if let Some(controller) = part.live.controller() {
        return Verdict::Refuse(part.controlled_by(controller));
    }
    match ownership {
        Ownership::Ours => Verdict::Remove,
        _ if refusal::is_managed_by_argo(part.live.body()) => Verdict::Refuse(part.belongs_to_argo()),
        Ownership::Outdated | Ownership::Unclaimed | Ownership::Unmarked => Verdict::Remove,
        Ownership::Caller(caller, status) => {
            part.belongs_to_caller(caller, status).map_or(Verdict::Remove, Verdict::Refuse)
        }
        Ownership::Integration(name) => Verdict::Refuse(part.belongs_to_integration_message(name)),
    }
}

/// Decides about an object that the data does not mention.
fn decide_undeclared(part: &RefusalContext<'_>, ownership: Ownership<'_>) -> Verdict {
    let why = match (ownership, part.live.controller()) {
        _ if refusal::is_managed_by_argo(part.live.body()) => "it belongs to Argo CD".to_owned(),
        // The object is left unchanged, because controllers copy our marks to the objects that they create.
        (_, Some(Controller { kind, name })) => format!("it is controlled by {kind} `{name}`"),
        (Ownership::Ours, None) if part.live.is_terminating() => return Verdict::Wait(part.being_removed()),
        (Ownership::Ours, None) => return Verdict::Remove,
        (Ownership::Outdated, None) => format!("it was written by version {}", part.version()),
        (Ownership::Unclaimed, None) => "it has no caller".to_owned(),
        (Ownership::Caller(caller, _), None) => format!("it belongs to caller `{caller}`"),
        (Ownership::Integration(name), None) => format!("it belongs to `{name}`"),
        (Ownership::Unmarked, None) => "it is unmarked".to_owned(),
    };
    Verdict::Leave(why)
}

/// The marks of the live object that name another owner, as differences; empty for an unmarked object.
fn mark_differences(part: &RefusalContext<'_>) -> Vec<FieldDifference> {
    let Some(mark) = part.live.mark() else { return Vec::new() };
    let owner = part.owner;
    let line = |path: &str, before: Option<&str>, after: Option<&str>| FieldDifference {
        path: path.to_owned(),
        before: DifferenceSide::text(before),
        after: DifferenceSide::text(after),
    };
    let mut lines = Vec::new();
    if mark.integration != owner.integration() {
        lines.push(line(INTEGRATION, Some(&mark.integration), Some(owner.integration())));
    }
    if !mark.has_major_of(owner) {
        lines.push(line(VERSION, mark.version.as_deref(), Some(owner.version())));
    }
    if mark.caller.as_deref() != owner.caller() {
        lines.push(line(CALLER, mark.caller.as_deref(), owner.caller()));
    }
    lines
}
