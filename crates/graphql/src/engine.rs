//! The query engine of a bundle: schema, lookup tables, and caches of parsed documents and plans.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use apollo_compiler::ast::OperationType;
use qontract_bundle::{Bundle, Map, Sha256};

use crate::answer::{Answer, Execution};
use crate::cache::Cache;
use crate::data_view::DataView;
use crate::document::{ChosenOperation, Document};
use crate::element_selection::ElementSelection;
use crate::execute::{ExecutionRecord, Task, execute};
use crate::failure::{Code, Failure};
use crate::footprint::{Footprint, MistypedTargets};
use crate::index::Index;
use crate::limits::QueryLimits;
use crate::plan::Plan;
use crate::provenance::Provenance;
use crate::read_set::ReadSet;
use crate::reference_graph::ReferenceGraph;
use crate::schema::{Schema, SchemaCache, SchemaError};
use crate::sink::Sink;
use crate::variables::Variables;

/// Approximate size of the document cache, in bytes. A document that needs more than an eighth of it is not
/// cached, because few clients send such a document twice.
const DOCUMENT_CACHE_BYTES: usize = 8 << 20;
/// Size of the introspection response cache, in bytes.
const INTROSPECTION_CACHE_BYTES: usize = 32 << 20;

/// A GraphQL request from a client or from the command line.
#[derive(Clone, Copy, Default)]
pub struct Request<'r> {
    /// The document: operations and fragments.
    pub query: &'r str,
    /// Name of the operation to execute.
    pub operation: Option<&'r str>,
    /// Values of the operation's variables.
    pub variables: Option<&'r Map>,
    /// Returns whether the response is no longer needed; called regularly during execution.
    pub cancelled: Option<&'r dyn Fn() -> bool>,
    /// Whether to record the origin of each object.
    pub provenance: bool,
    /// Whether to record which files are read.
    pub touched: bool,
    /// If set, restricts some root lists to these datafiles.
    pub only_elements: Option<&'r ElementSelection>,
}

/// State shared by all bundles with the same GraphQL types: the schema, and the caches that depend on the
/// schema alone. The state becomes invalid when the digest of the types changes.
#[derive(Debug)]
struct PreparedSchema {
    schema: Arc<Schema>,
    digest: Sha256,
    /// Cached documents, or the errors of invalid documents, by query string.
    documents: Cache<Box<str>, Arc<Result<Document, Vec<Failure>>>>,
    /// Cached responses to introspection queries.
    introspections: Cache<IntrospectionKey, Arc<Answer>>,
}

/// An introspection query without variables.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntrospectionKey {
    operation: Option<Box<str>>,
    query: Box<str>,
}

impl IntrospectionKey {
    fn bytes(&self) -> usize {
        self.query.len() + self.operation.as_ref().map_or(0, |name| name.len())
    }
}

impl PreparedSchema {
    fn new(schema: Arc<Schema>, digest: Sha256) -> Self {
        let (documents, introspections) =
            (Cache::new(DOCUMENT_CACHE_BYTES), Cache::new(INTROSPECTION_CACHE_BYTES));
        Self { schema, digest, documents, introspections }
    }
}

/// Executes queries on a bundle.
#[derive(Debug)]
pub struct Engine {
    bundle: Arc<Bundle>,
    prepared: Arc<PreparedSchema>,
    index: Index,
    limits: QueryLimits,
    /// Built on first use, or incrementally by [`derive_references`](Self::derive_references).
    references: OnceLock<ReferenceGraph>,
}

/// The sink of a response, and the data recorded during execution.
pub(crate) struct ExecutionOutput<S> {
    pub sink: S,
    pub record: ExecutionRecord,
}

impl Engine {
    /// Prepares `bundle` for queries.
    pub fn new(bundle: Arc<Bundle>) -> Result<Self, SchemaError> {
        Self::with_schemas(bundle, &SchemaCache::default())
    }

