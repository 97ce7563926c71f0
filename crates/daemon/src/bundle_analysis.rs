//! Comparisons of bundles, and lookups of source lines, for clients of the data server: the requests, the responses,
//! and how the server computes the responses.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use qontract_bundle::{Bundle, Layout, Repo, Sha256};
use qontract_diagnostics::Sources;
use qontract_graphql::Engine;
use qontract_objects::templates::TEMPLATES_THAT_QUERY;
use qontract_runtime::affected::{
    CausesAnswer, CausesQuery, ComparisonQuery, ComparisonSurvey, EngineComparison,
};
use qontract_runtime::{AdHocTrigger, SourceLocation};
use qontract_server::{AnalysisError, BundleAnalysis};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::input::Input;
use crate::line_cache::LineCache;
use crate::opened_repo::OpenedRepo;
use crate::pinned_data::{ComparedData, PinnedData};

/// Maximum number of source locations in one request.
pub const MAX_PLACES: usize = 5_000;
/// Maximum number of queries of an integration.
const MAX_QUERIES: usize = 100;
/// Maximum number of keys by which elements are compared, and maximum number of lists.
const MAX_KEYS: usize = 100;

/// A request to `/compare/BASE/HEAD`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompareRequest {
    /// A request for the findings that follow from the bundles and the declared queries of an integration. The
    /// response is a [`ComparisonSurvey`].
    Survey(ComparisonQuery),
    /// A request for the causes of a difference. The response is a [`CausesAnswer`].
    Causes(CausesQuery),
    /// A request for the lines of differences. The response is [`DifferenceLines`].
    Locate(DifferencePlaces),
}

/// The source locations of differences between two bundles.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifferencePlaces {
    /// Source locations for which the line of the difference is requested.
    pub changes: Vec<SourceLocation>,
    /// Source locations for which the line of the location itself is requested, even if it does not differ.
    pub others: Vec<SourceLocation>,
    /// All changes that affect the integration.
    pub causes: Vec<SourceLocation>,
}

/// The `file:line` of each source location of [`DifferencePlaces`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceLines {
    /// The lines of the differences.
    pub changes: Vec<String>,
    /// The lines of the other source locations.
    pub others: Vec<String>,
}

/// A request to `/locate/SHA`. The response is [`Lines`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// The source locations.
    pub places: Vec<SourceLocation>,
}

/// The `file:line` of each source location, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The lines, as `file:line`.
    pub lines: Vec<String>,
}

/// Compares the bundles of a server and finds lines in the files of its data repo.
#[derive(Default)]
pub struct DataAnalysis {
    repo: Option<ServedRepo>,
}

/// The data repo that a server serves.
#[derive(Clone)]
struct ServedRepo {
    folder: PathBuf,
    layout: Layout,
}

impl DataAnalysis {
    /// Creates an analysis of bundles whose files are not known.
    pub fn without_files() -> Self {
        Self::default()
    }

    /// Creates an analysis of bundles of the data repo in a directory.
    pub fn of_repo(folder: PathBuf, layout: Layout) -> Self {
        Self { repo: Some(ServedRepo { folder, layout }) }
    }

    /// The bundle of an engine, with those of its source files that can still be read.
    fn pinned(&self, engine: &Arc<Engine>) -> PinnedData {
        let layout = self.repo.as_ref().map(|repo| repo.layout.clone()).unwrap_or_default();
        let input = Input { bundle: Bundle::clone(engine.bundle()), repo: None };
        let data = PinnedData::with_engine(input, Arc::clone(engine), &layout);
        match &self.repo {
            Some(repo) => data.with_sources(Arc::new(BundledFiles {
                bundle: Arc::clone(engine.bundle()),
                directory: Repo::directory(&repo.folder, repo.layout.clone()),
                repo: repo.clone(),
                revision: OnceLock::new(),
            })),
            None => data,
        }
    }
}

