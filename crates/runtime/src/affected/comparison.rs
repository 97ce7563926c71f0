//! Compares two bundles for an integration: in this process, or on the server that has both bundles.

use std::sync::Arc;

use qontract_bundle::diff::renames;
use qontract_graphql::Engine;

use super::causes;
use super::partial_comparison::{EnginePair, PartialComparison};
use crate::comparison_query::{
    AffectedElements, Cause, CausesQuery, ComparisonQuery, ComparisonSurvey, DifferencePlaces,
    FootprintVerdict,
};
use crate::data::{BundleReader, LoadedBundle};
use crate::fault::Fault;
use crate::meta::AdHocReads;

/// A comparison of two bundles that are loaded in this process.
pub struct EngineComparison<'p> {
    sides: EnginePair<'p>,
    query: &'p ComparisonQuery,
    /// The differences in the integration's own datafile and in its approvals.
    own: Vec<Cause>,
    /// The differences in the footprint of the declared queries, if it is known.
    in_footprint: Option<Vec<Cause>>,
}

impl<'p> EngineComparison<'p> {
    /// Compares two bundles.
    pub fn new(
        base: &'p Arc<Engine>,
        head: &'p Arc<Engine>,
        query: &'p ComparisonQuery,
    ) -> Result<Self, Fault> {
        let [old, new] = [base, head].map(|engine| LoadedBundle::new(Arc::clone(engine)));
        let own = causes::own_definition(&old, &new, &query.integration)?;
        let sides = EnginePair::new(base, head);
        let in_footprint = causes::footprint(&sides, query);
        Ok(Self { sides, query, own, in_footprint })
    }

    /// The findings that follow from the bundles and the declared queries alone. `triggers` returns whether a
    /// resource may cause further ad-hoc reads.
    pub fn survey(&self, triggers: fn(&str) -> bool) -> ComparisonSurvey {
        let footprint = match &self.in_footprint {
            Some(causes) if causes.is_empty() => FootprintVerdict::Outside,
            Some(_) => FootprintVerdict::Inside,
            None => FootprintVerdict::Unknown,
        };
        let own = !self.own.is_empty();
        let is_decided = match self.query.ad_hoc_reads {
            AdHocReads::Never => footprint == FootprintVerdict::Outside,
            AdHocReads::DuringDeclare => false,
            AdHocReads::Anytime => true,
        };
        let parts = (!own && !is_decided)
            .then(|| PartialComparison::find(self.query, &self.sides, triggers))
            .flatten();
        let elements = parts.map(|parts| {
            let is_empty = parts.is_empty();
            let selection = if is_empty { None } else { parts.selection() };
            AffectedElements { is_empty, selection }
        });
        ComparisonSurvey { own, footprint, elements }
    }

    /// The causes to report: the differences in the integration's own datafile and in its approvals, and the changes
    /// in the footprint of the declared queries. If there are none of these, all changes are causes, because an
    /// ad-hoc read may depend on any of them. Renamed files are followed, and changes that do not explain the
    /// differences are omitted.
    pub fn causes(&self, differences: Option<&DifferencePlaces>) -> Vec<Cause> {
        let Self { sides, own, .. } = self;
        let in_footprint = self.in_footprint.clone().unwrap_or_default();
        let causes = match own.as_slice() {
            [] if in_footprint.is_empty() => causes::all_changes(&sides.diff),
            own => own.iter().cloned().chain(in_footprint).collect(),
        };
        let relevant = |causes: Vec<Cause>| match differences {
            Some(differences) => {
                causes::relevant(causes, differences, &|place, cause| causes::names_file(sides, place, cause))
            }
            None => causes,
        };
        // A resource counts as renamed only if its content is equal; similar contents are compared only for
        // reports.
        let renames = renames(&sides.diff, |_, _| 0.0);
        if renames.datafiles.is_empty() && renames.resources.is_empty() {
            return relevant(causes);
        }
        let causes = relevant(causes::follow_renames(causes, &renames));
        let causes = causes::without_moved_references(causes, &sides.diff, &renames);
        if differences.is_some() { causes::without_mere_renames(causes) } else { causes }
    }
}

/// A comparison of two bundles, in this process or on a server.
pub enum BundleComparison<'p> {
    /// Both bundles are in this process.
    Engines(Box<EngineComparison<'p>>),
    /// Both bundles are on a server that compares them.
    Server {
        /// The bundle before the change.
        base: &'p dyn BundleReader,
        /// The bundle after the change.
        head: &'p dyn BundleReader,
        /// The properties of the integration that the server needs.
        query: &'p ComparisonQuery,
    },
    /// The bundles can only be queried. The causes are the differences in the integration's own datafile and its
    /// approvals.
    Queries(Vec<Cause>),
}

impl<'p> BundleComparison<'p> {
    /// Begins a comparison and returns the survey of the two bundles.
    pub fn begin(
        base: &'p Arc<dyn BundleReader>,
        head: &'p Arc<dyn BundleReader>,
        query: &'p ComparisonQuery,
        triggers: fn(&str) -> bool,
    ) -> Result<(Self, ComparisonSurvey), Fault> {
        if let (Some(base), Some(head)) = (base.engine(), head.engine()) {
            let comparison = EngineComparison::new(base, head, query)?;
            let survey = comparison.survey(triggers);
            return Ok((Self::Engines(Box::new(comparison)), survey));
        }
        let (base, head) = (&**base, &**head);
        if let Some(survey) = head.survey(base, query)? {
            return Ok((Self::Server { base, head, query }, survey));
        }
        let own = causes::own_definition(base, head, &query.integration)?;
        let survey =
            ComparisonSurvey { own: !own.is_empty(), footprint: FootprintVerdict::Unknown, elements: None };
        Ok((Self::Queries(own), survey))
    }

    /// The causes to report; see [`EngineComparison::causes`].
    pub fn causes(&self, differences: Option<DifferencePlaces>) -> Result<Vec<Cause>, Fault> {
        match self {
            Self::Engines(comparison) => Ok(comparison.causes(differences.as_ref())),
            Self::Server { base, head, query } => {
                let query = CausesQuery { query: (*query).clone(), differences };
                Ok(head.causes(*base, &query)?)
            }
            Self::Queries(own) => match differences {
                Some(differences) => Ok(causes::relevant(own.clone(), &differences, &|_, _| false)),
                None => Ok(own.clone()),
            },
        }
    }
}
