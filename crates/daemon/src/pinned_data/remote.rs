//! A bundle on a server, pinned by its sha.
//!
//! If the server has the extensions of qontract, a bundle on it is read like a bundle in this process: with source
//! locations, restricted to elements, and checked against the allow-list before it is read. Otherwise, the bundle is
//! read only with the features of qontract-server.

mod cache;
mod resources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cache::{AnswerCache, PrefetchedAnswer, RequestKey};
use qontract_access::ReadPermit;
use qontract_bundle::json::write_javascript;
use qontract_bundle::{Map, Value};
use qontract_client_http::{Http, Secret, Settings, Url};
use qontract_client_server::{
    AnswerLocations, Batch, BundleSelector, CommitInfo, GraphqlError, GraphqlQuery, QueryAnswer,
    QueryExtension, ServerClient, ServerError, ServerExtensions, ServerLease, Sha,
};
use qontract_config::GraphqlTable;
use qontract_graphql::{Engine, Node};
use qontract_runtime::affected::{Cause, CausesAnswer, CausesQuery, ComparisonQuery, ComparisonSurvey};
use qontract_runtime::allow_list::{Reachability, Violation};
use qontract_runtime::{
    BundleReader, DataError, DeclaredQuery, QueryPresence, QueryRequest, SourceLocation, SourceLocations,
    UntypedAnswer, unknown_fields,
};
use qontract_telemetry::activity;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use crate::bundle_analysis::{CompareRequest, DifferenceLines, DifferencePlaces, Lines, MAX_PLACES, Places};
use crate::exit::UsageError;
use crate::pinned_data::PinnedData;
use crate::reconciled_data::OpenError;

/// The server of a configuration.
pub struct ServerConnection {
    server: ServerClient,
    url: Url,
    runtime: Handle,
    /// Whether requests have a token. Without a token, no leases are requested, because the server would not grant
    /// them.
    has_token: bool,
}

/// Duration of a lease: the maximum that a server grants, which is also the maximum duration of a loop run. The lease
/// is released when the run ends, even if it has not expired.
const LEASE_DURATION: Duration = Duration::from_hours(1);

/// A lease on a bundle of the server. It is released when this value is dropped.
struct BundleLease {
    server: ServerClient,
    runtime: Handle,
    sha: Sha,
    lease: ServerLease,
}

impl Drop for BundleLease {
    fn drop(&mut self) {
        let (server, sha, lease) = (self.server.clone(), self.sha.clone(), self.lease.clone());
        let release = async move {
            let permit = ReadPermit::for_data();
            // An error is ignored, because a lease that cannot be released expires.
            let _ = tokio::time::timeout(Duration::from_secs(2), server.release(&permit, &sha, &lease)).await;
        };
        if Handle::try_current().is_ok() {
            self.runtime.spawn(release);
        } else {
            self.runtime.block_on(release);
        }
    }
}

impl ServerConnection {
    /// Creates the connection to the server of a configuration, without sending a request.
    pub fn new(graphql: &GraphqlTable, runtime: Handle) -> anyhow::Result<Self> {
        Self::with_limits(graphql, runtime, Settings::default())
    }

    /// Creates the connection to the server of a configuration with these request limits, without sending a request.
    pub fn with_limits(graphql: &GraphqlTable, runtime: Handle, limits: Settings) -> anyhow::Result<Self> {
        let url = Url::parse(&graphql.server)
            .map_err(|error| UsageError(format!("`graphql.server` is not a URL: {error}")))?;
        let http = Http::new(&ReadPermit::for_data(), limits)?;
        let token = graphql.token.as_deref().map(Secret::new);
        let has_token = token.is_some();
        Ok(Self { server: ServerClient::new(&http, url.clone(), token), url, runtime, has_token })
    }

    /// The sha of the latest bundle.
    pub fn latest(&self) -> anyhow::Result<String> {
        Ok(self.latest_sha()?.to_string())
    }

    fn latest_sha(&self) -> anyhow::Result<Sha> {
        let permit = ReadPermit::for_data();
        wait_for(&self.runtime, self.server.latest_sha(&permit))
            .with_context(|| format!("cannot read the data of `{}`", self.url))
    }

    /// The latest bundle. If `pinned` is false, each query uses the bundle that is the latest one at that time.
    pub fn head(&self, pinned: bool) -> anyhow::Result<RemoteBundle> {
        let sha = self.latest_sha()?;
        let address = if pinned { BundleSelector::Sha(sha.clone()) } else { BundleSelector::Latest };
        Ok(self.remote(&sha, address))
    }

