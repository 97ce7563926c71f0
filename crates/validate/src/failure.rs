//! The failures of a value against a schema, before they become findings.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Plain;

/// One failure of a value against a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The failed keyword: path of the schema, and JSON pointer in it.
    pub keyword: Option<(String, String)>,
    /// The kind of the failure.
    pub wrong: Wrong,
}

/// The kinds of failures of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    /// The value has fields that the schema does not define.
    Unknown(Vec<String>),
    /// The value lacks a required field.
    Missing(String),
    /// The value has none of these types.
    Type(Vec<String>),
    /// The value is not one of these.
    Enum(Allowed),
    /// The value does not match the pattern.
    Pattern,
    /// Matching the pattern exceeded the backtracking limit.
    CostlyPattern,
    /// The value does not have this format.
    Format(String),
    /// The number is out of range, and in what way.
    Range(String),
    /// The text is too long or too short, and by which limit.
    Length(String),
    /// There are too many or too few items or fields, and by which limit.
    Count(String),
    /// The list contains none of these values, but must contain one.
    NotContained(Allowed),
    /// The list contains an item twice.
    Repeated,
    /// The value matches no alternative: the failures of each.
    NoBranch(Vec<Vec<Failure>>),
    /// The value matches more than one alternative: their indices.
    ManyBranches(Vec<usize>),
    /// The name of a field fails: the name, and the kind of its failure.
    Name(String, Box<Wrong>),
    /// No value is allowed.
    Forbidden,
    /// The check exceeded its step or depth limit.
    TooComplex,
    /// There are more failures than the limit.
    TooMany,
}

/// The values that a schema allows, shared by all failures that report them.
#[derive(Clone, PartialEq)]
pub struct Allowed(pub Arc<[Plain]>);

impl fmt::Debug for Allowed {
    /// Shows at most 16 values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values: {:?}", self.0.len(), &self.0[..self.0.len().min(16)])
    }
}
