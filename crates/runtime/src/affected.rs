//! Impact analysis: which integrations and shards a change can affect, by which rule, and because of which
//! files.
//!
//! **Invariant:** sound. An integration or shard that is reported as unaffected has the same declared state
//! in base and head. The rules go from cheap to exact, and each can only decide "not affected": the static
//! footprint of the declared queries, then their answers, then the declared states per shard. For a list
//! whose elements are declared independently, the comparison is incremental: only the differing elements are
//! declared and compared.

mod causes;
mod partial_comparison;

use std::sync::Arc;

use qontract_bundle::diff::renames;
use serde::Serialize;

use crate::data::{BundleReader, Data, QueryPolicy};
use crate::declared_cache::SharedDeclaredState;
use crate::definition;
use crate::fault::Fault;
use crate::integration::{Integration, IntegrationForm};
use crate::meta::AdHocReads;
use crate::options::Options;
use crate::state::{Comparison, digest};

pub use causes::{Cause, CauseKind};
use partial_comparison::{EnginePair, PartialComparison};

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
pub enum AffectedVerdict {
    /// It does not, by this rule.
    Unaffected(Rule),
    /// It may.
    Affected(Box<Impact>),
    /// The comparison failed: everything runs.
    Unknown(Fault),
}

/// The parts of an integration that a change affects.
pub struct Impact {
    /// The rule that decided.
    pub rule: Rule,
    /// The changed fields and files that affect it, as far as they are known.
    pub causes: Vec<Cause>,
    /// The differences, if the integration has declared states.
    pub comparison: Option<Comparison>,
    /// Whether all shards are affected, whatever differs.
    pub all: bool,
    /// The complete declared states of base and head, if they were needed.
    pub states: Option<(SharedDeclaredState, SharedDeclaredState)>,
}

/// Two bundles that are compared, as handles for one integration.
#[derive(Clone, Debug)]
pub struct BundlePair {
    /// The bundle before the change.
    pub base: Data,
    /// The bundle after the change.
    pub head: Data,
}

impl BundlePair {
    /// Handles without an allow-list of schemas.
    pub fn new(integration: &Integration, base: Arc<dyn BundleReader>, head: Arc<dyn BundleReader>) -> Self {
        let terms = || QueryPolicy::of(integration.meta());
        Self { base: Data::new(base, terms()), head: Data::new(head, terms()) }
    }
}

/// Decides whether the differences between base and head affect an integration.
pub fn affected(integration: &Integration, pair: &BundlePair, options: &Options) -> AffectedVerdict {
    match decide(integration, pair, options) {
        Ok(verdict) => verdict,
        Err(fault) => AffectedVerdict::Unknown(fault),
    }
}

fn decide(integration: &Integration, pair: &BundlePair, options: &Options) -> Result<AffectedVerdict, Fault> {
    let meta = integration.meta();
    let own = causes::own_definition(pair, &meta.name)?;
    let sides = EnginePair::of(pair);
    let found = sides.as_ref().and_then(|sides| causes::footprint(sides, meta));
    if own.is_empty() && meta.ad_hoc_reads != AdHocReads::Anytime {
        let is_out_of_sight = found.as_ref().is_some_and(Vec::is_empty);
        if is_out_of_sight && meta.ad_hoc_reads == AdHocReads::Never {
            return Ok(AffectedVerdict::Unaffected(Rule::Footprint));
        }
        let parts = sides.as_ref().and_then(|sides| PartialComparison::find(meta, sides));
        if match &parts {
            Some(parts) => parts.is_empty(),
            None => meta.ad_hoc_reads == AdHocReads::Never && same_answers(integration, pair)?,
        } {
            return Ok(AffectedVerdict::Unaffected(if is_out_of_sight {
                Rule::Footprint
            } else {
                Rule::Answers
            }));
        }
        if let Some(comparison) = parts.and_then(|parts| parts.compare(integration, pair, options)) {
            if comparison.is_empty() {
                return Ok(AffectedVerdict::Unaffected(Rule::Declared));
            }
            let causes = explain(candidate_causes(found, sides.as_ref()), sides.as_ref(), Some(&comparison));
            let (all, comparison) = (comparison.common, Some(comparison));
            let part = Impact { rule: Rule::Declared, causes, comparison, all, states: None };
            return Ok(AffectedVerdict::Affected(Box::new(part)));
        }
    }
    let causes = match own.as_slice() {
        [] => candidate_causes(found, sides.as_ref()),
        own => own.iter().cloned().chain(found.unwrap_or_default()).collect(),
    };
    let (base, head) = (integration.declare(&pair.base, options)?, integration.declare(&pair.head, options)?);
    let (Some(base), Some(head)) = (base, head) else {
        let causes = explain(causes, sides.as_ref(), None);
        let whole = Impact { rule: Rule::NoState, causes, comparison: None, all: true, states: None };
        return Ok(AffectedVerdict::Affected(Box::new(whole)));
    };
    let comparison = base.compare(&*head);
    // A change of its permissions affects all shards; so does a change of data that it reads after `declare`.
    let looks_up = meta.ad_hoc_reads == AdHocReads::Anytime
        && matches!(integration.form(), IntegrationForm::Staged(_))
        && pair.base.sha() != pair.head.sha();
    let all = looks_up || !own.is_empty() || comparison.common;
    let rule = match (comparison.is_empty(), looks_up) {
        (false, _) => Rule::Declared,
        (true, true) => Rule::LooksUp,
        (true, false) if own.is_empty() => return Ok(AffectedVerdict::Unaffected(Rule::Declared)),
        (true, false) => Rule::OwnFile,
    };
    let causes = explain(causes, sides.as_ref(), (!all).then_some(&comparison));
    let (comparison, states) = (Some(comparison), Some((base, head)));
    Ok(AffectedVerdict::Affected(Box::new(Impact { rule, causes, comparison, all, states })))
}

/// The possible causes of a difference: changes in the footprint of the declared queries, or else all
/// changes, since any of them may have been read ad hoc.
fn candidate_causes(found: Option<Vec<Cause>>, sides: Option<&EnginePair<'_>>) -> Vec<Cause> {
    let found = found.unwrap_or_default();
    match sides {
        Some(sides) if found.is_empty() => causes::all_changes(&sides.diff),
        _ => found,
    }
}

/// The causes to report: renamed files are followed, and causes that do not explain the differences are left
/// out.
fn explain(
    causes: Vec<Cause>,
    sides: Option<&EnginePair<'_>>,
    comparison: Option<&Comparison>,
) -> Vec<Cause> {
    let relevant = |causes: Vec<Cause>| match comparison {
        Some(comparison) => causes::relevant(causes, comparison, &|place, cause| {
            sides.is_some_and(|sides| causes::names_file(sides, place, cause))
        }),
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

fn same_answers(integration: &Integration, pair: &BundlePair) -> Result<bool, Fault> {
    for query in &integration.meta().queries {
        let (old, new) = (pair.base.query_tree(query)?, pair.head.query_tree(query)?);
        if digest(&old.data) != digest(&new.data) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The integrations that the data of base or head defines, of those in `integrations`.
pub fn defined_integrations<'r>(
    integrations: impl IntoIterator<Item = &'r Integration>,
    base: &dyn BundleReader,
    head: &dyn BundleReader,
) -> Result<Vec<&'r Integration>, Fault> {
    let mut known = definition::all(head)?;
    known.extend(definition::all(base)?);
    let defined = |integration: &&Integration| known.iter().any(|(name, _)| *name == integration.meta().name);
    Ok(integrations.into_iter().filter(defined).collect())
}