    /// Requests a lease on a bundle. A failure is ignored: without a lease, a bundle stays loaded as long as
    /// it is queried.
    fn lease(&self, sha: &Sha) -> Option<BundleLease> {
        if !self.has_token {
            return None;
        }
        let permit = ReadPermit::for_data();
        let call = self.server.lease(&permit, sha, LEASE_DURATION);
        let lease = wait_for(&self.runtime, call).ok()??;
        Some(BundleLease {
            server: self.server.clone(),
            runtime: self.runtime.clone(),
            sha: sha.clone(),
            lease,
        })
    }

    /// The bundle with this sha, for the base of a comparison.
    pub fn base(&self, sha: &str) -> anyhow::Result<RemoteBundle> {
        let sha = Sha::parse(sha).ok_or_else(|| {
            UsageError(format!("`{sha}` is not the SHA-256 of a bundle, which has 64 digits"))
        })?;
        Ok(self.remote(&sha, BundleSelector::Sha(sha.clone())))
    }

    /// Identifies the server: its URL without credentials.
    pub fn identity(&self) -> String {
        let mut url = self.url.clone();
        // The calls fail for URLs that cannot have credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }

    /// Opens a bundle that the server had earlier.
    pub fn reopen(&self, sha: &str) -> Result<PinnedData, OpenError> {
        let name = Sha::parse(sha).context("it is not the sha of a bundle").map_err(OpenError::Lost)?;
        let permit = ReadPermit::for_data();
        let call = self.server.commit_info(&permit, &name);
        match wait_for(&self.runtime, call) {
            Err(error @ ServerError::UnknownSha(_)) => Err(OpenError::Lost(error.into())),
            Err(error) => Err(OpenError::Unavailable(error.into())),
            Ok(_) => self.base(sha).map(PinnedData::remote).map_err(OpenError::Lost),
        }
    }

    fn remote(&self, sha: &Sha, address: BundleSelector) -> RemoteBundle {
        let permit = ReadPermit::for_data();
        // A failure is ignored: if the server does not have the bundle, the first query reports it.
        let call = self.server.commit_info(&permit, sha);
        let info = wait_for(&self.runtime, call).ok();
        RemoteBundle {
            server: self.server.clone(),
            runtime: self.runtime.clone(),
            endpoint: match &address {
                BundleSelector::Sha(sha) => format!("{}sha/{sha}", self.url),
                BundleSelector::Latest => self.url.to_string(),
            },
            lease: matches!(address, BundleSelector::Sha(_)).then(|| self.lease(sha)).flatten(),
            cache: matches!(address, BundleSelector::Sha(_)).then(AnswerCache::default),
            address,
            sha: sha.to_string(),
            info,
        }
    }
}

/// A bundle on a server.
pub struct RemoteBundle {
    server: ServerClient,
    runtime: Handle,
    address: BundleSelector,
    endpoint: String,
    sha: String,
    info: Option<CommitInfo>,
    /// Response cache of a pinned bundle, whose responses never change.
    cache: Option<AnswerCache>,
    #[expect(dead_code, reason = "releases the lease when it is dropped")]
    lease: Option<BundleLease>,
}

impl RemoteBundle {
    /// The URL of the endpoint of the bundle.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The extensions of the server.
    fn extensions(&self) -> ServerExtensions {
        self.info.as_ref().map(|info| info.extensions).unwrap_or_default()
    }

