//! A bundle ready for queries: schema, look-up tables, and caches of earlier requests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use apollo_compiler::ast::OperationType;
use qontract_bundle::{Bundle, Map, Sha256};

use crate::answer::{Answer, Executed};
use crate::cache::Cache;
use crate::document::{Chosen, Document, limit};
use crate::entities::Entities;
use crate::execute::{Record, Task, execute};
use crate::failure::{Code, Failure};
use crate::footprint::{Footprint, Strays};
use crate::index::Index;
use crate::limits::Limits;
use crate::links::Links;
use crate::plan::Plan;
use crate::provenance::Provenance;
use crate::schema::{Schema, SchemaError};
use crate::sink::Sink;
use crate::source::View;
use crate::touched::Touched;
use crate::variables::Variables;

/// Approximate budget of the cache of parsed request texts, in bytes. A text that takes more than an eighth
/// of it is not cached: few clients send such a text again.
const REMEMBERED: usize = 8 << 20;
/// Budget of the cache of introspection answers, in bytes.
const REMEMBERED_ANSWERS: usize = 32 << 20;

/// A request, as it comes from a client or from the command line.
#[derive(Clone, Copy, Default)]
pub struct Request<'r> {
    /// The text.
    pub query: &'r str,
    /// Name of the operation to execute.
    pub operation: Option<&'r str>,
    /// Values of its variables.
    pub variables: Option<&'r Map>,
    /// Called regularly: whether the answer is no longer needed.
    pub cancelled: Option<&'r dyn Fn() -> bool>,
    /// Whether to record the origin of each object.
    pub provenance: bool,
    /// Whether to record which files are read.
    pub touched: bool,
    /// If set, restricts some root lists to these datafiles.
    pub only: Option<&'r Entities>,
}

/// State shared by all bundles with the same GraphQL types: their schema and the caches that depend on it
/// alone. Invalid as soon as the types change, which is found by their digest.
#[derive(Debug)]
struct Prepared {
    schema: Arc<Schema>,
    digest: Sha256,
    documents: Cache<Box<str>, Arc<Result<Document, Vec<Failure>>>>,
    /// Answers to introspection queries.
    introspections: Cache<Box<str>, Arc<Answer>>,
}

impl Prepared {
    fn new(schema: Arc<Schema>, digest: Sha256) -> Self {
        let (documents, introspections) = (Cache::new(REMEMBERED), Cache::new(REMEMBERED_ANSWERS));
        Self { schema, digest, documents, introspections }
    }
}

/// A bundle that answers queries.
#[derive(Debug)]
pub struct Engine {
    bundle: Arc<Bundle>,
    prepared: Arc<Prepared>,
    index: Index,
    limits: Limits,
    links: OnceLock<Links>,
}

/// The sink of an answer, and what is recorded during execution.
pub(crate) struct Output<S> {
    pub sink: S,
    pub record: Record,
}

impl Engine {
    /// Prepares `bundle` for queries.
    pub fn new(bundle: Arc<Bundle>) -> Result<Self, SchemaError> {
        let graphql = bundle.graphql();
        let prepared = Prepared::new(Arc::new(Schema::build(&graphql.value)?), graphql.digest);
        let index = Index::new(&bundle, &prepared.schema);
        Ok(Self::of(bundle, Arc::new(prepared), index, Limits::default()))
    }

    /// Prepares `bundle` incrementally: if its types equal those of this engine, schema, plans and unchanged
    /// tables are shared.
    pub fn beside(&self, bundle: Arc<Bundle>) -> Result<Self, SchemaError> {
        if bundle.graphql().digest == self.prepared.digest {
            let index = self.index.beside(&self.bundle, &bundle, &self.prepared.schema);
            return Ok(Self::of(bundle, Arc::clone(&self.prepared), index, self.limits.clone()));
        }
        Ok(Self { limits: self.limits.clone(), ..Self::new(bundle)? })
    }