impl BundleAnalysis for DataAnalysis {
    fn compare(
        &self,
        base: &Arc<Engine>,
        head: &Arc<Engine>,
        request: &[u8],
    ) -> Result<Vec<u8>, AnalysisError> {
        match parse(request)? {
            CompareRequest::Survey(query) => {
                let survey: ComparisonSurvey =
                    comparison(base, head, &query)?.survey(trigger(&query.trigger));
                Ok(json(&survey))
            }
            CompareRequest::Causes(CausesQuery { query, differences }) => {
                let count = differences.iter().flat_map(|one| &one.places).map(BTreeSet::len).sum();
                check_count("places", count, MAX_PLACES)?;
                let causes = comparison(base, head, &query)?.causes(differences.as_ref());
                Ok(json(&CausesAnswer { causes }))
            }
            CompareRequest::Locate(DifferencePlaces { changes, others, causes }) => {
                check_count("places", changes.len() + others.len(), MAX_PLACES)?;
                check_count("causes", causes.len(), MAX_PLACES)?;
                let (base, head) = (self.pinned(base), self.pinned(head));
                let sides = ComparedData::new(&base, &head);
                let changes = changes.iter().map(|place| sides.line(place, &causes)).collect();
                let others = others.iter().map(|place| sides.own_line(place)).collect();
                Ok(json(&DifferenceLines { changes, others }))
            }
        }
    }

    fn locate(&self, engine: &Arc<Engine>, request: &[u8]) -> Result<Vec<u8>, AnalysisError> {
        let Places { places } = parse(request)?;
        check_count("places", places.len(), MAX_PLACES)?;
        let (data, lines) = (self.pinned(engine), LineCache::default());
        Ok(json(&Lines { lines: places.iter().map(|place| data.line(&lines, place)).collect() }))
    }
}

fn parse<R: DeserializeOwned>(request: &[u8]) -> Result<R, AnalysisError> {
    // Without this check, `serde` would also accept a list of the values.
    if !request.trim_ascii_start().starts_with(b"{") {
        return Err(AnalysisError("the request is invalid: it must be an object".to_owned()));
    }
    serde_json::from_slice(request).map_err(|error| AnalysisError(format!("the request is invalid: {error}")))
}

fn json(response: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(response).expect("maps with string keys can be written as JSON")
}

fn check_count(what: &str, count: usize, max: usize) -> Result<(), AnalysisError> {
    if count <= max {
        return Ok(());
    }
    Err(AnalysisError(format!("the request has {count} {what}; at most {max} are allowed")))
}

fn comparison<'p>(
    base: &'p Arc<Engine>,
    head: &'p Arc<Engine>,
    query: &'p ComparisonQuery,
) -> Result<EngineComparison<'p>, AnalysisError> {
    check_count("queries", query.queries.len(), MAX_QUERIES)?;
    if let Some(list) = &query.independent_list {
        check_count("keys", list.conflict_keys.len() + list.joined_lists.len(), MAX_KEYS)?;
    }
    EngineComparison::new(base, head, query)
        .map_err(|fault| AnalysisError(format!("the bundles cannot be compared: {fault}")))
}

/// The predicate with this name. For an unknown name, any resource counts as a trigger of further reads, so that no
/// difference is missed.
fn trigger(name: &str) -> fn(&str) -> bool {
    let known = [AdHocTrigger::ANY, AdHocTrigger::NONE, TEMPLATES_THAT_QUERY];
    known.into_iter().find(|trigger| trigger.name == name).unwrap_or(AdHocTrigger::ANY).matches
}

/// The files of a bundle. Unchanged files are read from the directory, other files from the commit.
struct BundledFiles {
    bundle: Arc<Bundle>,
    repo: ServedRepo,
    directory: Repo,
    /// The commit of the bundle, opened when a file is not in the directory.
    revision: OnceLock<Option<Repo>>,
}

impl BundledFiles {
    fn revision(&self) -> Option<&Repo> {
        let open = || {
            let commit = self.bundle.stamp().commit.as_str();
            let is_commit = commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
            let opened =
                is_commit.then(|| OpenedRepo::open_revision(&self.repo.folder, commit, &self.repo.layout));
            opened?.ok().map(|opened| opened.repo)
        };
        self.revision.get_or_init(open).as_ref()
    }
}

impl Sources for BundledFiles {
    /// **Invariant:** returns only the content that was bundled, because lines of any other content would be wrong.
    fn text(&self, file: &str) -> Option<Cow<'_, str>> {
        let path = self.repo.layout.path_of(file)?;
        let digest = self.bundle.datafile(path)?.value.get("$file_sha256sum")?.as_str()?.to_owned();
        let bundled = |repo: &Repo| {
            let text = repo.text(file)?.into_owned();
            (Sha256::of(text.as_bytes()).to_string() == digest).then_some(text)
        };
        let text = bundled(&self.directory).or_else(|| bundled(self.revision()?))?;
        Some(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests;