    /// The extension with which a request is sent; `None` if the request needs no extension or the server supports
    /// none.
    fn extension<'q>(&self, request: &QueryRequest<'q>, form: ResultForm) -> Option<QueryExtension<'q>> {
        let extension = QueryExtension {
            locations: request.places && form == ResultForm::Data,
            check: form == ResultForm::ReadSchemas,
            reachable: form == ResultForm::ReachableSchemas,
            only: request.only,
            allowed_schemas: request.allowed_schemas,
        };
        Some(extension).filter(|one| self.extensions().query && *one != QueryExtension::default())
    }

    /// Sends a request. For a pinned bundle, a cached response is returned instead if there is one.
    fn request(&self, request: QueryRequest<'_>, form: ResultForm) -> Result<Arc<QueryAnswer>, DataError> {
        if request.only.is_some() && !self.extensions().query {
            return Err(refused_query(&request, "a server does not support partial queries".to_owned()));
        }
        let variables =
            request.variables.map(json).transpose().map_err(|why| refused_query(&request, why))?;
        let query = GraphqlQuery {
            text: request.text,
            variables: variables.as_ref(),
            operation: request.operation,
            extension: self.extension(&request, form),
        };
        let key = request_key(&query);
        if let Some(answer) = self.cache.as_ref().and_then(|cache| cache.get(&key)) {
            return Ok(answer);
        }
        if let Some(answer) = self.cache.as_ref().and_then(|cache| cache.take_prefetched(&key)) {
            return answer.map_err(|errors| failed_query(&request, ServerError::GraphqlErrors(errors)));
        }
        let permit = ReadPermit::for_data();
        let answer = self
            .wait_for(self.server.query(&permit, &self.address, query))
            .map_err(|error| failed_query(&request, error))?;
        let answer = Arc::new(answer);
        if let Some(cache) = &self.cache {
            cache.store(key, &answer);
        }
        Ok(answer)
    }

    fn wait_for<T: Send>(&self, call: impl Future<Output = T> + Send) -> T {
        wait_for(&self.runtime, call)
    }

    /// The sha of the bundle; `None` if it is not pinned.
    fn pinned_sha(&self) -> Option<&Sha> {
        match &self.address {
            BundleSelector::Sha(sha) => Some(sha),
            BundleSelector::Latest => None,
        }
    }

    /// Sends requests without variables as one batch, and, if requested, the schemas that have a GraphQL type. `None`
    /// if the server does not support batches.
    fn batch(
        &self,
        requests: &[BatchedRequest<'_>],
        typed_schemas: bool,
    ) -> Result<Option<BatchResult>, ServerError> {
        let Some(sha) = self.pinned_sha().filter(|_| self.extensions().batch) else { return Ok(None) };
        let queries = requests.iter().map(|one| self.plain_query(&one.request, one.form));
        let queries: Vec<GraphqlQuery<'_>> = queries.collect();
        let batch = Batch { queries: &queries, resources: &[], typed_schemas };
        let answer = self.wait_for(self.server.batch(&ReadPermit::for_data(), sha, batch))?;
        let keys = queries.iter().map(request_key);
        let answers = keys.zip(answer.answers).map(|(key, answer)| match answer {
            Ok(answer) => Ok(BatchedAnswer { key, answer: Ok(Arc::new(answer)) }),
            Err(ServerError::GraphqlErrors(errors)) => Ok(BatchedAnswer { key, answer: Err(errors) }),
            Err(other) => Err(other),
        });
        let answers = answers.collect::<Result<_, _>>()?;
        Ok(Some(BatchResult { answers, typed_schemas: answer.typed_schemas }))
    }

    /// Compares this bundle with `base` on the server. `None` if the server does not compare bundles or refuses the
    /// request, for example because it is too large.
    fn compare<R: DeserializeOwned + Send>(
        &self,
        base: &dyn BundleReader,
        request: &CompareRequest,
    ) -> Result<Option<R>, DataError> {
        let Some(head) = self.pinned_sha().filter(|_| self.extensions().compare) else { return Ok(None) };
        let Some(base) = Sha::parse(base.sha()).filter(|_| base.engine().is_none()) else { return Ok(None) };
        match self.wait_for(self.server.compare(&ReadPermit::for_data(), [&base, head], request)) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_transient() || matches!(error, ServerError::UnknownSha(_)) => {
                Err(unreachable(error))
            }
            Err(_) => Ok(None),
        }
    }

    /// The `file:line` of these source locations, in their order; empty if the server has no lines.
    pub fn locate(&self, places: &[SourceLocation]) -> Vec<String> {
        let Some(sha) = self.pinned_sha().filter(|_| self.extensions().locate) else { return Vec::new() };
        let mut all = Vec::new();
        for part in places.chunks(MAX_PLACES) {
            let request = Places { places: part.to_vec() };
            let lines = self.wait_for(self.server.locate(&ReadPermit::for_data(), sha, &request));
            // Without lines, the report names only files.
            let Ok(Lines { lines }) = lines else { return Vec::new() };
            all.extend(lines);
        }
        all
    }

    /// The `file:line` of differences between this bundle and `base`; empty if the server has no lines.
    pub fn locate_differences(&self, base: &Self, request: &DifferencePlaces) -> DifferenceLines {
        if request.changes.is_empty() && request.others.is_empty() {
            return DifferenceLines::default();
        }
        let lines = self.compare(base, &CompareRequest::Locate(request.clone()));
        lines.ok().flatten().unwrap_or_default()
    }

    /// The query of a request; the variables of the request are omitted.
    fn plain_query<'q>(&self, request: &QueryRequest<'q>, form: ResultForm) -> GraphqlQuery<'q> {
        let QueryRequest { text, operation, .. } = *request;
        let extension = self.extension(request, form);
        GraphqlQuery { text, operation, extension, ..GraphqlQuery::default() }
    }
}

