//! Data is a handle: the declared queries, resources by path, and recorded ad-hoc queries, all of one pinned bundle.
//!
//! **Invariant:** a handle answers from one bundle for as long as it lives; a reload elsewhere changes nothing. What it
//! answers is recorded, and what the integration may not read is an error.

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

/// A request to a source.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The text.
    pub text: &'a str,
    /// Which of its operations is meant.
    pub operation: Option<&'a str>,
    /// Values of its variables.
    pub variables: Option<&'a Map>,
    /// Whether the places of objects are needed, which cost as much as the answer.
    pub places: bool,
    /// Set if only some elements of lists are asked for. Only who has an [engine](Source::engine) is asked so.
    pub only: Option<&'a Entities>,
}

/// What a source answers.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The data.
    pub data: Node,
    /// Where its objects come from, as far as the source knows.
    pub places: Places,
    /// Schemas of the objects that were read.
    pub schemas: BTreeSet<String>,
}

/// Where a bundle is asked.
pub trait Source: fmt::Debug + Send + Sync {
    /// The name of the bundle.
    fn sha(&self) -> &str;

    /// The commit that the bundle was made of, if that is known.
    fn commit(&self) -> Option<&str>;

    /// When that commit was made, in seconds since 1970.
    fn committed(&self) -> Option<i64> {
        None
    }

    /// Answers a request.
    fn answer(&self, ask: Ask<'_>) -> Result<Answered, DataError>;

    /// Executes a request without keeping its answer: the schemas of the objects that it reads.
    fn check(&self, ask: Ask<'_>) -> Result<BTreeSet<String>, DataError> {
        self.answer(ask).map(|answered| answered.schemas)
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

    /// The bundle itself, if it is in this process.
    fn engine(&self) -> Option<&Arc<Engine>>;
}

/// Why the data does not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DataError {
    /// The request does not fit the data's types, or the data does not fit them.
    #[error("the query {query} cannot be answered: {why}")]
    Refused {
        /// Its name.
        query: String,
        /// Why.
        why: String,
    },
    /// The source could not be reached, or does not have the bundle.
    #[error("the data cannot be asked: {why}")]
    Unreachable {
        /// Why.
        why: String,
    },
    /// The integration may not read this.
    #[error("the query {query} reads {}, which the integration may not", .schemas.iter().map(|schema| format!("`{schema}`")).collect::<Vec<_>>().join(", "))]
    Forbidden {
        /// Its name.
        query: String,
        /// The schemas that are not on the list.
        schemas: BTreeSet<String>,
    },
    /// The integration asks something that it did not declare.
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
    /// Where its objects come from.
    pub places: Places,
}

/// What was asked of a handle.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Per query the schemas that its answer read.
    pub schemas: BTreeMap<String, BTreeSet<String>>,
    /// Ad-hoc queries with the digests of their answers; of one that was only checked there is none.
    pub ad_hoc: Vec<(String, Option<Sha256>)>,
    /// Resources that were read by path.
    pub resources: BTreeSet<String>,
    /// What was refused because it is not allowed, per query.
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

/// What an integration may ask.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Its declared queries.
    pub queries: Vec<Query>,
    /// Whether it may ask others, and read resources by path.
    pub looks_up: bool,
    /// The schemas that it may read; everything if there is no list.
    pub allowed: Option<BTreeSet<String>>,
}

impl Terms {
    /// What an integration asks, without a list of what it may read.
    pub fn of(about: &About) -> Self {
        Self { queries: about.queries.clone(), looks_up: about.looks_up != LooksUp::Never, allowed: None }
    }
}

impl Data {
    /// The data of a source on these terms.
    pub fn new(source: Arc<dyn Source>, terms: Terms) -> Self {
        Self { source, terms: Arc::new(terms), asked: Arc::default(), part: None }
    }

    /// The name of the bundle.
    pub fn sha(&self) -> &str {
        self.source.sha()
    }

    /// Where it is asked.
    pub(crate) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The schemas that may be read; everything if there is no list.
    pub(crate) fn allowed(&self) -> Option<&BTreeSet<String>> {
        self.terms.allowed.as_ref()
    }

    /// The same data on the same terms, of which declared queries see this part only.
    pub(crate) fn of_part(&self, part: &Arc<Entities>) -> Self {
        Self { part: Some(Arc::clone(part)), ..self.apart() }
    }