    /// Prepares `bundle` for queries with a cached schema, which may have been built to validate the bundle.
    pub fn with_schemas(bundle: Arc<Bundle>, schemas: &SchemaCache) -> Result<Self, SchemaError> {
        let prepared = PreparedSchema::new(schemas.schema_of(&bundle)?, bundle.graphql().digest);
        let index = Index::new(&bundle, &prepared.schema);
        Ok(Self::of(bundle, Arc::new(prepared), index, QueryLimits::default()))
    }

    /// Prepares `bundle` for queries, incrementally from this engine. If the GraphQL types are equal, both
    /// engines share the schema, the caches of documents and plans, and the unchanged lookup tables.
    /// Otherwise only the limits are copied.
    pub fn derive(&self, bundle: Arc<Bundle>) -> Result<Self, SchemaError> {
        self.derive_with_schemas(bundle, &SchemaCache::default())
    }

    /// Prepares `bundle` for queries like [`derive`](Self::derive). If the GraphQL types differ, the schema is taken
    /// from the cache.
    pub fn derive_with_schemas(
        &self,
        bundle: Arc<Bundle>,
        schemas: &SchemaCache,
    ) -> Result<Self, SchemaError> {
        if bundle.graphql().digest == self.prepared.digest {
            let index = self.index.derive(&self.bundle, &bundle, &self.prepared.schema);
            return Ok(Self::of(bundle, Arc::clone(&self.prepared), index, self.limits.clone()));
        }
        Ok(Self { limits: self.limits.clone(), ..Self::with_schemas(bundle, schemas)? })
    }

    fn of(bundle: Arc<Bundle>, prepared: Arc<PreparedSchema>, index: Index, limits: QueryLimits) -> Self {
        Self { bundle, prepared, index, limits, references: OnceLock::new() }
    }

    /// Sets the limits and clears the caches, because cached documents were checked against the old limits.
    #[must_use]
    pub fn with_limits(self, limits: QueryLimits) -> Self {
        let prepared = PreparedSchema::new(Arc::clone(&self.prepared.schema), self.prepared.digest);
        Self { limits, prepared: Arc::new(prepared), ..self }
    }

    /// Whether both engines have the same types.
    pub(crate) fn has_types_of(&self, other: &Self) -> bool {
        self.prepared.digest == other.prepared.digest
    }

    /// The bundle.
    pub fn bundle(&self) -> &Arc<Bundle> {
        &self.bundle
    }

    /// The GraphQL schema of the bundle.
    pub fn schema(&self) -> &Schema {
        &self.prepared.schema
    }