    fn of(bundle: Arc<Bundle>, prepared: Arc<Prepared>, index: Index, limits: Limits) -> Self {
        Self { bundle, prepared, index, limits, links: OnceLock::new() }
    }

    /// The same engine with other limits and empty caches, as cached documents were checked against the old
    /// limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        let prepared = Prepared::new(Arc::clone(&self.prepared.schema), self.prepared.digest);
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

    /// Its schema.
    pub fn schema(&self) -> &Schema {
        &self.prepared.schema
    }

    /// Its look-up tables.
    pub fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { bundle: &self.bundle, index: &self.index }
    }

    /// Answers a request.
    pub fn answer(&self, request: Request<'_>) -> Answer {
        match self.ready(request) {
            Ok(ready) => ready.answer(),
            Err(answer) => answer,
        }
    }

    /// Parses, validates and plans a request without executing it; `Err` is the answer to a request that
    /// cannot be executed.
    pub fn ready<'e>(&'e self, request: Request<'e>) -> Result<Ready<'e>, Answer> {
        match self.understood(request) {
            Ok(Planned::Query { plan, variables, cost }) => {
                Ok(Ready { engine: self, request, plan, variables, cost })
            }
            Ok(Planned::Nothing(failure, rootless)) => Err(Answer::empty(&failure, rootless)),
            Err(failures) => Err(Answer::refused(&failures)),
        }
    }

    /// The footprint of a request, without executing it. Provenance, limits on answers and cancellation do
    /// not matter.
    pub fn footprint(&self, request: Request<'_>) -> Result<Footprint, Vec<Failure>> {
        match self.understood(request)? {
            Planned::Query { plan, variables, .. } => {
                Ok(crate::footprint::trace(self.schema(), &plan, &variables))
            }
            Planned::Nothing(..) => Ok(Footprint::default()),
        }
    }

    /// Datafiles that some reference reads as another type; computed on first use.
    pub fn strays(&self) -> &Strays {
        self.links().strays()
    }

    /// Builds the reference graph now, incrementally from the graph of another engine: only documents that
    /// differ are searched. Does nothing if the graph exists or the types differ.
    pub fn link_beside(&self, other: &Self) {
        if self.links.get().is_some() || !self.has_types_of(other) {
            return;
        }
        // The other graph first: `get_or_init` must not wait for another engine's cell while other threads
        // wait for this one.
        let theirs = other.links();
        self.links.get_or_init(|| theirs.beside(other.view(), self.schema(), self.view()));
    }

    /// The reference graph; built on first use.
    pub(crate) fn links(&self) -> &Links {
        self.links.get_or_init(|| Links::find(self.schema(), self.view()))
    }

    /// Executes a plan into a sink.
    pub(crate) fn execute<S: Sink>(
        &self,
        plan: &Plan,
        variables: &Variables,
        request: Request<'_>,
        sink: S,
    ) -> Executed<S> {
        let record = Record {
            provenance: request.provenance.then(Provenance::default),
            touched: request.touched.then(|| Touched::new(self.view())),
            entities: None,
        };
        self.execute_with(plan, variables, request, Output { sink, record })
    }

    /// Executes a plan, and records what the output requests.
    pub(crate) fn execute_with<S: Sink>(
        &self,
        plan: &Plan,
        variables: &Variables,
        Request { cancelled, only, .. }: Request<'_>,
        Output { sink, record }: Output<S>,
    ) -> Executed<S> {
        let (schema, view, limits) = (self.schema(), self.view(), &self.limits);
        let task = Task { schema, view, plan, variables, limits, cancelled, only };
        execute(task, sink, record)
    }

    /// The validated text of a request, from the cache if it was sent before.
    pub(crate) fn document(&self, text: &str) -> Arc<Result<Document, Vec<Failure>>> {
        if let Some(known) = self.prepared.documents.get(text) {
            return known;
        }
        let document = Arc::new(Document::prepare(self.schema(), text, &self.limits));
        // Estimated size of the parsed text: a multiple of its length, and never small.
        self.prepared.documents.insert(text.into(), Arc::clone(&document), 16 * (text.len() + 512));
        document
    }

    /// The plan of a request and its variables; `None` if it cannot be executed.
    pub(crate) fn planned(&self, request: Request<'_>) -> Option<(Arc<Plan>, Variables)> {
        match self.understood(request).ok()? {
            Planned::Query { plan, variables, .. } => Some((plan, variables)),
            Planned::Nothing(..) => None,
        }
    }

    /// Parses, validates and plans a request.
    fn understood(&self, request: Request<'_>) -> Result<Planned, Vec<Failure>> {
        match &*self.document(request.query) {
            Ok(document) => self.plan(document, request),
            Err(failures) => Err(failures.clone()),
        }
    }

    /// Plans a request whose text is validated.
    pub(crate) fn plan(&self, document: &Document, request: Request<'_>) -> Result<Planned, Vec<Failure>> {
        let one = |failure| vec![failure];
        let operation = match document.choose(request.operation).map_err(one)? {
            Chosen::Query(operation) => operation,
            Chosen::Rootless(type_, place) => {
                let word = match type_ {
                    OperationType::Mutation => "mutation",
                    _ => "subscription",
                };
                let message = format!("Schema is not configured to execute {word} operation.");
                let mut failure = Failure::new(Code::Internal, message);
                failure.locations.extend(place);
                return Ok(Planned::Nothing(failure, Some(word)));
            }
        };
        let schema = self.schema();
        let variables = Variables::coerce(schema, &operation.variables, request.variables, document.lines())?;
        let plan = match document.plan(schema, operation, &variables) {
            Ok(plan) => plan,
            Err(failure) if failure.code == Code::LimitExceeded => return Err(one(failure)),
            Err(failure) => return Ok(Planned::Nothing(failure, None)),
        };
        let (cost, most) = (crate::cost::estimate(schema, self.view(), &plan, &variables), self.limits.cost);
        if cost > most {
            let message = format!("The answer would have about {cost} objects, at most {most} are allowed.");
            return Err(one(limit(message)));
        }
        Ok(Planned::Query { plan, variables, cost })
    }
}

