//! A handle to the data of one pinned bundle: declared queries, ad-hoc queries and resources by path.
//!
//! **Invariant:** a handle reads from one bundle for its whole lifetime; a reload elsewhere does not affect
//! it. Every read is logged, and a read of a schema that is not on the integration's allow-list is an error.

mod batch;
mod engine;
mod query_name;
mod reachability;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_bundle::{Map, Sha256};
use qontract_graphql::{ElementSelection, Engine, Node, Operation};
use qontract_telemetry::activity;

use crate::comparison_query::{Cause, CausesQuery, ComparisonQuery, ComparisonSurvey};
use crate::fault::Fault;
use crate::meta::{AdHocReads, DeclaredQuery, IntegrationMeta, QueryPresence};
use crate::source_location::SourceLocations;
use crate::state::digest;

pub use batch::ResourceBatch;
pub use engine::LoadedBundle;
use query_name::{abbreviate, quoted};
pub use reachability::{Reachability, Violation, reachability};

/// A GraphQL request to a bundle.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryRequest<'a> {
    /// The GraphQL document.
    pub text: &'a str,
    /// The operation to execute, if the document has several.
    pub operation: Option<&'a str>,
    /// The values of its variables.
    pub variables: Option<&'a Map>,
    /// Whether to return the source locations of objects. They take as much time as the data itself.
    pub places: bool,
    /// Restricts lists to these elements. Only [some sources](BundleReader::selects_elements) support it.
    pub only: Option<&'a ElementSelection>,
    /// The schemas that the query may read. A server refuses, without executing it, any query that can read other
    /// schemas. For a bundle in this process, the queries are checked before the run.
    pub allowed_schemas: Option<&'a BTreeSet<String>>,
}

/// The result of a request, as an untyped tree.
#[derive(Clone, Debug)]
pub struct UntypedAnswer {
    /// The data of the response.
    pub data: Node,
    /// The source locations of the objects in the data, if the source provides them.
    pub places: SourceLocations,
    /// The schemas of the objects that the request read.
    pub schemas: BTreeSet<String>,
}

/// Executes requests against one bundle, in this process or on a server.
pub trait BundleReader: fmt::Debug + Send + Sync {
    /// The name of the bundle.
    fn sha(&self) -> &str;

    /// The commit that the bundle was built from, if known.
    fn commit(&self) -> Option<&str>;

    /// The time of that commit, in seconds since 1970.
    fn commit_time(&self) -> Option<i64> {
        None
    }

