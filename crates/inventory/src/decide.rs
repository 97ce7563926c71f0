//! Decides what happens to one object: a pure function that implements the ownership rules.
//!
//! **Invariant:** an object that is not ours is neither written nor removed unless the data says so
//! (`tests/ownership.rs`, a row per rule).

use std::collections::BTreeSet;

use crate::compare::{Comparison, compare};
use crate::difference::{Difference, Disclosure, Side};
use crate::immutable;
use crate::mark::{CALLER, INTEGRATION, Owner, VERSION};
use crate::object::{Controller, Desired, Live};
use crate::refusal::{self, Part};
use crate::standing::{Callers, Standing};

/// The intent of the data for one object.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// The object is desired.
    Present {
        /// The desired object.
        body: &'a Desired,
        /// The integrations, by their names in marks, from which the data moved the object to us.
        moved_from: &'a BTreeSet<String>,
        /// Which parts of it may be shown.
        disclosure: Disclosure<'a>,
    },
    /// The data explicitly deletes the object.
    Delete,
    /// The data does not mention the object.
    Absent,
}

/// The previous owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// A caller of the same integration that no longer exists.
    Caller(String),
    /// Another integration, by its name in the mark.
    Integration(String),
}

/// The decision about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is up to date: nothing happens.
    Keep,
    /// It is created.
    Create,
    /// It is ours and is updated.
    Change {
        /// The differences.
        differences: Vec<Difference>,
    },
    /// It is unmarked and desired: it becomes ours.
    Adopt {
        /// The differences.
        differences: Vec<Difference>,
    },
    /// Another owner gave it up, and it becomes ours.
    TakeOver {
        /// The previous owner.
        from: Former,
        /// The differences, marks first.
        differences: Vec<Difference>,
    },
    /// It is removed and created again, because these fields are immutable.
    Replace {
        /// The fields.
        fields: Vec<String>,
        /// The differences.
        differences: Vec<Difference>,
    },
    /// It is removed.
    Remove,
    /// It is not ours, which is not an error.
    Leave(String),
    /// It is being removed; the next run decides again.
    Wait(String),
    /// Nothing happens, and the error names both owners. Other objects are processed.
    Refuse(String),
}

/// Decides what happens to an object, given the intent of the data and the live object.
pub fn decide(owner: &Owner, callers: &Callers, wanted: Wanted<'_>, live: Option<&Live>) -> Verdict {
    let Some(live) = live else {
        return match wanted {
            Wanted::Present { .. } => Verdict::Create,
            Wanted::Delete | Wanted::Absent => Verdict::Keep,
        };
    };
    let standing = Standing::of(owner, callers, live.mark());
    let part = Part { owner, live };
    match wanted {
        Wanted::Present { body, moved_from, disclosure } => {
            if live.is_going() {
                return Verdict::Wait(part.going());
            }
            let comparison = compare(body, live, disclosure);
            present(&part, standing, body, moved_from, comparison)
        }
        Wanted::Delete => named(&part, standing),
        Wanted::Absent => unwanted(&part, standing),
    }
}

/// Decides about a desired object.
fn present(
    part: &Part<'_>,
    standing: Standing<'_>,
    body: &Desired,
    moved_from: &BTreeSet<String>,
    comparison: Comparison,
) -> Verdict {
    if refusal::is_of_argo(part.live.body()) && !refusal::is_of_argo(body.body()) {
        return Verdict::Refuse(part.of_argo());
    }
    let is_equal = comparison == Comparison::Equal;
    let fields =
        if is_equal { Vec::new() } else { immutable::changed(body.group(), body.body(), part.live.body()) };
    let mut differences = marks(part);
    differences.extend(comparison.differences());
    let verdict = match standing {
        Standing::Ours if is_equal => return Verdict::Keep,
        Standing::Ours | Standing::Outdated | Standing::Unclaimed => Verdict::Change { differences },
        Standing::Unmarked => match part.live.controller() {
            Some(controller) => return Verdict::Refuse(part.of_controller(controller)),
            None if fields.is_empty() => return Verdict::Adopt { differences },
            None => return Verdict::Refuse(part.not_replaced(&fields)),
        },
        Standing::Caller(caller, life) => match part.of_caller(caller, life) {
            Some(text) => return Verdict::Refuse(text),
            None => Verdict::TakeOver { from: Former::Caller(caller.to_owned()), differences },
        },
        Standing::Integration(name) if moved_from.contains(name) => {
            Verdict::TakeOver { from: Former::Integration(name.to_owned()), differences }
        }
        Standing::Integration(name) => return Verdict::Refuse(part.of_integration(name)),
    };
    in_place(part, body, fields, verdict)
}

