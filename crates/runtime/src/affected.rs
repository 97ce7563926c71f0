//! Which integrations and shards a change can affect, by which rule, and because of which file.
//!
//! **Invariant:** sound. What is said to be unaffected has the same declared state in base and head. The rules go from
//! cheap to exact, and each may only say "not affected": the static footprint of the declared queries, then their
//! answers, then the declared states per shard. Of a list that is worked through one by one, only what is declared of its differing
//! elements is compared.

mod causes;
mod parts;

use std::sync::Arc;

use qontract_bundle::diff::renames;
use serde::Serialize;

use crate::about::LooksUp;
use crate::data::{Data, Source, Terms};
use crate::declarations::Declaration;
use crate::fault::Fault;
use crate::listing;
use crate::options::Options;
use crate::room::{Form, Room};
use crate::state::{Comparison, digest};

pub use causes::{Cause, What};
use parts::{Parts, Sides};

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Nothing that the declared queries can touch differs.
    Footprint,
    /// The answers to the declared queries do not differ.
    Answers,
    /// The declared states were compared.
    Declared,
    /// The integration has no declared state, so differing answers are all there is to go by.
    NoState,
    /// Its own file or its approvals differ.
    OwnFile,
    /// It looks things up while it runs, and what those are is not known before.
    LooksUp,
}

impl Rule {
    /// What was compared, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Footprint => "queries",
            Rule::Answers => "query results",
            Rule::Declared => "desired state",
            Rule::NoState => "query results; it has no desired state to compare",
            Rule::OwnFile => "its datafile or an approval",
            Rule::LooksUp => "it reads data at run time",
        }
    }
}

/// Whether a change affects an integration.
pub enum Verdict {
    /// It does not.
    Unaffected(Rule),
    /// It may.
    Affected(Box<Affected>),
    /// That could not be found out: everything runs.
    Unknown(Fault),
}

/// What a change affects.
pub struct Affected {
    /// What decided.
    pub rule: Rule,
    /// The changed fields and files because of which it is affected, as far as they are known.
    pub causes: Vec<Cause>,
    /// What differs, if the integration has declared states.
    pub comparison: Option<Comparison>,
    /// Whether all of its work is affected, whatever differs.
    pub all: bool,
    /// The declared states of base and head, if all of them was needed.
    pub states: Option<(Declaration, Declaration)>,
}

/// Two bundles that are compared, as an integration may ask them.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Before.
    pub base: Data,
    /// After.
    pub head: Data,
}

impl Pair {
    /// Two bundles that a room may ask everything.
    pub fn new(room: &Room, base: Arc<dyn Source>, head: Arc<dyn Source>) -> Self {
        let terms = || Terms::of(room.about());
        Self { base: Data::new(base, terms()), head: Data::new(head, terms()) }
    }
}

/// Whether what differs between base and head affects a room.
pub fn affected(room: &Room, pair: &Pair, options: &Options) -> Verdict {
    match decide(room, pair, options) {
        Ok(verdict) => verdict,
        Err(fault) => Verdict::Unknown(fault),
    }
}

