//! The input and the result of a comparison of two bundles for an integration: plain data, which a server can receive
//! and send. The integration itself stays in its process.

use std::collections::BTreeSet;

use qontract_graphql::{ElementSelection, Engine, NamedOperation, Request};
use serde::{Deserialize, Serialize};

use crate::meta::{AdHocReads, DeclaredQuery, IntegrationMeta, QueryPresence};
use crate::source_location::SourceLocation;
use crate::state::{Comparison, MAX_DIFFERENCES};
use crate::unknown_fields::unknown_fields;

/// The facts about the reads of an integration that a comparison needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComparisonQuery {
    /// The name of the integration.
    pub integration: String,
    /// The declared queries of the integration.
    pub queries: Vec<ComparedQuery>,
    /// When the integration makes ad-hoc reads.
    pub ad_hoc_reads: AdHocReads,
    /// The list whose elements the integration declares independently of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent_list: Option<ComparedList>,
    /// The name of the predicate for resources that may cause further ad-hoc reads.
    pub trigger: String,
}

/// A declared query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComparedQuery {
    /// The name of the operation.
    pub name: String,
    /// The GraphQL document.
    pub text: String,
    /// Whether the query is executed only if the GraphQL types have all of its fields.
    #[serde(default)]
    pub if_known: bool,
}

/// A list whose elements are declared independently; see [`IndependentList`](crate::IndependentList).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ComparedList {
    /// The key of the list in the query result.
    pub list: String,
    /// The keys by which two elements can conflict.
    pub conflict_keys: Vec<String>,
    /// Lists whose elements affect elements of the independent list.
    pub joined_lists: Vec<String>,
}

impl ComparisonQuery {
    /// Describes an integration.
    pub fn of(meta: &IntegrationMeta) -> Self {
        let list = meta.independent_list.map(|list| ComparedList {
            list: list.list.to_owned(),
            conflict_keys: list.conflict_keys.iter().map(ToString::to_string).collect(),
            joined_lists: list.joined_lists.iter().map(ToString::to_string).collect(),
        });
        Self {
            integration: meta.name.clone(),
            queries: meta.queries.iter().map(ComparedQuery::from).collect(),
            ad_hoc_reads: meta.ad_hoc_reads,
            independent_list: list,
            trigger: meta.ad_hoc_trigger.name.to_owned(),
        }
    }
}

impl From<&DeclaredQuery> for ComparedQuery {
    fn from(query: &DeclaredQuery) -> Self {
        let DeclaredQuery { name, text, presence } = query;
        Self { name: name.clone(), text: text.clone(), if_known: *presence == QueryPresence::IfKnown }
    }
}

impl ComparedQuery {
    /// Whether the query is executed on the bundle of an engine; see [`QueryPresence::IfKnown`]. A query is not
    /// executed if it is optional and its only error is that the types lack some of its fields.
    pub(crate) fn is_known_to(&self, engine: &Engine) -> bool {
        if !self.if_known {
            return true;
        }
        let request = Request { query: &self.text, operation: Some(&self.name), ..Request::default() };
        let Err(failures) = engine.footprint(request) else { return true };
        let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
        unknown_fields(&messages).is_none()
    }

    /// The query as an operation for the GraphQL engine.
    pub(crate) fn operation(&self) -> NamedOperation<'_> {
        NamedOperation { query: &self.text, operation: &self.name }
    }
}

/// The findings that follow from two bundles and the declared queries alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonSurvey {
    /// Whether the integration's own datafile or its approvals differ.
    pub own: bool,
    /// The location of the differences in relation to the footprint of the declared queries.
    pub footprint: FootprintVerdict,
    /// The elements that the change can affect; `None` if the change can also affect other parts of the state.
    pub elements: Option<AffectedElements>,
}

/// The location of the differences between two bundles in relation to the footprint of the declared queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FootprintVerdict {
    /// No difference is in the footprint of the declared queries.
    Outside,
    /// Some differences may be in the footprint.
    Inside,
    /// The footprint is not known.
    Unknown,
}

/// The list elements that a change can affect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedElements {
    /// Whether the change affects no elements.
    pub is_empty: bool,
    /// The elements to declare and compare, if the integration declares elements independently.
    pub selection: Option<ElementSelection>,
}

/// The source locations of the differences between two declared states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifferencePlaces {
    /// The source locations; `None` for a difference without a location. The whole set is `None` if the differences
    /// are not listed completely, so that no cause can be ruled out.
    pub places: Option<BTreeSet<Option<SourceLocation>>>,
    /// The source locations in base of the shards that only base has.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<SourceLocation>,
}

impl From<&Comparison> for DifferencePlaces {
    fn from(comparison: &Comparison) -> Self {
        let is_cut_off = comparison.shards.values().any(|differences| differences.len() >= MAX_DIFFERENCES);
        let is_place_unknown = comparison.gone.iter().any(|key| !comparison.gone_places.contains_key(key));
        if comparison.common || is_place_unknown || is_cut_off {
            return Self::default();
        }
        let places = comparison.shards.values().flatten().map(|difference| difference.place.clone());
        let places: BTreeSet<_> = places.collect();
        let removed: BTreeSet<_> = comparison.gone_places.values().cloned().collect();
        let is_empty = places.is_empty() && removed.is_empty();
        Self { places: Some(places).filter(|_| !is_empty), removed }
    }
}

/// A request for the causes of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CausesQuery {
    /// The queries and ad-hoc reads of the integration.
    pub query: ComparisonQuery,
    /// The differences that the causes explain; if absent, the causes are all changes that the integration can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<DifferencePlaces>,
}

/// The response to a [`CausesQuery`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CausesAnswer {
    /// The causes that explain the difference.
    pub causes: Vec<Cause>,
}

/// The kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CauseKind {
    /// A datafile.
    Datafile,
    /// A resource.
    Resource,
    /// The GraphQL schema.
    Types,
    /// The integration's own datafile.
    Integration,
    /// The removal approvals.
    Approval,
}

/// A changed file that affects an integration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause {
    /// The kind of file.
    pub what: CauseKind,
    /// The location of the difference in head or, for a removed file, in base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
    /// Whether the file exists only in base.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The path of the file in base, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<Box<str>>,
    /// Whether a reference may read the file as a different type. In this case, it is not known whether the field is
    /// read.
    #[serde(skip)]
    pub is_mistyped: bool,
}

impl Cause {
    /// A changed file that exists in head, and was not renamed.
    pub(crate) fn new(what: CauseKind, place: Option<SourceLocation>) -> Self {
        Self { what, place, gone: false, renamed_from: None, is_mistyped: false }
    }
}