    /// The part that declared queries see, if it is not all.
    pub(crate) fn part(&self) -> Option<&Arc<Entities>> {
        self.part.as_ref()
    }

    /// The same data on the same terms, with nothing asked yet.
    pub(crate) fn apart(&self) -> Self {
        Self { asked: Arc::default(), ..self.clone() }
    }

    /// Writes down that this was asked.
    pub(crate) fn count_as_asked(&self, other: &Asked) {
        let Asked { schemas, ad_hoc, resources, forbidden } = other;
        let mut asked = self.asked.lock();
        for (query, read) in schemas {
            asked.schemas.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        for (query, read) in forbidden {
            asked.forbidden.entry(query.clone()).or_default().extend(read.iter().cloned());
        }
        asked.ad_hoc.extend_from_slice(ad_hoc);
        asked.resources.extend(resources.iter().cloned());
    }

    /// Answers a declared query.
    pub fn query<Q: Operation>(&self) -> Result<Answer<Q>, DataError> {
        let answered = self.declared(&Query::of::<Q>())?;
        let refused = |why: String| DataError::Refused { query: quoted(Q::SOURCE.name()), why };
        let data = Q::deserialize(answered.data).map_err(|error| refused(error.to_string()))?;
        Ok(Answer { data, places: answered.places })
    }

    /// Answers a declared query with a tree.
    pub fn declared(&self, query: &Query) -> Result<Answered, DataError> {
        let name = quoted(&query.name);
        if !self.terms.queries.contains(query) {
            return Err(DataError::Undeclared { query: name });
        }
        let only = self.part.as_deref();
        let ask =
            Ask { text: &query.text, operation: Some(&query.name), variables: None, places: true, only };
        let _doing = activity::begin(format!("query {name}"));
        self.permitted(&name, self.source.answer(ask)?)
    }

    /// Answers a query that is not declared. It is recorded with the digest of its answer.
    pub fn ad_hoc(&self, text: &str, variables: Option<&Map>) -> Result<Answered, DataError> {
        let name = self.undeclared(text)?;
        let _doing = activity::begin("a query of its own");
        let answered =
            self.source.answer(Ask { text, operation: None, variables, places: false, only: None })?;
        self.asked.lock().ad_hoc.push((text.to_owned(), Some(digest(&answered.data))));
        self.permitted(&name, answered)
    }

    /// Executes a query that is not declared, and returns the schemas that it reads instead of its answer, which may be a large part of the bundle.
    pub fn check(&self, text: &str) -> Result<BTreeSet<String>, DataError> {
        let name = self.undeclared(text)?;
        let _doing = activity::begin("a query of its own");
        let ask = Ask { text, operation: None, variables: None, places: false, only: None };
        let schemas = self.source.check(ask)?;
        self.asked.lock().ad_hoc.push((text.to_owned(), None));
        self.permit(&name, &schemas)?;
        Ok(schemas)
    }

    /// The name of a query that is not declared, if the integration may ask such queries.
    fn undeclared(&self, text: &str) -> Result<String, DataError> {
        let query = quoted(&abridged(text));
        if self.terms.looks_up { Ok(query) } else { Err(DataError::Undeclared { query }) }
    }

    /// The texts of many resources, which a remote bundle answers with few requests.
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

    /// What was asked so far.
    pub fn asked(&self) -> Asked {
        self.asked.lock().clone()
    }

    fn permitted(&self, name: &str, answered: Answered) -> Result<Answered, DataError> {
        self.permit(name, &answered.schemas).map(|()| answered)
    }

    /// Records the schemas that a query read; fails if one of them may not be read.
    fn permit(&self, name: &str, read: &BTreeSet<String>) -> Result<(), DataError> {
        let mut asked = self.asked.lock();
        asked.schemas.entry(name.to_owned()).or_default().extend(read.iter().cloned());
        let Some(allowed) = &self.terms.allowed else { return Ok(()) };
        let schemas: BTreeSet<String> = read.difference(allowed).cloned().collect();
        if schemas.is_empty() {
            return Ok(());
        }
        asked.forbidden.entry(name.to_owned()).or_default().extend(schemas.iter().cloned());
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
