//! Impact analysis: determines the integrations and shards that a change can affect, the rule that decided,
//! and the files that caused it.
//!
//! **Invariant:** the analysis is sound: an integration or shard that is reported as unaffected has the same declared
//! state in base and head. The rules are applied from the cheapest to the most exact, and each can only decide "not
//! affected": the static footprint of the declared queries, then the results of these queries, then the declared
//! states per shard. For a list whose elements are declared independently, the comparison is incremental: only the
//! differing elements are declared and compared.

mod causes;
mod comparison;
mod partial_comparison;

use std::sync::Arc;

use qontract_graphql::ElementSelection;
use serde::Serialize;

use crate::data::{BundleReader, Data, QueryPolicy};
use crate::declared_cache::SharedDeclaredState;
use crate::definition;
use crate::fault::Fault;
use crate::integration::{Integration, IntegrationForm};
use crate::meta::AdHocReads;
use crate::options::Options;
use crate::state::{Comparison, digest};

pub use crate::comparison_query::{
    AffectedElements, Cause, CauseKind, CausesAnswer, CausesQuery, ComparedList, ComparedQuery,
    ComparisonQuery, ComparisonSurvey, DifferencePlaces, FootprintVerdict,
};
use comparison::BundleComparison;
pub use comparison::EngineComparison;

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
    /// The change does not affect the integration, according to this rule.
    Unaffected(Rule),
    /// The change may affect the integration.
    Affected(Box<Impact>),
    /// The comparison failed, so all shards run.
    Unknown(Fault),
}

/// The parts of an integration that a change affects.
pub struct Impact {
    /// The rule that decided.
    pub rule: Rule,
    /// The changed fields and files that are known to affect the integration.
    pub causes: Vec<Cause>,
    /// The differences, if the integration has declared states.
    pub comparison: Option<Comparison>,
    /// Whether all shards are affected, whichever shards differ.
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

/// The two bundles that are compared, as handles for one integration.
#[derive(Clone, Debug)]
pub struct BundlePair {
    /// The bundle before the change.
    pub base: Data,
    /// The bundle after the change.
    pub head: Data,
}

impl BundlePair {
    /// Creates handles without an allow-list of schemas.
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
    let query = ComparisonQuery::of(meta);
    let sources = (pair.base.source(), pair.head.source());
    let (bundles, survey) =
        BundleComparison::begin(sources.0, sources.1, &query, meta.ad_hoc_trigger.matches)?;
    let ComparisonSurvey { own, footprint, elements } = survey;
    if !own && meta.ad_hoc_reads != AdHocReads::Anytime {
        let is_outside_footprint = footprint == FootprintVerdict::Outside;
        if is_outside_footprint && meta.ad_hoc_reads == AdHocReads::Never {
            return Ok(AffectedVerdict::Unaffected(Rule::Footprint));
        }
        if match &elements {
            Some(elements) => elements.is_empty,
            None => meta.ad_hoc_reads == AdHocReads::Never && same_answers(integration, pair)?,
        } {
            return Ok(AffectedVerdict::Unaffected(if is_outside_footprint {
                Rule::Footprint
            } else {
                Rule::Answers
            }));
        }
        let selection = elements.and_then(|elements| elements.selection);
        if let Some(comparison) =
            selection.and_then(|part| compare_elements(integration, pair, options, part))
        {
            if comparison.is_empty() {
                return Ok(AffectedVerdict::Unaffected(Rule::Declared));
            }
            let causes = bundles.causes(Some((&comparison).into()))?;
            let (all, comparison) = (comparison.common, Some(comparison));
            let part = Impact { rule: Rule::Declared, causes, comparison, all, states: None };
            return Ok(AffectedVerdict::Affected(Box::new(part)));
        }
    }
    let (base, head) = (integration.declare(&pair.base, options)?, integration.declare(&pair.head, options)?);
    let (Some(base), Some(head)) = (base, head) else {
        let causes = bundles.causes(None)?;
        let whole = Impact { rule: Rule::NoState, causes, comparison: None, all: true, states: None };
        return Ok(AffectedVerdict::Affected(Box::new(whole)));
    };
    let comparison = base.compare(&*head);
    // A change to the integration's permissions affects all shards, and so does a change to data that the integration
    // reads after `declare`.
    let reads_ad_hoc = meta.ad_hoc_reads == AdHocReads::Anytime
        && matches!(integration.form(), IntegrationForm::Staged(_))
        && pair.base.sha() != pair.head.sha();
    let all = reads_ad_hoc || own || comparison.common;
    let rule = match (comparison.is_empty(), reads_ad_hoc) {
        (false, _) => Rule::Declared,
        (true, true) => Rule::AdHocReads,
        (true, false) if !own => return Ok(AffectedVerdict::Unaffected(Rule::Declared)),
        (true, false) => Rule::OwnFile,
    };
    let causes = bundles.causes((!all).then_some((&comparison).into()))?;
    let (comparison, states) = (Some(comparison), Some(DeclaredPair { base, head }));
    Ok(AffectedVerdict::Affected(Box::new(Impact { rule, causes, comparison, all, states })))
}

/// Declares these elements from base and head and compares the results; `None` if they cannot be declared.
fn compare_elements(
    integration: &Integration,
    pair: &BundlePair,
    options: &Options,
    part: ElementSelection,
) -> Option<Comparison> {
    if !pair.base.source().selects_elements() || !pair.head.source().selects_elements() {
        return None;
    }
    let part = Arc::new(part);
    let declare = |data: &Data| integration.declare(&data.restricted_to(&part), options).ok().flatten();
    Some(declare(&pair.base)?.compare(&*declare(&pair.head)?))
}

/// Whether a server reports that the change cannot affect the declared state, so that base need not be declared.
/// Returns `false` if the server does not compare the bundles.
pub(crate) fn is_unaffected_on_server(integration: &Integration, pair: &BundlePair) -> bool {
    let meta = integration.meta();
    let (base, head) = (pair.base.source(), pair.head.source());
    let Ok(Some(survey)) = head.survey(&**base, &ComparisonQuery::of(meta)) else { return false };
    let is_outside = survey.footprint == FootprintVerdict::Outside && meta.ad_hoc_reads == AdHocReads::Never;
    is_outside || survey.elements.is_some_and(|elements| elements.is_empty)
}

fn same_answers(integration: &Integration, pair: &BundlePair) -> Result<bool, Fault> {
    for query in &integration.meta().queries {
        let (old, new) = (pair.base.query_declared(query)?, pair.head.query_declared(query)?);
        // If the types of only one bundle support the query, its results count as different, even if the result is
        // empty.
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
