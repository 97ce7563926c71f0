//! What happens to one object: one pure function, and the rules of ownership in it.
//!
//! **Invariant:** what is not ours is not written or removed, unless the data says so (`tests/ownership.rs`, a row per rule).

use std::collections::BTreeSet;

use crate::compare::{Comparison, compare};
use crate::difference::{Difference, Disclosure, Side};
use crate::immutable;
use crate::mark::{CALLER, INTEGRATION, Owner, VERSION};
use crate::object::{Desired, Live};
use crate::refusal::{self, Part};
use crate::standing::{Callers, Standing};

/// What the data says about one object.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// It should be there.
    Present {
        /// As it should be.
        body: &'a Desired,
        /// The integrations, by their names in marks, from which the data moved it to us.
        moved_from: &'a BTreeSet<String>,
        /// What of it may be shown.
        disclosure: Disclosure<'a>,
    },
    /// It should go: the data says so in as many words.
    Delete,
    /// Nothing. It was found.
    Absent,
}

/// Who had an object before us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// A caller of the same integration that is no more.
    Caller(String),
    /// Another integration, by its name in the mark.
    Integration(String),
}

/// What happens to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is as it should be.
    Keep,
    /// It is made.
    Create,
    /// It is ours and is written anew.
    Change {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Nobody marked it, and we want it: from now on it is ours.
    Adopt {
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Another integration owned it, and gave it away.
    TakeOver {
        /// Whose.
        from: Former,
        /// What differs, the marks first.
        differences: Vec<Difference>,
    },
    /// It is removed and made again, because these fields cannot change in place.
    Replace {
        /// The fields.
        fields: Vec<String>,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// It is removed.
    Remove,
    /// It is not ours, and nothing is wrong.
    Leave(String),
    /// It is being removed: what comes next is decided when it is gone.
    Wait(String),
    /// Nothing is done, and it is an error that names both sides. The rest goes on.
    Refuse(String),
}

/// What happens to an object of which the data says `wanted` and which is `live`.
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

/// It should be there.
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

/// The verdict, unless fields stand in its way that cannot change in place.
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

/// It should go, and the data names it.
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

/// The data does not mention it.
fn unwanted(part: &Part<'_>, standing: Standing<'_>) -> Verdict {
    let why = match (standing, part.live.controller()) {
        _ if refusal::is_of_argo(part.live.body()) => "it belongs to Argo CD".to_owned(),
        // a controller copies our marks to what it makes
        (_, Some((kind, name))) => format!("it is kept by {kind} `{name}`"),
        (Standing::Ours, None) if part.live.is_going() => return Verdict::Wait(part.going()),
        (Standing::Ours, None) => return Verdict::Remove,
        (Standing::Outdated, None) => format!("it was written by version {}", part.version()),
        (Standing::Unclaimed, None) => "it does not tell its caller".to_owned(),
        (Standing::Caller(caller, _), None) => format!("it belongs to caller `{caller}`"),
        (Standing::Integration(name), None) => format!("it belongs to `{name}`"),
        (Standing::Unmarked, None) => "nobody marked it".to_owned(),
    };
    Verdict::Leave(why)
}

/// The marks that name another owner. An object without marks has none.
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
