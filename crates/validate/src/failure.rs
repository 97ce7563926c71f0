//! What a schema has against a value, before it is put into words.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Plain;

/// One failure of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// JSON pointer of the value.
    pub pointer: String,
    /// Where the keyword stands that failed: path of the schema, and JSON pointer in it.
    pub keyword: Option<(String, String)>,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    /// It has fields that the schema does not know.
    Unknown(Vec<String>),
    /// It lacks a field.
    Missing(String),
    /// It is of none of these types.
    Type(Vec<String>),
    /// It is none of these values.
    Enum(Allowed),
    /// It does not match the pattern.
    Pattern,
    /// Whether it matches the pattern could not be found out in reasonable time.
    CostlyPattern,
    /// It is not of this format.
    Format(String),
    /// The number is out of range, and how.
    Range(String),
    /// The text is too long or too short, and how.
    Length(String),
    /// There are too many or too few, and how.
    Count(String),
    /// The list has none of these values, and needs one.
    NotContained(Allowed),
    /// An item is there twice.
    Repeated,
    /// It is none of the alternatives: what each of them has against it.
    NoBranch(Vec<Vec<Failure>>),
    /// It is more than one of the alternatives: which.
    ManyBranches(Vec<usize>),
    /// The name of the field is wrong: the name, and how.
    Name(String, Box<Wrong>),
    /// It is not allowed at all.
    Forbidden,
    /// Whether it fits could not be found out in reasonable time.
    TooComplex,
    /// More is wrong than can be kept.
    TooMany,
}

/// The values that a schema allows, shared by all failures for want of one of them.
#[derive(Clone, PartialEq)]
pub struct Allowed(pub Arc<[Plain]>);

impl fmt::Debug for Allowed {
    /// Short, however many they are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values: {:?}", self.0.len(), &self.0[..self.0.len().min(16)])
    }
}