    /// Executes a request.
    fn answer(&self, request: QueryRequest<'_>) -> Result<UntypedAnswer, DataError>;

    /// Executes a request and returns only the schemas of the objects that the request reads, not the data.
    fn check(&self, request: QueryRequest<'_>) -> Result<BTreeSet<String>, DataError> {
        self.answer(request).map(|answered| answered.schemas)
    }

    /// The content of a resource.
    fn resource(&self, path: &str) -> Result<Option<String>, DataError>;

    /// Fetches the contents of many resources with few requests; paths that are not in the bundle are omitted.
    /// Returns `None` if reading resources individually needs no requests.
    fn fetch_resources(
        &self,
        _paths: &BTreeSet<String>,
    ) -> Result<Option<BTreeMap<String, String>>, DataError> {
        Ok(None)
    }

    /// The schemas that these queries can read, according to the GraphQL types; `None` if the source cannot determine
    /// them. `prefetch` contains requests that will follow in any case, so that a server can receive them in the same
    /// request.
    fn reachability(
        &self,
        queries: &[DeclaredQuery],
        _prefetch: &[QueryRequest<'_>],
    ) -> Result<Option<Reachability>, DataError> {
        self.engine().map(|engine| reachability(engine, queries)).transpose()
    }

    /// Sends the requests that will follow as one request, if the bundle is on a server. If one of them fails, its
    /// error is returned by the request that follows.
    fn prefetch(&self, _requests: &[QueryRequest<'_>]) -> Result<(), DataError> {
        Ok(())
    }

    /// Compares this bundle with `base` for an integration. Returns `None` unless both bundles are on a server that
    /// compares bundles.
    fn survey(
        &self,
        _base: &dyn BundleReader,
        _query: &ComparisonQuery,
    ) -> Result<Option<ComparisonSurvey>, DataError> {
        Ok(None)
    }

    /// The causes of a difference between this bundle and `base`, from the server that compared them.
    fn causes(&self, _base: &dyn BundleReader, _query: &CausesQuery) -> Result<Vec<Cause>, DataError> {
        Ok(Vec::new())
    }

    /// Whether requests can be restricted to elements of lists.
    fn selects_elements(&self) -> bool {
        self.engine().is_some()
    }

    /// The GraphQL engine of the bundle, if the bundle is in this process.
    fn engine(&self) -> Option<&Arc<Engine>>;
}

/// The reason why a request for data failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DataError {
    /// The request or the data does not match the GraphQL types.
    #[error("cannot execute query {query}: {why}")]
    Refused {
        /// The name of the query.
        query: String,
        /// The reason why the query was refused.
        why: String,
    },
    /// The GraphQL types of the data lack fields of the query, and the query has no other error.
    #[error("cannot execute query {query}: {why}")]
    UnknownFields {
        /// The name of the query.
        query: String,
        /// The unknown fields, as `Type.field`; for a type that does not exist, only `Type`.
        fields: BTreeSet<String>,
        /// The reason why the query cannot be executed.
        why: String,
    },
    /// The source is unreachable or does not have the bundle.
    #[error("the data cannot be queried: {why}")]
    Unreachable {
        /// The reason why the source is unreachable.
        why: String,
    },
    /// The query read schemas that are not on the integration's allow-list.
    #[error("the query {query} reads {}, which the integration may not read", .schemas.iter().map(|schema| format!("`{schema}`")).collect::<Vec<_>>().join(", "))]
    Forbidden {
        /// The name of the query.
        query: String,
        /// The schemas that are not on the allow-list.
        schemas: BTreeSet<String>,
    },
    /// The integration made a request that it did not declare.
    #[error("the query {query} is not declared")]
    Undeclared {
        /// The name of the query.
        query: String,
    },
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        let text = error.to_string();
        match error {
            DataError::Refused { .. } | DataError::UnknownFields { .. } | DataError::Forbidden { .. } => {
                Fault::author(text)
            }
            DataError::Unreachable { .. } => Fault::remote(text),
            DataError::Undeclared { .. } => Fault::internal(text),
        }
    }
}

/// The result of a declared query.
#[derive(Clone, Debug)]
pub struct DeclaredAnswer<Q> {
    /// The data, as the type that was generated for the query.
    pub data: Q,
    /// The source locations of its objects.
    pub places: SourceLocations,
}

/// A log of the reads of one handle.
#[derive(Clone, Debug, Default)]
pub struct QueryLog {
    /// The schemas that each query read.
    pub schemas: BTreeMap<String, BTreeSet<String>>,
    /// Ad-hoc queries with the digests of their results. The digest is absent for a query that was only checked.
    pub ad_hoc: Vec<(String, Option<Sha256>)>,
    /// Resources that were read by path.
    pub resources: BTreeSet<String>,
    /// For each query, the schemas that it read and that are not on the allow-list.
    pub forbidden: BTreeMap<String, BTreeSet<String>>,
}

/// The data of one bundle, for one integration in one run.
///
/// ```
/// # use std::sync::Arc;
/// # use qontract_runtime::{BundleReader, LoadedBundle};
/// use qontract_runtime::{Data, IntegrationMeta, Operation, QueryPolicy, QuerySource, SourceLocation};
///
/// // `cargo xtask generate` generates such types from `query.graphql`.
/// #[derive(serde::Deserialize)]
/// struct Teams { teams: Vec<Team> }
/// #[derive(serde::Deserialize)]
/// struct Team { name: String }
/// impl Operation for Teams {
///     const SOURCE: QuerySource = QuerySource::new("Teams", "query Teams { teams { name } }", &[]);
/// }
///
/// # let json = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
/// #     "graphql": [
/// #         {"name": "Query", "fields": [
/// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
/// #         {"name": "Team", "fields": [{"name": "name", "type": "string"}]}],
/// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core"}}}"#;
/// # let bundle = qontract_bundle::load(json, &qontract_bundle::Pool::default())?;
/// # let engine = qontract_graphql::Engine::new(Arc::new(bundle))?;
/// # let bundle: Arc<dyn BundleReader> = Arc::new(LoadedBundle::new(Arc::new(engine)));
/// let meta = IntegrationMeta::new("groups", "Creates a group for each team").query::<Teams>();
/// let data = Data::new(bundle, QueryPolicy::of(&meta));
/// let answer = data.query::<Teams>()?;
/// assert_eq!(answer.data.teams[0].name, "core");
/// assert_eq!(answer.places.of("/teams/0"), Some(SourceLocation::datafile("/core.yml", "")));
///
/// let error = data.query_ad_hoc("{ teams { name } }", None).unwrap_err();
/// assert_eq!(error.to_string(), "the query `{ teams { name } }` is not declared");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Data {
    source: Arc<dyn BundleReader>,
    policy: Arc<QueryPolicy>,
    query_log: Arc<Mutex<QueryLog>>,
    /// Elements of lists to which declared queries are restricted.
    subset: Option<Arc<ElementSelection>>,
}