fn decide(room: &Room, pair: &Pair, options: &Options) -> Result<Verdict, Fault> {
    let about = room.about();
    let own = causes::own(pair, &about.name)?;
    let sides = Sides::of(pair);
    let found = sides.as_ref().and_then(|sides| causes::footprint(sides, about));
    if own.is_empty() && about.looks_up != LooksUp::Always {
        let is_out_of_sight = found.as_ref().is_some_and(Vec::is_empty);
        if is_out_of_sight && about.looks_up == LooksUp::Never {
            return Ok(Verdict::Unaffected(Rule::Footprint));
        }
        let parts = sides.as_ref().and_then(|sides| Parts::find(about, sides));
        if match &parts {
            Some(parts) => parts.is_empty(),
            None => about.looks_up == LooksUp::Never && same_answers(room, pair)?,
        } {
            return Ok(Verdict::Unaffected(if is_out_of_sight { Rule::Footprint } else { Rule::Answers }));
        }
        if let Some(comparison) = parts.and_then(|parts| parts.compare(room, pair, options)) {
            if comparison.is_empty() {
                return Ok(Verdict::Unaffected(Rule::Declared));
            }
            let causes = explain(causes(found, sides.as_ref()), sides.as_ref(), Some(&comparison));
            let (all, comparison) = (comparison.common, Some(comparison));
            let part = Affected { rule: Rule::Declared, causes, comparison, all, states: None };
            return Ok(Verdict::Affected(Box::new(part)));
        }
    }
    let causes = match own.as_slice() {
        [] => causes(found, sides.as_ref()),
        own => own.iter().cloned().chain(found.unwrap_or_default()).collect(),
    };
    let (base, head) = (room.declare(&pair.base, options)?, room.declare(&pair.head, options)?);
    let (Some(base), Some(head)) = (base, head) else {
        let causes = explain(causes, sides.as_ref(), None);
        let whole = Affected { rule: Rule::NoState, causes, comparison: None, all: true, states: None };
        return Ok(Verdict::Affected(Box::new(whole)));
    };
    let comparison = base.compare(&*head);
    // A change of what it may do concerns all of its work; so does one of what it looks up after declaring.
    let looks_up = about.looks_up == LooksUp::Always
        && matches!(room.form(), Form::Staged(_))
        && pair.base.sha() != pair.head.sha();
    let all = looks_up || !own.is_empty() || comparison.common;
    let rule = match (comparison.is_empty(), looks_up) {
        (false, _) => Rule::Declared,
        (true, true) => Rule::LooksUp,
        (true, false) if own.is_empty() => return Ok(Verdict::Unaffected(Rule::Declared)),
        (true, false) => Rule::OwnFile,
    };
    let causes = explain(causes, sides.as_ref(), (!all).then_some(&comparison));
    let (comparison, states) = (Some(comparison), Some((base, head)));
    Ok(Verdict::Affected(Box::new(Affected { rule, causes, comparison, all, states })))
}

/// What brought a difference about: what the declared queries can touch, or else whatever was looked up.
fn causes(found: Option<Vec<Cause>>, sides: Option<&Sides<'_>>) -> Vec<Cause> {
    let found = found.unwrap_or_default();
    match sides {
        Some(sides) if found.is_empty() => causes::all(&sides.diff),
        _ => found,
    }
}

/// Causes as they are reported: renamed files are followed, and what does not explain the differences is left out.
fn explain(causes: Vec<Cause>, sides: Option<&Sides<'_>>, comparison: Option<&Comparison>) -> Vec<Cause> {
    let relevant = |causes: Vec<Cause>| match comparison {
        Some(comparison) => causes::relevant(causes, comparison),
        None => causes,
    };
    let Some(sides) = sides else { return relevant(causes) };
    // Resources are the same one only if they are equal: to compare texts is for those who show them.
    let renames = renames(&sides.diff, |_, _| 0.0);
    if renames.datafiles.is_empty() && renames.resources.is_empty() {
        return relevant(causes);
    }
    let causes = relevant(causes::follow_renames(causes, &renames));
    causes::without_moved_references(causes, &sides.diff, &renames)
}

fn same_answers(room: &Room, pair: &Pair) -> Result<bool, Fault> {
    for query in &room.about().queries {
        let (old, new) = (pair.base.declared(query)?, pair.head.declared(query)?);
        if digest(&old.data) != digest(&new.data) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The integrations that the data of base or head defines, of those in `rooms`.
pub fn defined<'r>(
    rooms: impl IntoIterator<Item = &'r Room>,
    base: &dyn Source,
    head: &dyn Source,
) -> Result<Vec<&'r Room>, Fault> {
    let mut known = listing::all(head)?;
    known.extend(listing::all(base)?);
    let defined = |room: &&Room| known.iter().any(|(name, _)| *name == room.about().name);
    Ok(rooms.into_iter().filter(defined).collect())
}
