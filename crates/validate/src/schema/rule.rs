//! Compiled schemas: the rules of each keyword.

use std::sync::Arc;

use qontract_bundle::{Map, Value};

use crate::failure::Allowed;
use crate::pattern::Pattern;
use crate::schema::format::Format;

/// The index of a compiled schema.
pub type NodeId = usize;

/// A compiled schema.
#[derive(Debug)]
pub struct Node<'b> {
    /// The path of its schema file.
    pub file: &'b str,
    /// Its JSON pointer there.
    pub pointer: String,
    /// Its rules, in the order of its keywords.
    pub rules: Vec<Keyword<'b>>,
}

/// A keyword of a schema.
#[derive(Debug)]
pub struct Keyword<'b> {
    /// Its name; empty for a schema that is `false`.
    pub name: &'b str,
    /// Its rule.
    pub rule: Rule<'b>,
}

/// The rule of a keyword.
#[derive(Debug)]
pub enum Rule<'b> {
    /// A constraint on the value itself.
    Own(Own<'b>),
    /// The value or its parts match other schemas.
    Parts(Parts<'b>),
    /// At least one of these schemas matches.
    AnyOf(Vec<NodeId>),
    /// Exactly one of these schemas matches.
    OneOf(Vec<NodeId>),
    /// The schema does not match.
    Not(NodeId),
    /// The schema matches at least one item.
    Contains(NodeId),
    /// The schema matches the names of all fields.
    Names(NodeId),
}

/// A constraint on a value itself, without subschemas.
#[derive(Debug)]
pub enum Own<'b> {
    /// No value is allowed.
    Forbidden,
    /// The value has one of these types.
    Type(Vec<&'b str>),
    /// The value is one of these.
    Enum(&'b [Value], Allowed),
    /// The value is this one.
    Const(&'b Value, Allowed),
    /// A text matches a pattern.
    Pattern(Arc<Pattern>),
    /// A text has a format.
    Format(&'b str, Format),
    /// A number is at least this one.
    Minimum(&'b Value),
    /// A number is at most this one.
    Maximum(&'b Value),
    /// A number is greater than this one.
    ExclusiveMinimum(&'b Value),
    /// A number is less than this one.
    ExclusiveMaximum(&'b Value),
    /// A number is a multiple of this one.
    MultipleOf(&'b Value),
    /// The minimum number of characters, items or fields.
    Least(Counted, f64),
    /// The maximum number of characters, items or fields.
    Most(Counted, f64),
    /// All items of a list are distinct.
    Unique,
    /// Fields that are present.
    Required(Vec<&'b str>),
    /// Fields that are present if another one is.
    Needs(Vec<(&'b str, Vec<&'b str>)>),
    /// There are no additional fields.
    Closed(Others<'b>),
    /// There are no additional items: the maximum number.
    ClosedList(usize),
}

/// The unit of a minimum or maximum count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The characters of a text.
    Characters,
    /// The items of a list.
    Items,
    /// The fields of a map.
    Fields,
}

/// Subschemas that a value or its parts must match, all of them.
#[derive(Debug)]
pub enum Parts<'b> {
    /// The target of a `$ref`, for the whole value.
    Whole(NodeId),
    /// Each of these, for the whole value.
    All(Vec<NodeId>),
    /// Each of these whose field is present, for the whole value.
    Dependent(Vec<(&'b str, NodeId)>),
    /// Fields by name; sorted.
    Fields(Vec<(&'b str, NodeId)>),
    /// Fields by pattern.
    Matching(Vec<(Arc<Pattern>, NodeId)>),
    /// All other fields.
    Others(Others<'b>, NodeId),
    /// All items.
    Items(NodeId),
    /// Items by position.
    Each(Vec<NodeId>),
    /// The items from an index on.
    Rest(usize, NodeId),
}

/// The fields that a schema does not define.
#[derive(Clone, Debug, Default)]
pub struct Others<'b> {
    /// The fields it defines by name.
    pub named: Option<&'b Map>,
    /// The patterns it defines fields by: a field matches any of these.
    pub patterns: Vec<Arc<Pattern>>,
}