/// The requests that an integration may make.
#[derive(Clone, Debug, Default)]
pub struct QueryPolicy {
    /// The declared queries.
    pub queries: Vec<DeclaredQuery>,
    /// Whether the integration may make ad-hoc queries and read resources by path.
    pub allow_ad_hoc: bool,
    /// The allow-list of schemas that it may read; without one, all schemas may be read.
    pub allowed_schemas: Option<BTreeSet<String>>,
}

impl QueryPolicy {
    /// Creates the policy of an integration, without an allow-list of schemas.
    pub fn of(meta: &IntegrationMeta) -> Self {
        Self {
            queries: meta.queries.clone(),
            allow_ad_hoc: meta.ad_hoc_reads != AdHocReads::Never,
            allowed_schemas: None,
        }
    }
}

impl Data {
    /// Creates a handle to the bundle of `source` that allows the requests of this policy.
    pub fn new(source: Arc<dyn BundleReader>, terms: QueryPolicy) -> Self {
        Self { source, policy: Arc::new(terms), query_log: Arc::default(), subset: None }
    }

    /// The name of the bundle.
    pub fn sha(&self) -> &str {
        self.source.sha()
    }

    /// The commit that the bundle was built from, if known.
    pub fn commit(&self) -> Option<&str> {
        self.source.commit()
    }

    /// The time of that commit, in seconds since 1970.
    pub fn commit_time(&self) -> Option<i64> {
        self.source.commit_time()
    }

    /// Creates a handle to another bundle that allows the same requests as this handle and has an empty log.
    pub(crate) fn of_bundle(&self, source: Arc<dyn BundleReader>) -> Self {
        Self { source, policy: Arc::clone(&self.policy), query_log: Arc::default(), subset: None }
    }

    /// The source of the bundle.
    pub(crate) fn source(&self) -> &Arc<dyn BundleReader> {
        &self.source
    }

    /// The allow-list of schemas; without one, all schemas may be read.
    pub(crate) fn allowed_schemas(&self) -> Option<&BTreeSet<String>> {
        self.policy.allowed_schemas.as_ref()
    }

    /// Creates a handle to this data with an empty log, whose declared queries return only these elements.
    pub(crate) fn restricted_to(&self, part: &Arc<ElementSelection>) -> Self {
        Self { subset: Some(Arc::clone(part)), ..self.with_empty_log() }
    }

