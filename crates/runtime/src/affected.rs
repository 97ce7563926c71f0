//! Impact analysis: determines the integrations and shards that a change can affect, the rule that decided,
//! and the files that caused it.
//!
//! **Invariant:** sound. An integration or shard that is reported as unaffected has the same declared state
//! in base and head. The rules are applied from the cheapest to the most exact, and each can only decide "not
//! affected": the static footprint of the declared queries, then their results, then the declared states per
//! shard. For a list whose elements are declared independently, the comparison is incremental: only the
//! differing elements are declared and compared.

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
    /// The footprint of the declared queries contains no difference.
    Footprint,
    /// The results of the declared queries do not differ.
    Answers,
    /// The declared states were compared.
    Declared,
    /// The query results differ, and the integration has no declared state that could be compared.
    NoState,
    /// The integration's own datafile or its approvals differ.
    OwnFile,
    /// The integration makes ad-hoc reads at run time, which cannot be predicted.
    AdHocReads,
}

impl Rule {
    /// A description of what was compared, for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Footprint => "queries",
            Rule::Answers => "query results",
            Rule::Declared => "desired state",
            Rule::NoState => "query results; it has no desired state to compare",
            Rule::OwnFile => "its datafile or an approval",
            Rule::AdHocReads => "it reads data at run time",
        }
    }
}

/// Whether a change affects an integration.
pub enum AffectedVerdict {
    /// The change does not affect it, according to this rule.
    Unaffected(Rule),
    /// The change may affect it.
    Affected(Box<Impact>),
    /// The comparison failed, so all shards run.
    Unknown(Fault),
}

/// The parts of an integration that a change affects.
pub struct Impact {
    /// The rule that decided.
    pub rule: Rule,
    /// The changed fields and files that affect the integration, as far as they can be determined.
    pub causes: Vec<Cause>,
    /// The differences, if the integration has declared states.
    pub comparison: Option<Comparison>,
    /// Whether all shards are affected, regardless of the differences.
    pub all: bool,
    /// The complete declared states of base and head, if the decision needed them.
    pub states: Option<DeclaredPair>,
}

/// The complete declared states of an integration in base and head.
pub struct DeclaredPair {
    /// The state before the change.
    pub base: SharedDeclaredState,
    /// The state after the change.
    pub head: SharedDeclaredState,
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
    let in_footprint = sides.as_ref().and_then(|sides| causes::footprint(sides, meta));
    if own.is_empty() && meta.ad_hoc_reads != AdHocReads::Anytime {
        let is_outside_footprint = in_footprint.as_ref().is_some_and(Vec::is_empty);
        if is_outside_footprint && meta.ad_hoc_reads == AdHocReads::Never {
            return Ok(AffectedVerdict::Unaffected(Rule::Footprint));
        }
        let parts = sides.as_ref().and_then(|sides| PartialComparison::find(meta, sides));
        if match &parts {
            Some(parts) => parts.is_empty(),
            None => meta.ad_hoc_reads == AdHocReads::Never && same_answers(integration, pair)?,
        } {
            return Ok(AffectedVerdict::Unaffected(if is_outside_footprint {
                Rule::Footprint
            } else {
                Rule::Answers
            }));
        }
        if let Some(comparison) = parts.and_then(|parts| parts.compare(integration, pair, options)) {
            if comparison.is_empty() {
                return Ok(AffectedVerdict::Unaffected(Rule::Declared));
            }
            let causes =
                explain(candidate_causes(in_footprint, sides.as_ref()), sides.as_ref(), Some(&comparison));
            let (all, comparison) = (comparison.common, Some(comparison));
            let part = Impact { rule: Rule::Declared, causes, comparison, all, states: None };
            return Ok(AffectedVerdict::Affected(Box::new(part)));
        }
    }
    let causes = match own.as_slice() {
        [] => candidate_causes(in_footprint, sides.as_ref()),
        own => own.iter().cloned().chain(in_footprint.unwrap_or_default()).collect(),
    };
    let (base, head) = (integration.declare(&pair.base, options)?, integration.declare(&pair.head, options)?);
    let (Some(base), Some(head)) = (base, head) else {
        let causes = explain(causes, sides.as_ref(), None);
        let whole = Impact { rule: Rule::NoState, causes, comparison: None, all: true, states: None };
        return Ok(AffectedVerdict::Affected(Box::new(whole)));
    };
    let comparison = base.compare(&*head);
    // A change to its permissions affects all shards; so does a change to data that it reads after `declare`.
    let reads_ad_hoc = meta.ad_hoc_reads == AdHocReads::Anytime
        && matches!(integration.form(), IntegrationForm::Staged(_))
        && pair.base.sha() != pair.head.sha();
    let all = reads_ad_hoc || !own.is_empty() || comparison.common;
    let rule = match (comparison.is_empty(), reads_ad_hoc) {
        (false, _) => Rule::Declared,
        (true, true) => Rule::AdHocReads,
        (true, false) if own.is_empty() => return Ok(AffectedVerdict::Unaffected(Rule::Declared)),
        (true, false) => Rule::OwnFile,
    };
    let causes = explain(causes, sides.as_ref(), (!all).then_some(&comparison));
    let (comparison, states) = (Some(comparison), Some(DeclaredPair { base, head }));
    Ok(AffectedVerdict::Affected(Box::new(Impact { rule, causes, comparison, all, states })))
}

/// The possible causes of a difference: changes in the footprint of the declared queries or, if there are
/// none, all changes, because an ad-hoc read may have read any of them.
fn candidate_causes(in_footprint: Option<Vec<Cause>>, sides: Option<&EnginePair<'_>>) -> Vec<Cause> {
    let in_footprint = in_footprint.unwrap_or_default();
    match sides {
        Some(sides) if in_footprint.is_empty() => causes::all_changes(&sides.diff),
        _ => in_footprint,
    }
}

/// The causes to report: follows renamed files, and omits causes that do not explain the differences.
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
    // A resource counts as renamed only if its content is equal; similar contents are compared only for
    // reports.
    let renames = renames(&sides.diff, |_, _| 0.0);
    if renames.datafiles.is_empty() && renames.resources.is_empty() {
        return relevant(causes);
    }
    let causes = relevant(causes::follow_renames(causes, &renames));
    let causes = causes::without_moved_references(causes, &sides.diff, &renames);
    if comparison.is_some() { causes::without_mere_renames(causes) } else { causes }
}

fn same_answers(integration: &Integration, pair: &BundlePair) -> Result<bool, Fault> {
    for query in &integration.meta().queries {
        let (old, new) = (pair.base.query_declared(query)?, pair.head.query_declared(query)?);
        // A query that only the types of one bundle support counts as different, even if its result is empty.
        if old.map(|old| digest(&old.data)) != new.map(|new| digest(&new.data)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The integrations among `integrations` that base or head defines.
pub fn defined_integrations<'r>(
    integrations: impl IntoIterator<Item = &'r Integration>,
    base: &dyn BundleReader,
    head: &dyn BundleReader,
) -> Result<Vec<&'r Integration>, Fault> {
    let mut definitions = definition::all(head)?;
    definitions.extend(definition::all(base)?);
    let defined =
        |integration: &&Integration| definitions.iter().any(|(name, _)| *name == integration.meta().name);
    Ok(integrations.into_iter().filter(defined).collect())
}
