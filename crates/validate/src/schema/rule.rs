//! A schema, compiled: what it demands of a value, by keyword.

use std::sync::Arc;

use qontract_bundle::{Map, Value};

use crate::failure::Allowed;
use crate::pattern::Pattern;
use crate::schema::format::Format;

/// A compiled schema, by its place among all of them.
pub type NodeId = usize;

/// A compiled schema.
#[derive(Debug)]
pub struct Node<'b> {
    /// The path of the schema it is in.
    pub file: &'b str,
    /// Its JSON pointer there.
    pub pointer: String,
    /// What it demands, in the order of its keywords.
    pub rules: Vec<Keyword<'b>>,
}

/// A keyword of a schema.
#[derive(Debug)]
pub struct Keyword<'b> {
    /// Its name; empty for a schema that is `false`.
    pub name: &'b str,
    /// What it demands.
    pub rule: Rule<'b>,
}

/// What a keyword demands.
#[derive(Debug)]
pub enum Rule<'b> {
    /// Something of the value itself.
    Own(Own<'b>),
    /// That parts of the value, or all of it, fit other schemas.
    Parts(Parts<'b>),
    /// That one of these schemas fits.
    AnyOf(Vec<NodeId>),
    /// That exactly one of these schemas fits.
    OneOf(Vec<NodeId>),
    /// That the schema does not fit.
    Not(NodeId),
    /// That the schema fits an item.
    Contains(NodeId),
    /// That the schema fits the names of all fields.
    Names(NodeId),
}

/// What a keyword demands of a value itself.
#[derive(Debug)]
pub enum Own<'b> {
    /// Nothing is allowed.
    Forbidden,
    /// One of these types.
    Type(Vec<&'b str>),
    /// One of these values.
    Enum(&'b [Value], Allowed),
    /// This value.
    Const(&'b Value, Allowed),
    /// That a pattern is found in a text.
    Pattern(Arc<Pattern>),
    /// That a text is of a format.
    Format(&'b str, Format),
    /// A least number.
    Minimum(&'b Value),
    /// A greatest number.
    Maximum(&'b Value),
    /// A number that all are above.
    ExclusiveMinimum(&'b Value),
    /// A number that all are below.
    ExclusiveMaximum(&'b Value),
    /// A number that all are multiples of.
    MultipleOf(&'b Value),
    /// A least number of characters, items or fields.
    Least(Counted, f64),
    /// A greatest number of characters, items or fields.
    Most(Counted, f64),
    /// That no item is there twice.
    Unique,
    /// Fields that are there.
    Required(Vec<&'b str>),
    /// Fields that are there if another one is.
    Needs(Vec<(&'b str, Vec<&'b str>)>),
    /// That there are no other fields.
    Closed(Others<'b>),
    /// That there are no more items than these.
    ClosedList(usize),
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The characters of a text.
    Characters,
    /// The items of a list.
    Items,
    /// The fields of a map.
    Fields,
}

/// Parts of a value, and the schemas they are to fit.
#[derive(Debug)]
pub enum Parts<'b> {
    /// All of it, for a `$ref`.
    Whole(NodeId),
    /// All of it, for each of these.
    All(Vec<NodeId>),
    /// All of it, for each of these whose field is there.
    Dependent(Vec<(&'b str, NodeId)>),
    /// Fields by name; sorted.
    Fields(Vec<(&'b str, NodeId)>),
    /// Fields by pattern.
    Matching(Vec<(Arc<Pattern>, NodeId)>),
    /// All other fields.
    Others(Others<'b>, NodeId),
    /// All items.
    Items(NodeId),
    /// Items one by one.
    Each(Vec<NodeId>),
    /// The items from here on.
    Rest(usize, NodeId),
}

/// The fields that a schema does not name.
#[derive(Clone, Debug, Default)]
pub struct Others<'b> {
    /// The fields it names.
    pub named: Option<&'b Map>,
    /// The patterns it names them by: any of these.
    pub patterns: Vec<Arc<Pattern>>,
}