/// Replaces or refuses the change if it would modify immutable fields.
fn in_place(part: &Part<'_>, body: &Desired, fields: Vec<String>, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Change { differences } | Verdict::TakeOver { differences, .. } if !fields.is_empty() => {
            if immutable::is_replaceable(body.kind(), body.group()) {
                Verdict::Replace { fields, differences }
            } else {
                Verdict::Refuse(part.not_in_place(&fields))
            }
        }
        verdict => verdict,
    }
}

/// Decides about an object that the data explicitly deletes.
fn named(part: &Part<'_>, standing: Standing<'_>) -> Verdict {
    if part.live.is_going() {
        return Verdict::Wait(part.going());
    }
    if let Some(controller) = part.live.controller() {
        return Verdict::Refuse(part.of_controller(controller));
    }
    match standing {
        Standing::Ours => Verdict::Remove,
        _ if refusal::is_of_argo(part.live.body()) => Verdict::Refuse(part.of_argo()),
        Standing::Outdated | Standing::Unclaimed | Standing::Unmarked => Verdict::Remove,
        Standing::Caller(caller, life) => {
            part.of_caller(caller, life).map_or(Verdict::Remove, Verdict::Refuse)
        }
        Standing::Integration(name) => Verdict::Refuse(part.of_integration(name)),
    }
}

/// Decides about an object that the data does not mention.
fn unwanted(part: &Part<'_>, standing: Standing<'_>) -> Verdict {
    let why = match (standing, part.live.controller()) {
        _ if refusal::is_of_argo(part.live.body()) => "it belongs to Argo CD".to_owned(),
        // Controllers copy our marks to the objects that they create.
        (_, Some(Controller { kind, name })) => format!("it is controlled by {kind} `{name}`"),
        (Standing::Ours, None) if part.live.is_going() => return Verdict::Wait(part.going()),
        (Standing::Ours, None) => return Verdict::Remove,
        (Standing::Outdated, None) => format!("it was written by version {}", part.version()),
        (Standing::Unclaimed, None) => "it has no caller".to_owned(),
        (Standing::Caller(caller, _), None) => format!("it belongs to caller `{caller}`"),
        (Standing::Integration(name), None) => format!("it belongs to `{name}`"),
        (Standing::Unmarked, None) => "it is unmarked".to_owned(),
    };
    Verdict::Leave(why)
}

/// The marks that name another owner; none for an unmarked object.
fn marks(part: &Part<'_>) -> Vec<Difference> {
    let Some(mark) = part.live.mark() else { return Vec::new() };
    let owner = part.owner;
    let line = |path: &str, before: Option<&str>, after: Option<&str>| Difference {
        path: path.to_owned(),
        before: Side::text(before),
        after: Side::text(after),
    };
    let mut lines = Vec::new();
    if mark.integration != owner.integration() {
        lines.push(line(INTEGRATION, Some(&mark.integration), Some(owner.integration())));
    }
    if !mark.is_of_major(owner) {
        lines.push(line(VERSION, mark.version.as_deref(), Some(owner.version())));
    }
    if mark.caller.as_deref() != owner.caller() {
        lines.push(line(CALLER, mark.caller.as_deref(), owner.caller()));
    }
    lines
}
