//! Compiled schemas: the rules of each keyword.

use std::sync::Arc;

use qontract_bundle::{Map, Value};

use crate::failure::AllowedValues;
use crate::pattern::Pattern;
use crate::schema::format::StringFormat;

/// The index of a compiled schema.
pub type NodeId = usize;

/// A compiled schema.
#[derive(Debug)]
pub struct SchemaNode<'b> {
    /// The path of the file that contains the schema.
    pub file: &'b str,
    /// The JSON pointer in that file.
    pub pointer: String,
    /// The rules, in the order of the schema's keywords.
    pub rules: Vec<Keyword<'b>>,
}

/// A keyword of a schema.
#[derive(Debug)]
pub struct Keyword<'b> {
    /// The name; empty for a schema that is `false`.
    pub name: &'b str,
    /// The rule.
    pub rule: KeywordRule<'b>,
}

/// The rule of a keyword.
#[derive(Debug)]
pub enum KeywordRule<'b> {
    /// A constraint on the value itself.
    Assertion(Assertion<'b>),
    /// The value or its parts match other schemas.
    Subschemas(Subschemas<'b>),
    /// At least one of these schemas matches.
    AnyOf(Vec<NodeId>),
    /// Exactly one of these schemas matches.
    OneOf(Vec<NodeId>),
    /// The schema does not match.
    Not(NodeId),
    /// The schema matches at least one item.
    Contains(NodeId),
    /// The schema matches the names of all fields.
    PropertyNames(NodeId),
}

/// A constraint on a value itself, without subschemas.
#[derive(Debug)]
pub enum Assertion<'b> {
    /// No value is allowed.
    Forbidden,
    /// The value has one of these types.
    Type(Vec<&'b str>),
    /// The value is one of these values.
    Enum(&'b [Value], AllowedValues),
    /// The value is this value.
    Const(&'b Value, AllowedValues),
    /// A string matches a pattern.
    Pattern(Arc<Pattern>),
    /// A string has a format.
    Format(&'b str, StringFormat),
    /// A number is at least this number.
    Minimum(&'b Value),
    /// A number is at most this number.
    Maximum(&'b Value),
    /// A number is greater than this number.
    ExclusiveMinimum(&'b Value),
    /// A number is less than this number.
    ExclusiveMaximum(&'b Value),
    /// A number is a multiple of this number.
    MultipleOf(&'b Value),
    /// The minimum number of characters, items or fields.
    Min(CountedUnit, f64),
    /// The maximum number of characters, items or fields.
    Max(CountedUnit, f64),
    /// All items of a list are distinct.
    Unique,
    /// Fields that must be present.
    Required(Vec<&'b str>),
    /// Fields that must be present if another field is present.
    DependentRequired(Vec<(&'b str, Vec<&'b str>)>),
    /// The map has no additional fields.
    NoAdditionalFields(AdditionalFields<'b>),
    /// The list has no additional items. Holds the maximum number of items.
    NoAdditionalItems(usize),
}

/// The unit of a minimum or maximum count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedUnit {
    /// The characters of a string.
    Characters,
    /// The items of a list.
    Items,
    /// The fields of a map.
    Fields,
}

/// Subschemas, all of which a value or its parts must match.
#[derive(Debug)]
pub enum Subschemas<'b> {
    /// The target of a `$ref`, for the whole value.
    Ref(NodeId),
    /// Each of these schemas, for the whole value.
    AllOf(Vec<NodeId>),
    /// Each of these schemas whose field is present, for the whole value.
    Dependent(Vec<(&'b str, NodeId)>),
    /// Fields by name; sorted.
    Fields(Vec<(&'b str, NodeId)>),
    /// Fields by pattern.
    Matching(Vec<(Arc<Pattern>, NodeId)>),
    /// All other fields.
    AdditionalFields(AdditionalFields<'b>, NodeId),
    /// All items.
    Items(NodeId),
    /// Items by position.
    PositionalItems(Vec<NodeId>),
    /// The items starting at an index.
    AdditionalItems(usize, NodeId),
}

/// The fields that a schema does not define.
#[derive(Clone, Debug, Default)]
pub struct AdditionalFields<'b> {
    /// The fields that the schema defines by name.
    pub named: Option<&'b Map>,
    /// The patterns by which the schema defines fields: a field is defined if it matches any of these.
    pub patterns: Vec<Arc<Pattern>>,
}
