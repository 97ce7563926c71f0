//! A handle to the data of one pinned bundle: declared queries, ad-hoc queries and resources by path.
//!
//! **Invariant:** a handle answers from one bundle for as long as it lives; a reload elsewhere does not
//! affect it. Every read is logged, and a read of a schema that is not on the integration's allow-list is an
//! error.

mod batch;
mod engine;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use qontract_bundle::{Map, Sha256};
use qontract_graphql::{Engine, Entities, Node, Operation};
use qontract_telemetry::activity;

use crate::about::{About, LooksUp, Query};
use crate::fault::Fault;
use crate::place::Places;
use crate::state::digest;

pub use batch::ResourceBatch;
pub use engine::Loaded;

/// A GraphQL request to a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The GraphQL text.
    pub text: &'a str,
    /// The operation to execute, if the text has several.
    pub operation: Option<&'a str>,
    /// Values of its variables.
    pub variables: Option<&'a Map>,
    /// Whether to return the source locations of objects, which cost as much as the answer.
    pub places: bool,
    /// Restricts lists to these elements. Only sources with an [engine](Source::engine) support it.
    pub only: Option<&'a Entities>,
}

/// The answer to a request, as an untyped tree.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The data.
    pub data: Node,
    /// The source locations of its objects, as far as the source knows them.
    pub places: Places,
    /// The schemas of the objects that the request read.
    pub schemas: BTreeSet<String>,
}

/// Answers requests about one bundle, in this process or on a server.
pub trait Source: fmt::Debug + Send + Sync {
    /// The name of the bundle.
    fn sha(&self) -> &str;

    /// The commit that the bundle was built from, if known.
    fn commit(&self) -> Option<&str>;

    /// The time of that commit, in seconds since 1970.
    fn committed(&self) -> Option<i64> {
        None
    }

    /// Answers a request.
    fn answer(&self, request: Ask<'_>) -> Result<Answered, DataError>;

    /// Executes a request and returns only the schemas of the objects that it reads, not the answer.
    fn check(&self, request: Ask<'_>) -> Result<BTreeSet<String>, DataError> {
        self.answer(request).map(|answered| answered.schemas)
    }

    /// The text of a resource.
    fn resource(&self, path: &str) -> Result<Option<String>, DataError>;

    /// Fetches the texts of many resources with few requests; a path that the bundle lacks is left out.
    /// `None` if reading them one by one costs no requests.
    fn fetch_resources(
        &self,
        _paths: &BTreeSet<String>,
    ) -> Result<Option<BTreeMap<String, String>>, DataError> {
        Ok(None)
    }

    /// The GraphQL engine of the bundle, if the bundle is in this process.
    fn engine(&self) -> Option<&Arc<Engine>>;
}

/// The reason why a request for data failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DataError {
    /// The request or the data does not match the GraphQL types.
    #[error("the query {query} cannot be answered: {why}")]
    Refused {
        /// Its name.
        query: String,
        /// The reason.
        why: String,
    },
    /// The source is unreachable, or does not have the bundle.
    #[error("the data cannot be queried: {why}")]
    Unreachable {
        /// The reason.
        why: String,
    },
    /// The query read schemas that are not on the integration's allow-list.
    #[error("the query {query} reads {}, which the integration may not", .schemas.iter().map(|schema| format!("`{schema}`")).collect::<Vec<_>>().join(", "))]
    Forbidden {
        /// Its name.
        query: String,
        /// The schemas that are not on the allow-list.
        schemas: BTreeSet<String>,
    },
    /// The integration made a request that it did not declare.
    #[error("the query {query} is not declared")]
    Undeclared {
        /// Its name.
        query: String,
    },
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        let text = error.to_string();
        match error {
            DataError::Refused { .. } | DataError::Forbidden { .. } => Fault::author(text),
            DataError::Unreachable { .. } => Fault::remote(text),
            DataError::Undeclared { .. } => Fault::us(text),
        }
    }
}

/// The answer to a declared query.
#[derive(Clone, Debug)]
pub struct Answer<Q> {
    /// The data.
    pub data: Q,
    /// The source locations of its objects.
    pub places: Places,
}

/// A log of the reads of one handle.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The schemas that each query read.
    pub schemas: BTreeMap<String, BTreeSet<String>>,
    /// Ad-hoc queries with the digests of their answers. A query that was only checked has no digest.
    pub ad_hoc: Vec<(String, Option<Sha256>)>,
    /// Resources that were read by path.
    pub resources: BTreeSet<String>,
    /// The schemas that each query read although they are not on the allow-list.
    pub forbidden: BTreeMap<String, BTreeSet<String>>,
}

/// The data of one bundle, for one integration in one run.
#[derive(Clone, Debug)]
pub struct Data {
    source: Arc<dyn Source>,
    terms: Arc<Terms>,
    asked: Arc<Mutex<Asked>>,
    /// Elements of lists to which declared queries are restricted.
    part: Option<Arc<Entities>>,
}

/// The requests that an integration may make.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Its declared queries.
    pub queries: Vec<Query>,
    /// Whether it may make ad-hoc queries and read resources by path.
    pub looks_up: bool,
    /// The allow-list of schemas that it may read; without one it may read everything.
    pub allowed: Option<BTreeSet<String>>,
}

impl Terms {
    /// The policy of an integration, without an allow-list of schemas.
    pub fn of(about: &About) -> Self {
        Self { queries: about.queries.clone(), looks_up: about.looks_up != LooksUp::Never, allowed: None }
    }
}