    /// The lookup tables of the bundle.
    pub fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn view(&self) -> DataView<'_> {
        DataView { bundle: &self.bundle, index: &self.index }
    }

    /// Executes a request.
    pub fn answer(&self, request: Request<'_>) -> Answer {
        match self.prepare(request) {
            Ok(ready) => ready.answer(),
            Err(answer) => answer,
        }
    }

    /// Parses, validates and plans a request without executing it; `Err` is the response to a request
    /// that cannot be executed.
    pub fn prepare<'e>(&'e self, request: Request<'e>) -> Result<PreparedQuery<'e>, Answer> {
        match self.plan_request(request) {
            Ok(PlannedRequest::Query { plan, variables, cost }) => {
                Ok(PreparedQuery { engine: self, request, plan, variables, cost })
            }
            Ok(PlannedRequest::ErrorOnly(failure, rootless)) => Err(Answer::empty(&failure, rootless)),
            Err(failures) => Err(Answer::refused(&failures)),
        }
    }

    /// Computes the footprint of a request without executing it. Provenance, response limits and cancellation
    /// are ignored.
    ///
    /// ```
    /// use qontract_graphql::{Engine, Request};
    ///
    /// # use std::sync::Arc;
    /// # use qontract_bundle::{Pool, load};
    /// # let bundle = br#"{"git_commit": "", "git_commit_timestamp": "", "schemas": {}, "resources": {},
    /// #     "graphql": [
    /// #         {"name": "Query", "fields": [
    /// #             {"name": "teams", "type": "Team", "isList": true, "datafileSchema": "/team.yml"}]},
    /// #         {"name": "Team", "fields": [
    /// #             {"name": "name", "type": "string"}, {"name": "description", "type": "string"}]}],
    /// #     "data": {"/core.yml": {"$schema": "/team.yml", "name": "core", "description": "The core team"}}}"#;
    /// # let engine = Engine::new(Arc::new(load(bundle, &Pool::default())?))?;
    /// let request = Request { query: "{ teams { name } }", ..Request::default() };
    /// let footprint = engine.footprint(request).expect("a valid query");
    /// assert_eq!(footprint.datafiles().map(|(schema, _)| schema).collect::<Vec<_>>(), ["/team.yml"]);
    ///
    /// // A change of the description cannot change the response.
    /// assert!(footprint.reads("/team.yml", "/name"));
    /// assert!(!footprint.reads("/team.yml", "/description"));
    /// assert!(!footprint.resources());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn footprint(&self, request: Request<'_>) -> Result<Footprint, Vec<Failure>> {
        match self.plan_request(request)? {
            PlannedRequest::Query { plan, variables, .. } => {
                Ok(crate::footprint::trace(self.schema(), &plan, &variables))
            }
            PlannedRequest::ErrorOnly(..) => Ok(Footprint::default()),
        }
    }

    /// Datafiles that a reference reads as a type other than that of their schema; computed on first use.
    pub fn mistyped_targets(&self) -> &MistypedTargets {
        self.references().mistyped_targets()
    }

    /// Builds the reference graph now, incrementally from the graph of another engine: only documents that
    /// differ are searched. Does nothing if the graph exists or the types differ.
    pub fn derive_references(&self, other: &Self) {
        if self.references.get().is_some() || !self.has_types_of(other) {
            return;
        }
        // The other graph is built first: `get_or_init` must not wait for the `OnceLock` of another engine
        // while other threads wait for that of this engine.
        let theirs = other.references();
        self.references.get_or_init(|| theirs.derive(other.view(), self.schema(), self.view()));
    }

    /// The reference graph; built on first use.
    pub(crate) fn references(&self) -> &ReferenceGraph {
        self.references.get_or_init(|| ReferenceGraph::build(self.schema(), self.view()))
    }

    /// Executes a plan into a sink.
    pub(crate) fn execute<S: Sink>(
        &self,
        plan: &Plan,
        variables: &Variables,
        request: Request<'_>,
        sink: S,
    ) -> Execution<S> {
        let record = ExecutionRecord {
            provenance: request.provenance.then(Provenance::default),
            touched: request.touched.then(|| ReadSet::new(self.view())),
            elements: None,
        };
        self.execute_with(plan, variables, request, ExecutionOutput { sink, record })
    }

    /// Executes a plan, and records the data that the output requests.
    pub(crate) fn execute_with<S: Sink>(
        &self,
        plan: &Plan,
        variables: &Variables,
        Request { cancelled, only_elements: only, .. }: Request<'_>,
        ExecutionOutput { sink, record }: ExecutionOutput<S>,
    ) -> Execution<S> {
        let (schema, view, limits) = (self.schema(), self.view(), &self.limits);
        let task = Task { schema, view, plan, variables, limits, cancelled, only_elements: only };
        execute(task, sink, record)
    }

    /// The validated document of a request, from the cache if the same document was sent before.
    pub(crate) fn document(&self, text: &str) -> Arc<Result<Document, Vec<Failure>>> {
        if let Some(cached) = self.prepared.documents.get(text) {
            return cached;
        }
        let document = Arc::new(Document::prepare(self.schema(), text, &self.limits));
        // The size of the parsed document is estimated as a fixed overhead plus a multiple of its length.
        self.prepared.documents.insert(text.into(), Arc::clone(&document), 16 * (text.len() + 512));
        document
    }

    /// The plan of a request and its variables; `None` if the request cannot be executed.
    pub(crate) fn planned_query(&self, request: Request<'_>) -> Option<(Arc<Plan>, Variables)> {
        match self.plan_request(request).ok()? {
            PlannedRequest::Query { plan, variables, .. } => Some((plan, variables)),
            PlannedRequest::ErrorOnly(..) => None,
        }
    }

    /// Parses, validates and plans a request.
    pub(crate) fn plan_request(&self, request: Request<'_>) -> Result<PlannedRequest, Vec<Failure>> {
        match &*self.document(request.query) {
            Ok(document) => self.plan(document, request),
            Err(failures) => Err(failures.clone()),
        }
    }

    /// Plans a request whose document is validated.
    pub(crate) fn plan(
        &self,
        document: &Document,
        request: Request<'_>,
    ) -> Result<PlannedRequest, Vec<Failure>> {
        let one = |failure| vec![failure];
        let operation = match document.choose(request.operation).map_err(one)? {
            ChosenOperation::Query(operation) => operation,
            ChosenOperation::Rootless(type_, location) => {
                let word = match type_ {
                    OperationType::Mutation => "mutation",
                    _ => "subscription",
                };
                let message = format!("Schema is not configured to execute {word} operation.");
                let mut failure = Failure::new(Code::Internal, message);
                failure.locations.extend(location);
                return Ok(PlannedRequest::ErrorOnly(failure, Some(word)));
            }
        };
        let schema = self.schema();
        let variables = Variables::coerce(schema, &operation.variables, request.variables, document.lines())?;
        let plan = match document.plan(schema, operation, &variables) {
            Ok(plan) => plan,
            Err(failure) if failure.code == Code::LimitExceeded => return Err(one(failure)),
            Err(failure) => return Ok(PlannedRequest::ErrorOnly(failure, None)),
        };
        let (cost, max) = (crate::cost::estimate(schema, self.view(), &plan, &variables), self.limits.cost);
        if cost > max {
            let message =
                format!("The response would contain about {cost} objects; at most {max} are allowed.");
            return Err(one(Failure::limit(message)));
        }
        Ok(PlannedRequest::Query { plan, variables, cost })
    }
}

