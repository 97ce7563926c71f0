//! Impact analysis: which integrations and shards a change can affect, by which rule, and because of which
//! files.
//!
//! **Invariant:** sound. An integration or shard that is reported as unaffected has the same declared state
//! in base and head. The rules go from cheap to exact, and each can only decide "not affected": the static
//! footprint of the declared queries, then their answers, then the declared states per shard. For a list
//! whose elements are declared independently, the comparison is incremental: only the differing elements are
//! declared and compared.

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

/// The rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// No difference is in the footprint of the declared queries.
    Footprint,
    /// The answers to the declared queries do not differ.
    Answers,
    /// The declared states were compared.
    Declared,
    /// The integration has no declared state, so the answers differ and nothing else can be compared.
    NoState,
    /// The integration's own datafile or its approvals differ.
    OwnFile,
    /// The integration makes ad-hoc reads while it runs, which are not known in advance.
    LooksUp,
}

impl Rule {
    /// What was compared, for messages.
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
    /// It does not, by this rule.
    Unaffected(Rule),
    /// It may.
    Affected(Box<Affected>),
    /// The comparison failed: everything runs.
    Unknown(Fault),
}

/// The parts of an integration that a change affects.
pub struct Affected {
    /// The rule that decided.
    pub rule: Rule,
    /// The changed fields and files that affect it, as far as they are known.
    pub causes: Vec<Cause>,
    /// The differences, if the integration has declared states.
    pub comparison: Option<Comparison>,
    /// Whether all shards are affected, whatever differs.
    pub all: bool,
    /// The complete declared states of base and head, if they were needed.
    pub states: Option<(Declaration, Declaration)>,
}

/// Two bundles that are compared, as handles for one integration.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The bundle before the change.
    pub base: Data,
    /// The bundle after the change.
    pub head: Data,
}

impl Pair {
    /// Handles without an allow-list of schemas.
    pub fn new(integration: &Room, base: Arc<dyn Source>, head: Arc<dyn Source>) -> Self {
        let terms = || Terms::of(integration.about());
        Self { base: Data::new(base, terms()), head: Data::new(head, terms()) }
    }
}

/// Decides whether the differences between base and head affect an integration.
pub fn affected(integration: &Room, pair: &Pair, options: &Options) -> Verdict {
    match decide(integration, pair, options) {
        Ok(verdict) => verdict,
        Err(fault) => Verdict::Unknown(fault),
    }
}

fn decide(integration: &Room, pair: &Pair, options: &Options) -> Result<Verdict, Fault> {
    let about = integration.about();
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
            None => about.looks_up == LooksUp::Never && same_answers(integration, pair)?,
        } {
            return Ok(Verdict::Unaffected(if is_out_of_sight { Rule::Footprint } else { Rule::Answers }));
        }
        if let Some(comparison) = parts.and_then(|parts| parts.compare(integration, pair, options)) {
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
    let (base, head) = (integration.declare(&pair.base, options)?, integration.declare(&pair.head, options)?);
    let (Some(base), Some(head)) = (base, head) else {
        let causes = explain(causes, sides.as_ref(), None);
        let whole = Affected { rule: Rule::NoState, causes, comparison: None, all: true, states: None };
        return Ok(Verdict::Affected(Box::new(whole)));
    };
    let comparison = base.compare(&*head);
    // A change of its permissions affects all shards; so does a change of data that it reads after `declare`.
    let looks_up = about.looks_up == LooksUp::Always
        && matches!(integration.form(), Form::Staged(_))
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

/// The possible causes of a difference: changes in the footprint of the declared queries, or else all
/// changes, since any of them may have been read ad hoc.
fn causes(found: Option<Vec<Cause>>, sides: Option<&Sides<'_>>) -> Vec<Cause> {
    let found = found.unwrap_or_default();
    match sides {
        Some(sides) if found.is_empty() => causes::all(&sides.diff),
        _ => found,
    }
}

/// The causes to report: renamed files are followed, and causes that do not explain the differences are left
/// out.
fn explain(causes: Vec<Cause>, sides: Option<&Sides<'_>>, comparison: Option<&Comparison>) -> Vec<Cause> {
    let relevant = |causes: Vec<Cause>| match comparison {
        Some(comparison) => causes::relevant(causes, comparison),
        None => causes,
    };
    let Some(sides) = sides else { return relevant(causes) };
    // A resource counts as renamed only if its content is equal; comparing similar texts is left to reports.
    let renames = renames(&sides.diff, |_, _| 0.0);
    if renames.datafiles.is_empty() && renames.resources.is_empty() {
        return relevant(causes);
    }
    let causes = relevant(causes::follow_renames(causes, &renames));
    causes::without_moved_references(causes, &sides.diff, &renames)
}

fn same_answers(integration: &Room, pair: &Pair) -> Result<bool, Fault> {
    for query in &integration.about().queries {
        let (old, new) = (pair.base.declared(query)?, pair.head.declared(query)?);
        if digest(&old.data) != digest(&new.data) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The integrations that the data of base or head defines, of those in `integrations`.
pub fn defined<'r>(
    integrations: impl IntoIterator<Item = &'r Room>,
    base: &dyn Source,
    head: &dyn Source,
) -> Result<Vec<&'r Room>, Fault> {
    let mut known = listing::all(head)?;
    known.extend(listing::all(base)?);
    let defined = |integration: &&Room| known.iter().any(|(name, _)| *name == integration.about().name);
    Ok(integrations.into_iter().filter(defined).collect())
}