impl Data {
    /// A handle to the bundle of `source` that allows the requests of this policy.
    pub fn new(source: Arc<dyn Source>, terms: Terms) -> Self {
        Self { source, terms: Arc::new(terms), asked: Arc::default(), part: None }
    }

    /// The name of the bundle.
    pub fn sha(&self) -> &str {
        self.source.sha()
    }

    /// The source of the bundle.
    pub(crate) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The allow-list of schemas; without one everything may be read.
    pub(crate) fn allowed(&self) -> Option<&BTreeSet<String>> {
        self.terms.allowed.as_ref()
    }

    /// A handle to the same data whose declared queries return only these elements. Its log is empty.
    pub(crate) fn of_part(&self, part: &Arc<Entities>) -> Self {
        Self { part: Some(Arc::clone(part)), ..self.apart() }
    }

    /// The elements to which declared queries are restricted, if they are.
    pub(crate) fn part(&self) -> Option<&Arc<Entities>> {
        self.part.as_ref()
    }

    /// A handle to the same data with an empty log.
    pub(crate) fn apart(&self) -> Self {
        Self { asked: Arc::default(), ..self.clone() }
    }

    /// Adds the reads of another log to the log of this handle.
    pub(crate) fn count_as_asked(&self, other: &Asked) {
        let Asked { schemas, ad_hoc, resources, forbidden } = other;
        let mut log = self.asked.lock();
        for (query, read) in schemas {
            log.schemas.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        for (query, read) in forbidden {
            log.forbidden.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        log.ad_hoc.extend_from_slice(ad_hoc);
        log.resources.extend(resources.iter().cloned());
    }

    /// Answers a declared query.
    pub fn query<Q: Operation>(&self) -> Result<Answer<Q>, DataError> {
        let answered = self.declared(&Query::of::<Q>())?;
        let refused = |why: String| DataError::Refused { query: quoted(Q::SOURCE.name()), why };
        let data = Q::deserialize(answered.data).map_err(|error| refused(error.to_string()))?;
        Ok(Answer { data, places: answered.places })
    }

    /// Answers a declared query with an untyped tree.
    pub fn declared(&self, query: &Query) -> Result<Answered, DataError> {
        let name = quoted(&query.name);
        if !self.terms.queries.contains(query) {
            return Err(DataError::Undeclared { query: name });
        }
        let only = self.part.as_deref();
        let request =
            Ask { text: &query.text, operation: Some(&query.name), variables: None, places: true, only };
        let _doing = activity::begin(format!("query {name}"));
        self.permitted(&name, self.source.answer(request)?)
    }

    /// Answers an ad-hoc query. It is logged with the digest of its answer.
    pub fn ad_hoc(&self, text: &str, variables: Option<&Map>) -> Result<Answered, DataError> {
        let name = self.undeclared(text)?;
        let _doing = activity::begin("ad-hoc query");
        let answered =
            self.source.answer(Ask { text, operation: None, variables, places: false, only: None })?;
        self.asked.lock().ad_hoc.push((text.to_owned(), Some(digest(&answered.data))));
        self.permitted(&name, answered)
    }

    /// Executes an ad-hoc query and returns only the schemas that it reads: its answer may be a large part of
    /// the bundle.
    pub fn check(&self, text: &str) -> Result<BTreeSet<String>, DataError> {
        let name = self.undeclared(text)?;
        let _doing = activity::begin("ad-hoc query");
        let request = Ask { text, operation: None, variables: None, places: false, only: None };
        let schemas = self.source.check(request)?;
        self.asked.lock().ad_hoc.push((text.to_owned(), None));
        self.permit(&name, &schemas)?;
        Ok(schemas)
    }

    /// A name for an ad-hoc query; fails if the integration may not make such queries.
    fn undeclared(&self, text: &str) -> Result<String, DataError> {
        let query = quoted(&abridged(text));
        if self.terms.looks_up { Ok(query) } else { Err(DataError::Undeclared { query }) }
    }

    /// Fetches the texts of many resources; a remote bundle needs few requests for them.
    pub fn resources(&self, paths: BTreeSet<String>) -> Result<ResourceBatch, DataError> {
        if !self.terms.looks_up {
            return Err(DataError::Undeclared { query: "for resources".to_owned() });
        }
        let _doing = activity::begin("resources");
        ResourceBatch::fetch(self, paths)
    }

    /// The text of a resource.
    pub fn resource(&self, path: &str) -> Result<Option<String>, DataError> {
        if !self.terms.looks_up {
            return Err(DataError::Undeclared { query: format!("for the resource {}", quoted(path)) });
        }
        self.asked.lock().resources.insert(path.to_owned());
        self.source.resource(path)
    }

    /// The log of all reads so far.
    pub fn asked(&self) -> Asked {
        self.asked.lock().clone()
    }

    fn permitted(&self, name: &str, answered: Answered) -> Result<Answered, DataError> {
        self.permit(name, &answered.schemas).map(|()| answered)
    }

    /// Logs the schemas that a query read; fails if one of them is not on the allow-list.
    fn permit(&self, name: &str, read: &BTreeSet<String>) -> Result<(), DataError> {
        let mut log = self.asked.lock();
        log.schemas.entry(name.to_owned()).or_default().extend(read.iter().cloned());
        let Some(allowed) = &self.terms.allowed else { return Ok(()) };
        let schemas: BTreeSet<String> = read.difference(allowed).cloned().collect();
        if schemas.is_empty() {
            return Ok(());
        }
        log.forbidden.entry(name.to_owned()).or_default().extend(schemas.iter().cloned());
        Err(DataError::Forbidden { query: name.to_owned(), schemas })
    }
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// The beginning of a text, on one line.
fn abridged(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
