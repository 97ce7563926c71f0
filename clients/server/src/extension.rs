//! Our extensions of a data server, which qontract-server does not have.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::QueryAnswer;
use crate::client::GraphqlQuery;
use crate::error::ServerError;

/// The header with which a client requests the names of the extensions, and in which the server returns them.
pub(crate) const EXTENSIONS_HEADER: &str = "qontract-extensions";

/// The extensions of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a name in the header")]
pub struct ServerExtensions {
    /// Queries can have a [`QueryExtension`].
    pub query: bool,
    /// Queries and resources can be sent as a [`Batch`].
    pub batch: bool,
    /// Two bundles can be compared.
    pub compare: bool,
    /// JSON pointers into the files of a bundle can be resolved to source lines (`file:line`).
    pub locate: bool,
}

impl ServerExtensions {
    /// Parses the header of a response. Unknown names are ignored.
    ///
    /// ```
    /// use qontract_client_server::ServerExtensions;
    ///
    /// let extensions = ServerExtensions::parse("query batch telepathy");
    /// assert!(extensions.query && extensions.batch && !extensions.compare);
    /// ```
    pub fn parse(header: &str) -> Self {
        let has = |name: &str| header.split_ascii_whitespace().any(|word| word == name);
        Self { query: has("query"), batch: has("batch"), compare: has("compare"), locate: has("locate") }
    }
}

/// The options of a query beyond GraphQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryExtension<'q> {
    /// Whether to return the source locations of the objects.
    #[serde(skip_serializing_if = "is_false")]
    pub locations: bool,
    /// Whether to return only the schemas that the query reads.
    #[serde(skip_serializing_if = "is_false")]
    pub check: bool,
    /// Whether to return only the schemas that the query can read, without executing the query.
    #[serde(skip_serializing_if = "is_false")]
    pub reachable: bool,
    /// Restricts root lists to these datafiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<&'q BTreeMap<Box<str>, BTreeSet<Box<str>>>>,
    /// The schemas that the query may read; a query that can read others fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_schemas: Option<&'q BTreeSet<String>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Several queries and resources of one bundle.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch<'q> {
    /// The queries.
    pub queries: &'q [GraphqlQuery<'q>],
    /// The paths of the resources.
    pub resources: &'q [&'q str],
    /// Whether to list the schemas that have a GraphQL type.
    pub typed_schemas: bool,
}

/// The response to a batch.
#[derive(Debug)]
pub struct BatchAnswer {
    /// The responses to the queries, in the order of the queries.
    pub answers: Vec<Result<QueryAnswer, ServerError>>,
    /// The contents of the resources that the bundle has.
    pub resources: BTreeMap<String, String>,
    /// The schemas that have a GraphQL type, if they were requested.
    pub typed_schemas: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchBody<'a> {
    #[serde(borrow)]
    answers: Vec<PartBody<'a>>,
    resources: BTreeMap<String, String>,
    #[serde(default)]
    typed_schemas: BTreeSet<String>,
}

#[derive(Deserialize)]
struct PartBody<'a> {
    #[serde(borrow)]
    body: &'a RawValue,
}

impl BatchAnswer {
    /// Parses the response to these queries.
    pub(crate) fn parse(body: &[u8], queries: &[GraphqlQuery<'_>]) -> Result<Self, ServerError> {
        let BatchBody { answers, resources, typed_schemas } = serde_json::from_slice(body)
            .map_err(|error| ServerError::Malformed { what: "it is not a batch", source: Some(error) })?;
        if answers.len() != queries.len() {
            return Err(ServerError::Malformed { what: "it lacks answers", source: None });
        }
        let answers = answers.iter().zip(queries).map(|(part, query)| {
            let answer = QueryAnswer::parse(part.body.get().as_bytes().to_vec())?;
            if query.extension.is_some() { answer.require_extension() } else { Ok(answer) }
        });
        Ok(Self { answers: answers.collect(), resources, typed_schemas })
    }
}
