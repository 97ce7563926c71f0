//! The failures of a value against a schema, before they become findings.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Plain;

/// A position in a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaPlace {
    /// The path of the schema.
    pub file: String,
    /// The JSON pointer in the schema.
    pub pointer: String,
}

/// One failure of a value against a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaFailure {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The failed keyword.
    pub keyword: Option<SchemaPlace>,
    /// The kind of the failure.
    pub kind: FailureKind,
}

/// The kinds of failures of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum FailureKind {
    /// The value has fields that the schema does not define.
    UnknownFields(Vec<String>),
    /// The value lacks a required field.
    MissingField(String),
    /// The value has none of these types.
    Type(Vec<String>),
    /// The value is not one of these values.
    Enum(AllowedValues),
    /// The value does not match the pattern.
    Pattern,
    /// Matching the pattern exceeded the backtracking limit.
    CostlyPattern,
    /// The value does not have this format.
    Format(String),
    /// The number is out of range. Holds the limit that it violates.
    Range(String),
    /// The string is too long or too short. Holds the limit that it violates.
    Length(String),
    /// The value has too many or too few items or fields. Holds the limit that it violates.
    Count(String),
    /// The list contains none of these values, but must contain one.
    NotContained(AllowedValues),
    /// The list contains an item twice.
    DuplicateItem,
    /// The value matches no alternative. Holds the failures of each alternative.
    NoBranch(Vec<Vec<SchemaFailure>>),
    /// The value matches more than one alternative. Holds their indices.
    ManyBranches(Vec<usize>),
    /// The name of a field is not valid. Holds the name and the kind of the failure.
    FieldName(String, Box<FailureKind>),
    /// No value is allowed.
    Forbidden,
    /// The check exceeded its step or depth limit.
    TooComplex,
    /// The number of failures exceeds the limit.
    TooMany,
}

/// The values that a schema allows, shared by all failures that report them.
#[derive(Clone, PartialEq)]
pub struct AllowedValues(pub Arc<[Plain]>);

impl fmt::Debug for AllowedValues {
    /// Shows at most 16 values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values: {:?}", self.0.len(), &self.0[..self.0.len().min(16)])
    }
}
