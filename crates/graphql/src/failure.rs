//! GraphQL errors, in the response format of the GraphQL specification.

use qontract_bundle::json::JavaScriptWriter;

use crate::location::Location;

/// The machine-readable code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The request has a syntax error.
    ParseFailed,
    /// The request does not match the schema.
    ValidationFailed,
    /// A variable has the wrong type.
    BadUserInput,
    /// The operation is missing or ambiguous.
    OperationResolution,
    /// The data does not match the schema, or cannot be served.
    Internal,
    /// A filter uses a field that does not exist.
    BadFilterField,
    /// A limit is exceeded.
    LimitExceeded,
    /// The request was cancelled.
    Cancelled,
}

impl Code {
    /// The name of the code in `extensions.code`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::ParseFailed => "GRAPHQL_PARSE_FAILED",
            Code::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            Code::BadUserInput => "BAD_USER_INPUT",
            Code::OperationResolution => "OPERATION_RESOLUTION_FAILURE",
            Code::Internal => "INTERNAL_SERVER_ERROR",
            Code::BadFilterField => "BAD_FILTER_FIELD",
            Code::LimitExceeded => "LIMIT_EXCEEDED",
            Code::Cancelled => "CANCELLED",
        }
    }
}

/// A segment of a path in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorPathSegment {
    /// A key of an object.
    Key(Box<str>),
    /// An element of a list.
    Index(usize),
}

/// An error in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of error.
    pub code: Code,
    /// The message.
    pub message: String,
    /// Locations in the request.
    pub locations: Vec<Location>,
    /// Path in the response.
    pub path: Vec<ErrorPathSegment>,
    /// For an invalid filter: the type that lacks the field.
    pub type_: Option<Box<str>>,
}

impl Failure {
    /// The error for an exceeded limit.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(Code::LimitExceeded, message)
    }

    /// Creates an error without a location.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), locations: Vec::new(), path: Vec::new(), type_: None }
    }

    /// Appends the error as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut json = JavaScriptWriter(out);
        json.raw("{\"message\":");
        json.str(&self.message);
        if !self.locations.is_empty() {
            json.raw(",\"locations\":[");
            for (index, Location { line, column }) in self.locations.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                json.raw(&format!("{comma}{{\"line\":{line},\"column\":{column}}}"));
            }
            json.raw("]");
        }
        if !self.path.is_empty() {
            json.raw(",\"path\":[");
            for (index, step) in self.path.iter().enumerate() {
                if index > 0 {
                    json.raw(",");
                }
                match step {
                    ErrorPathSegment::Key(key) => json.str(key),
                    ErrorPathSegment::Index(index) => json.raw(&index.to_string()),
                }
            }
            json.raw("]");
        }
        json.raw(",\"extensions\":{\"code\":\"");
        json.raw(self.code.as_str());
        json.raw("\"");
        if let Some(type_) = &self.type_ {
            json.raw(",\"gqlType\":");
            json.str(type_);
        }
        json.raw("}}");
    }
}