/// The form of the result that a request returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultForm {
    /// The data, with source locations if the request asks for them.
    Data,
    /// The schemas that the query reads.
    ReadSchemas,
    /// The schemas that the query can read.
    ReachableSchemas,
}

/// A request in a batch.
#[derive(Clone, Copy)]
struct BatchedRequest<'q> {
    request: QueryRequest<'q>,
    form: ResultForm,
}

/// The response to a request in a batch.
struct BatchedAnswer {
    key: RequestKey,
    answer: PrefetchedAnswer,
}

/// The responses to the requests of a batch, in their order.
struct BatchResult {
    answers: Vec<BatchedAnswer>,
    typed_schemas: BTreeSet<String>,
}

impl std::fmt::Debug for RemoteBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl BundleReader for RemoteBundle {
    fn sha(&self) -> &str {
        &self.sha
    }

    fn commit(&self) -> Option<&str> {
        self.info.as_ref().map(|info| info.commit.as_str())
    }

    fn commit_time(&self) -> Option<i64> {
        self.info.as_ref()?.timestamp.parse().ok()
    }

    fn answer(&self, request: QueryRequest<'_>) -> Result<UntypedAnswer, DataError> {
        let answer = self.request(request, ResultForm::Data)?;
        let refused = |error: serde_json::Error| refused_query(&request, error.to_string());
        let data: Node = serde_json::from_str(answer.data()).map_err(refused)?;
        let schemas = answer.schemas().iter().cloned().collect();
        let locations = answer.extension().map_err(unreachable)?.locations;
        let places = locations.map(source_locations).unwrap_or_default();
        Ok(UntypedAnswer { data, places, schemas })
    }

    fn check(&self, request: QueryRequest<'_>) -> Result<BTreeSet<String>, DataError> {
        let answer = self.request(request, ResultForm::ReadSchemas)?;
        Ok(answer.schemas().iter().cloned().collect())
    }

    fn reachability(
        &self,
        queries: &[DeclaredQuery],
        prefetch: &[QueryRequest<'_>],
    ) -> Result<Option<Reachability>, DataError> {
        let requests = queries.iter().map(|query| {
            let operation = Some(query.name.as_str());
            let request = QueryRequest { text: &query.text, operation, ..QueryRequest::default() };
            BatchedRequest { request, form: ResultForm::ReachableSchemas }
        });
        let prefetch =
            prefetch.iter().map(|request| BatchedRequest { request: *request, form: ResultForm::Data });
        let requests: Vec<_> = requests.chain(prefetch).collect();
        let Some(BatchResult { mut answers, typed_schemas }) =
            self.batch(&requests, true).map_err(unreachable)?
        else {
            return Ok(None);
        };
        if let Some(cache) = &self.cache {
            answers.drain(queries.len()..).for_each(|one| cache.store_prefetched(one.key, one.answer));
        }
        let mut schemas = BTreeSet::new();
        for (query, BatchedAnswer { answer, .. }) in queries.iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    let reachable = answer.extension().map_err(unreachable)?.reachable.unwrap_or_default();
                    let reached = |(schema, field)| Violation { schema, query: query.name.clone(), field };
                    schemas.extend(reachable.into_iter().map(reached));
                }
                Err(errors) => {
                    let messages = messages(&errors);
                    if query.presence == QueryPresence::IfKnown && unknown_fields(&messages).is_some() {
                        continue;
                    }
                    let (query, why) = (format!("`{}`", query.name), messages.join("; "));
                    return Err(DataError::Refused { query, why });
                }
            }
        }
        Ok(Some(Reachability { schemas, typed: typed_schemas }))
    }

    fn prefetch(&self, requests: &[QueryRequest<'_>]) -> Result<(), DataError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let is_missing = |request: &&QueryRequest<'_>| {
            let is_plain = request.variables.is_none() && (request.only.is_none() || self.selects_elements());
            is_plain && !cache.contains(&request_key(&self.plain_query(request, ResultForm::Data)))
        };
        let missing: Vec<_> = requests
            .iter()
            .filter(is_missing)
            .map(|request| BatchedRequest { request: *request, form: ResultForm::Data })
            .collect();
        // Even without a batch, a single query takes only one request.
        if missing.len() < 2 {
            return Ok(());
        }
        match self.batch(&missing, false) {
            Ok(result) => {
                let answers = result.into_iter().flat_map(|result| result.answers);
                answers.for_each(|one| cache.store_prefetched(one.key, one.answer));
                Ok(())
            }
            // If the server does not respond, no further requests are sent, because it would not respond to them
            // either.
            Err(error) if error.is_transient() => Err(unreachable(error)),
            // The queries may exceed a limit together that none of them exceeds alone. Therefore, each query is sent
            // individually later.
            Err(_) => Ok(()),
        }
    }

    fn survey(
        &self,
        base: &dyn BundleReader,
        query: &ComparisonQuery,
    ) -> Result<Option<ComparisonSurvey>, DataError> {
        self.compare(base, &CompareRequest::Survey(query.clone()))
    }

    fn causes(&self, base: &dyn BundleReader, query: &CausesQuery) -> Result<Vec<Cause>, DataError> {
        let answer: Option<CausesAnswer> = self.compare(base, &CompareRequest::Causes(query.clone()))?;
        Ok(answer.unwrap_or_default().causes)
    }

    fn selects_elements(&self) -> bool {
        self.extensions().query
    }

    fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        self.fetch_resource(path)
    }

    fn fetch_resources(
        &self,
        paths: &BTreeSet<String>,
    ) -> Result<Option<BTreeMap<String, String>>, DataError> {
        self.fetch_many(paths).map(Some)
    }

    fn engine(&self) -> Option<&Arc<Engine>> {
        None
    }
}