    /// Creates a handle to this data with an empty log, whose declared queries return only these datafiles of a root
    /// list. It is used to process large data in parts.
    #[must_use]
    pub fn restricted_to_datafiles<'p>(&self, list: &str, paths: impl IntoIterator<Item = &'p str>) -> Self {
        let paths = paths.into_iter().map(Box::from).collect();
        self.restricted_to(&Arc::new(ElementSelection::from([(list.into(), paths)])))
    }

    /// The elements to which declared queries are restricted, if any.
    pub(crate) fn subset(&self) -> Option<&Arc<ElementSelection>> {
        self.subset.as_ref()
    }

    /// Creates a handle to this data with an empty log.
    pub(crate) fn with_empty_log(&self) -> Self {
        Self { query_log: Arc::default(), ..self.clone() }
    }

    /// Adds the reads of another log to the log of this handle.
    pub(crate) fn merge_query_log(&self, other: &QueryLog) {
        let QueryLog { schemas, ad_hoc, resources, forbidden } = other;
        let mut log = self.query_log.lock();
        for (query, read) in schemas {
            log.schemas.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        for (query, read) in forbidden {
            log.forbidden.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        log.ad_hoc.extend_from_slice(ad_hoc);
        log.resources.extend(resources.iter().cloned());
    }

    /// Executes a declared query.
    pub fn query<Q: Operation>(&self) -> Result<DeclaredAnswer<Q>, DataError> {
        let answered = self.query_tree(&DeclaredQuery::of::<Q>())?;
        let refused = |why: String| DataError::Refused { query: quoted(Q::SOURCE.name()), why };
        let data = Q::deserialize(answered.data).map_err(|error| refused(error.to_string()))?;
        Ok(DeclaredAnswer { data, places: answered.places })
    }

    /// Executes a query that was [declared](IntegrationMeta::query_if_known) to be executed only if the GraphQL types
    /// of the data have all of its fields; otherwise, returns `None`.
    pub fn query_if_known<Q: Operation>(&self) -> Result<Option<DeclaredAnswer<Q>>, DataError> {
        let query = DeclaredQuery { presence: QueryPresence::IfKnown, ..DeclaredQuery::of::<Q>() };
        let Some(answered) = self.query_declared(&query)? else { return Ok(None) };
        let refused = |why: String| DataError::Refused { query: quoted(Q::SOURCE.name()), why };
        let data = Q::deserialize(answered.data).map_err(|error| refused(error.to_string()))?;
        Ok(Some(DeclaredAnswer { data, places: answered.places }))
    }

    /// Executes a declared query and returns an untyped tree. Returns `None` if the query is executed only if the
    /// types have all of its fields, and the types lack one of them.
    pub fn query_declared(&self, query: &DeclaredQuery) -> Result<Option<UntypedAnswer>, DataError> {
        match (self.query_tree(query), query.presence) {
            (Err(DataError::UnknownFields { .. }), QueryPresence::IfKnown) => Ok(None),
            (answered, _) => answered.map(Some),
        }
    }

    /// Executes a declared query and returns an untyped tree.
    pub fn query_tree(&self, query: &DeclaredQuery) -> Result<UntypedAnswer, DataError> {
        let name = quoted(&query.name);
        if !self.policy.queries.contains(query) {
            return Err(DataError::Undeclared { query: name });
        }
        let _activity = activity::begin(format!("query {name}"));
        self.record_answer(&name, self.source.answer(self.declared_request(query))?)
    }

    /// The request of a declared query.
    fn declared_request<'q>(&'q self, query: &'q DeclaredQuery) -> QueryRequest<'q> {
        QueryRequest {
            text: &query.text,
            operation: Some(&query.name),
            places: true,
            only: self.subset.as_deref(),
            allowed_schemas: self.policy.allowed_schemas.as_ref(),
            ..QueryRequest::default()
        }
    }

    /// Fetches the results of all declared queries with one request, if the bundle is on a server.
    pub(crate) fn prefetch_declared(&self) -> Result<(), DataError> {
        let requests: Vec<_> = self.policy.queries.iter().map(|query| self.declared_request(query)).collect();
        // Even without a prefetch, a single query takes only one request.
        if requests.len() < 2 {
            return Ok(());
        }
        let _activity = activity::begin("declared queries");
        self.source.prefetch(&requests)
    }

    /// Executes an ad-hoc query and logs the query with the digest of its result.
    pub fn query_ad_hoc(&self, text: &str, variables: Option<&Map>) -> Result<UntypedAnswer, DataError> {
        let name = self.ad_hoc_name(text)?;
        let _activity = activity::begin("ad-hoc query");
        let answered = self.source.answer(QueryRequest { text, variables, ..QueryRequest::default() })?;
        self.query_log.lock().ad_hoc.push((text.to_owned(), Some(digest(&answered.data))));
        self.record_answer(&name, answered)
    }

    /// Executes an ad-hoc query and returns only the schemas that it reads: the result may be a large part of the
    /// bundle.
    pub fn check(&self, text: &str) -> Result<BTreeSet<String>, DataError> {
        let name = self.ad_hoc_name(text)?;
        let _activity = activity::begin("ad-hoc query");
        let request = QueryRequest { text, ..QueryRequest::default() };
        let schemas = self.source.check(request)?;
        self.query_log.lock().ad_hoc.push((text.to_owned(), None));
        self.record_schemas(&name, &schemas)?;
        Ok(schemas)
    }

    /// A name for an ad-hoc query; fails if the integration may not make such queries.
    fn ad_hoc_name(&self, text: &str) -> Result<String, DataError> {
        let query = quoted(&abbreviate(text));
        if self.policy.allow_ad_hoc { Ok(query) } else { Err(DataError::Undeclared { query }) }
    }

    /// Fetches the contents of many resources, with few requests if the bundle is remote.
    pub fn resources(&self, paths: BTreeSet<String>) -> Result<ResourceBatch, DataError> {
        if !self.policy.allow_ad_hoc {
            return Err(DataError::Undeclared { query: "for resources".to_owned() });
        }
        let _activity = activity::begin("resources");
        ResourceBatch::fetch(self, paths)
    }

    /// The content of a resource.
    pub fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        if !self.policy.allow_ad_hoc {
            return Err(DataError::Undeclared { query: format!("for the resource {}", quoted(path)) });
        }
        self.query_log.lock().resources.insert(path.to_owned());
        self.source.resource(path)
    }

    /// The log of all reads so far.
    pub fn query_log(&self) -> QueryLog {
        self.query_log.lock().clone()
    }

    fn record_answer(&self, name: &str, answered: UntypedAnswer) -> Result<UntypedAnswer, DataError> {
        self.record_schemas(name, &answered.schemas).map(|()| answered)
    }

    /// Logs the schemas that a query read; fails if one of them is not on the allow-list.
    fn record_schemas(&self, name: &str, read: &BTreeSet<String>) -> Result<(), DataError> {
        let mut log = self.query_log.lock();
        log.schemas.entry(name.to_owned()).or_default().extend(read.iter().cloned());
        let Some(allowed) = &self.policy.allowed_schemas else { return Ok(()) };
        let schemas: BTreeSet<String> = read.difference(allowed).cloned().collect();
        if schemas.is_empty() {
            return Ok(());
        }
        log.forbidden.entry(name.to_owned()).or_default().extend(schemas.iter().cloned());
        Err(DataError::Forbidden { query: name.to_owned(), schemas })
    }
}