/// The result of planning a request.
pub(crate) enum PlannedRequest {
    /// A query to execute.
    Query {
        /// The plan of the query.
        plan: Arc<Plan>,
        /// The values of the query's variables.
        variables: Variables,
        /// Estimated number of objects in the response.
        cost: u64,
    },
    /// A request whose response is only this error. The second field is the type of the operation if it is
    /// not a query.
    ErrorOnly(Failure, Option<&'static str>),
}

/// A planned request that is not executed yet.
pub struct PreparedQuery<'e> {
    engine: &'e Engine,
    request: Request<'e>,
    plan: Arc<Plan>,
    variables: Variables,
    cost: u64,
}

impl PreparedQuery<'_> {
    /// Estimated number of objects in the response.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Executes the query.
    pub fn answer(self) -> Answer {
        let Self { engine, request, plan, variables, .. } = self;
        // Introspection responses depend on the schema only, so they can be cached. A response with errors is
        // not cached: the query may have been cancelled.
        let is_cacheable =
            plan.only_introspection && request.variables.is_none() && !request.provenance && !request.touched;
        let introspections = &engine.prepared.introspections;
        let key = is_cacheable.then(|| IntrospectionKey {
            operation: request.operation.map(Into::into),
            query: request.query.into(),
        });
        if let Some(cached) = key.as_ref().and_then(|key| introspections.get(key)) {
            return (*cached).clone();
        }
        let buffer = Answer::begin(plan.last_size.load(Ordering::Relaxed));
        let answer = Answer::from_execution(engine.execute(&plan, &variables, request, buffer));
        plan.last_size.store(answer.body.len(), Ordering::Relaxed);
        if let Some(key) = key.filter(|_| !answer.has_errors) {
            let cost = key.bytes() + answer.body.len();
            introspections.insert(key, Arc::new(answer.clone()), cost);
        }
        answer
    }
}
