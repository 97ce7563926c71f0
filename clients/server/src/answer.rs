//! The response to a query.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ServerError;

/// A response without errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAnswer {
    body: String,
    data: Range<usize>,
    schemas: Vec<String>,
    /// The result of our extension, if the server has it.
    extension: Option<Range<usize>>,
}

/// The source locations of the objects in a response: for each file, JSON pointers into the data of the
/// response, with the JSON pointer into the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AnswerLocations {
    /// Locations in datafiles.
    pub datafiles: BTreeMap<String, BTreeMap<Box<str>, Box<str>>>,
    /// Locations in resources.
    pub resources: BTreeMap<String, BTreeMap<Box<str>, Box<str>>>,
}

/// The result of our extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AnswerExtension {
    /// The source locations, if they were requested.
    pub locations: Option<AnswerLocations>,
    /// The schemas that the query can read, each with the field that leads to it, if they were requested.
    pub reachable: Option<BTreeMap<String, String>>,
}

/// A GraphQL error of the server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GraphqlError {
    /// The message.
    pub message: String,
    /// The code of the error, and further details.
    #[serde(default)]
    pub extensions: ErrorExtensions,
}

/// The code of a GraphQL error, and further details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ErrorExtensions {
    /// The code.
    pub code: Option<String>,
    /// The schemas that the query can read and that are not allowed.
    #[serde(default)]
    pub schemas: Vec<String>,
}

/// The JSON body of a response.
#[derive(Deserialize)]
struct AnswerBody<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    errors: Option<Vec<GraphqlError>>,
    #[serde(borrow)]
    extensions: Option<Extensions<'a>>,
}

#[derive(Deserialize)]
struct Extensions<'a> {
    schemas: Option<Vec<String>>,
    #[serde(borrow)]
    qontract: Option<&'a RawValue>,
}

impl QueryAnswer {
    /// Parses a response. Fails if the response has errors, or lacks the list of schemas, which determines
    /// what an integration may read.
    pub(crate) fn parse(body: Vec<u8>) -> Result<Self, ServerError> {
        let malformed = |what| ServerError::Malformed { what, source: None };
        let body = String::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
        let wire = serde_json::from_str(&body);
        let AnswerBody { data, errors, extensions } =
            wire.map_err(|error| ServerError::Malformed { what: "it is not GraphQL", source: Some(error) })?;
        if let Some(errors) = errors.filter(|errors| !errors.is_empty()) {
            return Err(ServerError::GraphqlErrors(errors));
        }
        let range = |part: &RawValue| {
            let start = part.get().as_ptr().addr() - body.as_ptr().addr();
            start..start + part.get().len()
        };
        let data = range(data.ok_or_else(|| malformed("it has no `data`"))?);
        let extension = extensions.as_ref().and_then(|extensions| extensions.qontract).map(range);
        let schemas = extensions.and_then(|extensions| extensions.schemas);
        let schemas = schemas.ok_or_else(|| malformed("it has no `extensions.schemas`"))?;
        Ok(Self { body, data, schemas, extension })
    }

    /// Fails if the response lacks the result of our extension. Without the result, the server has ignored
    /// the extension, and the data might not be the data that was requested.
    pub(crate) fn require_extension(self) -> Result<Self, ServerError> {
        let what = "it ignores `extensions.qontract`, which the server announced";
        if self.extension.is_some() { Ok(self) } else { Err(ServerError::Malformed { what, source: None }) }
    }

    /// The result of our extension; empty if it was not requested.
    pub fn extension(&self) -> Result<AnswerExtension, ServerError> {
        let Some(range) = &self.extension else { return Ok(AnswerExtension::default()) };
        serde_json::from_str(&self.body[range.clone()]).map_err(|error| ServerError::Malformed {
            what: "its `extensions.qontract` is not valid",
            source: Some(error),
        })
    }

    /// The bytes of the response.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    /// The JSON of `data`.
    pub fn data(&self) -> &str {
        &self.body[self.data.clone()]
    }

    /// The schemas of the datafiles in the response, in order of first use.
    pub fn schemas(&self) -> &[String] {
        &self.schemas
    }
}

/// The errors of a request that was refused.
pub(crate) fn errors_of(body: &[u8]) -> ServerError {
    match serde_json::from_slice(body) {
        Ok(AnswerBody { errors: Some(errors), .. }) => ServerError::GraphqlErrors(errors),
        Ok(_) => ServerError::Malformed { what: "it has no errors", source: None },
        Err(error) => ServerError::Malformed { what: "it is not GraphQL", source: Some(error) },
    }
}

#[cfg(test)]
mod tests {
    use super::QueryAnswer;

    fn check(body: &str, expect: Result<(&str, &[&str]), &str>) {
        let answer = QueryAnswer::parse(body.as_bytes().to_vec());
        match (answer, expect) {
            (Ok(answer), Ok((data, schemas))) => {
                assert_eq!(answer.data(), data);
                assert_eq!(answer.schemas(), schemas);
                assert_eq!(answer.body(), body.as_bytes());
            }
            (Err(error), Err(expect)) => assert_eq!(error.to_string(), expect),
            (answer, _) => panic!("{body}: {answer:?}"),
        }
    }

    #[test]
    fn data_is_returned_verbatim() {
        check(
            "{\"data\": {\"a\" : 1.0} ,\"extensions\":{\"schemas\":[\"/a\"]}}\n",
            Ok((r#"{"a" : 1.0}"#, &["/a"])),
        );
    }

    #[test]
    fn errors_are_a_failure_with_data_or_without() {
        let two =
            r#"{"errors":[{"message":"no"},{"message":"never"}],"data":{"a":1},"extensions":{"schemas":[]}}"#;
        check(two, Err("the data server cannot execute the query: no (and 1 more)"));
        check(r#"{"errors":[{"message":"no"}]}"#, Err("the data server cannot execute the query: no"));
    }

    #[test]
    fn an_answer_without_a_list_of_schemas_is_malformed() {
        let expect = "the data server's response is malformed: it has no `extensions.schemas`";
        check(r#"{"data":{}}"#, Err(expect));
        check(r#"{"data":{},"extensions":{}}"#, Err(expect));
    }

    #[test]
    fn what_is_not_graphql_is_malformed() {
        check("<html>", Err("the data server's response is malformed: it is not GraphQL"));
        check("{}", Err("the data server's response is malformed: it has no `data`"));
        check(
            r#"{"errors":[],"data":null}"#,
            Err("the data server's response is malformed: it has no `data`"),
        );
    }
}