/// The result of planning a request.
pub(crate) enum Planned {
    /// A query to execute.
    Query {
        /// Its plan.
        plan: Arc<Plan>,
        /// The values of its variables.
        variables: Variables,
        /// Estimated number of objects in the answer.
        cost: u64,
    },
    /// A request whose answer is this error; and its kind, if it is not a query.
    Nothing(Failure, Option<&'static str>),
}

/// A request that is planned and not yet executed.
pub struct Ready<'e> {
    engine: &'e Engine,
    request: Request<'e>,
    plan: Arc<Plan>,
    variables: Variables,
    cost: u64,
}

impl Ready<'_> {
    /// Estimated number of objects in the answer.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Executes it.
    pub fn answer(self) -> Answer {
        let Self { engine, request, plan, variables, .. } = self;
        // Answers about the schema alone never change.
        let lasting =
            plan.only_meta && request.variables.is_none() && !request.provenance && !request.touched;
        let introspections = &engine.prepared.introspections;
        let key = lasting.then(|| format!("{}\n{}", request.operation.unwrap_or_default(), request.query));
        if let Some(known) = key.as_deref().and_then(|key| introspections.get(key)) {
            return (*known).clone();
        }
        let begun = Answer::begin(plan.usual_size.load(Ordering::Relaxed));
        let answer = Answer::executed(engine.execute(&plan, &variables, request, begun));
        plan.usual_size.store(answer.body.len(), Ordering::Relaxed);
        if let Some(key) = key {
            let cost = key.len() + answer.body.len();
            introspections.insert(key.into(), Arc::new(answer.clone()), cost);
        }
        answer
    }
}