/// The cache key of a query.
fn request_key(query: &GraphqlQuery<'_>) -> RequestKey {
    let GraphqlQuery { text, variables, operation, extension } = *query;
    let extension =
        extension.map(|extension| serde_json::to_string(&extension).expect("flags and strings are JSON"));
    RequestKey {
        text: text.to_owned(),
        operation: operation.map(str::to_owned),
        variables: variables.map(ToString::to_string),
        extension,
    }
}

fn source_locations(locations: AnswerLocations) -> SourceLocations {
    let AnswerLocations { datafiles, resources } = locations;
    let files = datafiles.into_iter().map(|file| (false, file));
    let files = files.chain(resources.into_iter().map(|file| (true, file)));
    let objects = files.flat_map(|(resource, (path, objects))| {
        let path: Box<str> = path.into();
        objects.into_iter().map(move |(at, pointer)| {
            let path = path.clone();
            (at, SourceLocation { resource, path, pointer })
        })
    });
    objects.collect()
}

fn messages(errors: &[GraphqlError]) -> Vec<&str> {
    errors.iter().map(|error| error.message.as_str()).collect()
}

/// Converts the server's error about a query.
fn failed_query(request: &QueryRequest<'_>, error: ServerError) -> DataError {
    let ServerError::GraphqlErrors(errors) = &error else { return unreachable(error) };
    let (query, why) = (query_name(request), error.to_string());
    let forbidden = errors.iter().find(|error| error.extensions.code.as_deref() == Some("FORBIDDEN_SCHEMA"));
    if let Some(forbidden) = forbidden {
        let schemas = forbidden.extensions.schemas.iter().cloned().collect();
        return DataError::Forbidden { query, schemas };
    }
    match unknown_fields(&messages(errors)) {
        Some(fields) => DataError::UnknownFields { query, fields, why },
        None => DataError::Refused { query, why },
    }
}

fn unreachable(error: ServerError) -> DataError {
    DataError::Unreachable { why: format!("{:#}", anyhow::Error::new(error)) }
}

/// Waits for a call: integrations are synchronous, and they query data from within the asynchronous runner. The call
/// runs on a separate thread. With `block_on` inside `block_on` on one thread, the inner call takes wake-ups of the
/// outer future, which then waits forever.
fn wait_for<T: Send>(runtime: &Handle, call: impl Future<Output = T> + Send) -> T {
    let call = activity::in_current_run(call);
    tokio::task::block_in_place(|| {
        let joined = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(call)).join());
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn refused_query(request: &QueryRequest<'_>, why: String) -> DataError {
    DataError::Refused { query: query_name(request), why }
}

fn query_name(request: &QueryRequest<'_>) -> String {
    request.operation.map_or_else(|| "without a name".to_owned(), |name| format!("`{name}`"))
}

fn json(variables: &Map) -> Result<serde_json::Value, String> {
    let mut text = Vec::new();
    write_javascript(&Value::Map(variables.clone()), &mut text);
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
