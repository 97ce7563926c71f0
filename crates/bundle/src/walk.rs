//! Walks a datafile along its JSON Schema and its GraphQL type. Both building and validation use it.
//!
//! The walk follows the schema only where the schema of a field is unambiguous: `properties`, `items`, a
//! `$ref` to a whole file, and a `oneOf` that is decided by an interface field or by the presence of `$ref`.
//! It works on YAML trees and on bundle values (see [`Tree`]). A [`Visitor`] defines the actions.

mod schema_index;

use std::fmt::Write as _;

use qontract_yaml::{List, Node, Value as Yaml};

use crate::types::{Field, Type, Types};
use crate::value::Value;

pub use schema_index::{SchemaIndex, SchemaPosition};

/// The `$ref` with which a schema marks a field that names a resource.
pub const RESOURCE_REF: &str = "/common-1.json#/definitions/resourceref";

/// The kind of a node, in the detail that the walk needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape<'a> {
    /// A map.
    Map,
    /// A list.
    List,
    /// A string.
    Str(&'a str),
    /// A number, or a boolean, which is 0 or 1.
    Number(f64),
    /// Null.
    Null,
}

impl Shape<'_> {
    /// Whether qontract-bundler and qontract-server treat the value as set.
    fn is_truthy(self) -> bool {
        match self {
            Shape::Str(text) => !text.is_empty(),
            Shape::Number(number) => number != 0.0,
            Shape::Map | Shape::List | Shape::Null => false,
        }
    }
}

/// A tree of maps, lists and scalars.
pub trait Tree<'a>: Copy {
    /// The kind of this node.
    fn shape(self) -> Shape<'a>;

    /// The value of `key`, if this is a map that has it.
    fn get(self, key: &str) -> Option<Self>;

    /// Keys and values in document order, if this is a map.
    fn entries(self) -> impl Iterator<Item = (&'a str, Self)>;

    /// The values, if this is a list.
    fn items(self) -> impl Iterator<Item = Self>;

    /// The string, if this is one.
    fn text(self) -> Option<&'a str> {
        match self.shape() {
            Shape::Str(text) => Some(text),
            _ => None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers that distinguish types are small")]
fn to_f64(number: i64) -> f64 {
    number as f64
}

impl<'a> Tree<'a> for &'a Value {
    fn shape(self) -> Shape<'a> {
        match self {
            Value::Map(_) => Shape::Map,
            Value::List(_) => Shape::List,
            Value::Str(text) => Shape::Str(text),
            Value::Null => Shape::Null,
            Value::Bool(flag) => Shape::Number(f64::from(*flag)),
            Value::Int(number) => Shape::Number(to_f64(*number)),
            Value::BigInt(digits) => Shape::Number(digits.parse().unwrap_or(f64::INFINITY)),
            Value::Float(number) => Shape::Number(*number),
        }
    }

    fn get(self, key: &str) -> Option<Self> {
        Value::get(self, key)
    }

    fn entries(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.as_map().into_iter().flat_map(|map| map.iter().map(|(key, value)| (key.as_str(), value)))
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.as_list().unwrap_or_default().iter()
    }
}

impl<'a> Tree<'a> for Node<'a> {
    fn shape(self) -> Shape<'a> {
        match self.value() {
            Yaml::Map(_) => Shape::Map,
            Yaml::List(_) => Shape::List,
            Yaml::Str(text) => Shape::Str(text),
            Yaml::Null => Shape::Null,
            Yaml::Bool(flag) => Shape::Number(f64::from(flag)),
            Yaml::Int(number) => Shape::Number(to_f64(number)),
            Yaml::BigInt(digits) => Shape::Number(digits.parse().unwrap_or(f64::INFINITY)),
            Yaml::Float(number) => Shape::Number(number),
        }
    }

    fn get(self, key: &str) -> Option<Self> {
        let Yaml::Map(map) = self.value() else { return None };
        map.get(key)
    }

    fn entries(self) -> impl Iterator<Item = (&'a str, Self)> {
        let map = match self.value() {
            Yaml::Map(map) => Some(map),
            _ => None,
        };
        map.into_iter().flat_map(|map| map.iter().map(|entry| (entry.key, entry.value)))
    }

    fn items(self) -> impl Iterator<Item = Self> {
        let list = match self.value() {
            Yaml::List(list) => Some(list),
            _ => None,
        };
        list.into_iter().flat_map(List::iter)
    }
}

/// A segment of a path through a datafile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSegment<'d> {
    /// The value of a key.
    Key(&'d str),
    /// An item of a list.
    Index(usize),
}

/// A path as qontract-bundler writes it: `openshiftResources.[6].path`.
pub fn jsonpath(path: &[PathSegment<'_>]) -> String {
    let mut text = String::new();
    for (index, step) in path.iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        match step {
            PathSegment::Key(key) => text.push_str(key),
            PathSegment::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

/// The position of the walk in the schema and the type.
#[derive(Clone, Copy, Debug)]
pub struct WalkPosition<'s, S> {
    /// The type that has the field; for a list item of an interface, its concrete type.
    pub type_: Option<&'s Type>,
    /// The field with this value. `None` at the top, and for an object whose interface was resolved.
    pub field: Option<&'s Field>,
    /// The schema of the value.
    pub schema: Option<SchemaPosition<'s, S>>,
    /// The schema whose `oneOf` led to `schema`.
    pub one_of: Option<SchemaPosition<'s, S>>,
    /// The schema file that contains `schema`.
    pub schema_path: Option<&'s str>,
}

impl<S: Copy> WalkPosition<'_, S> {
    /// Whether the value here names a resource.
    pub fn names_resource(&self) -> bool {
        self.schema.is_some_and(SchemaPosition::names_resource)
    }
}

/// A visited value, with its path and its position in schema and type.
pub struct VisitedValue<'w, 's, 'd, S, D> {
    /// The path from the top.
    pub path: &'w [PathSegment<'d>],
    /// The value.
    pub value: D,
    /// The position in schema and type.
    pub at: WalkPosition<'s, S>,
}

/// A field of a map.
pub struct MapField<'s, 'd, S, D> {
    /// The key of the field.
    pub key: &'d str,
    /// The value of the field.
    pub value: D,
    /// The position of the value in schema and type.
    pub at: WalkPosition<'s, S>,
}

/// Actions of a walk.
pub trait Visitor<'s, 'd, S, D> {
    /// Called for a map in a list, before its fields are visited. Does nothing by default.
    fn item(&mut self, _item: VisitedValue<'_, 's, 'd, S, D>, _fields: &[MapField<'s, 'd, S, D>]) {}

    /// Called for a scalar, with the position of the map or list that contains it.
    fn leaf(&mut self, leaf: VisitedValue<'_, 's, 'd, S, D>, parent: Option<WalkPosition<'s, S>>);
}

struct Walker<'w, 's, 'd, V> {
    types: &'s Types,
    path: Vec<PathSegment<'d>>,
    visitor: &'w mut V,
}

/// Walks the datafile `root`, which names the schema `schema`.
pub fn walk<'s, 'd: 's, S, D, V>(
    root: D,
    schema: Option<&'d str>,
    schema_index: &'s SchemaIndex<'s, S>,
    types: &'s Types,
    visitor: &mut V,
) where
    S: Copy,
    D: Tree<'d>,
    V: Visitor<'s, 'd, S, D>,
{
    let at = WalkPosition {
        type_: schema.and_then(|schema| types.by_schema(schema)),
        field: None,
        schema: schema.and_then(|schema| schema_index.schema(schema)),
        one_of: None,
        schema_path: schema,
    };
    Walker { types, path: Vec::new(), visitor }.node(root, at, None);
}

impl<'s, 'd, V> Walker<'_, 's, 'd, V> {
    fn node<S, D>(&mut self, node: D, at: WalkPosition<'s, S>, parent: Option<WalkPosition<'s, S>>)
    where
        S: Copy,
        D: Tree<'d>,
        V: Visitor<'s, 'd, S, D>,
    {
        match node.shape() {
            Shape::Map => {
                let fields = node.entries().filter(|(key, _)| *key != "$schema");
                if matches!(self.path.last(), Some(PathSegment::Index(_))) {
                    let fields: Vec<MapField<'s, 'd, S, D>> = fields
                        .map(|(key, value)| MapField { key, value, at: self.position_of(at, key, value) })
                        .collect();
                    self.visitor.item(VisitedValue { path: &self.path, value: node, at }, &fields);
                    for field in fields {
                        self.descend(PathSegment::Key(field.key), field.value, field.at, at);
                    }
                } else {
                    for (key, value) in fields {
                        let next = self.position_of(at, key, value);
                        self.descend(PathSegment::Key(key), value, next, at);
                    }
                }
            }
            Shape::List => {
                let items = at.schema.and_then(SchemaPosition::items);
                for (index, item) in node.items().enumerate() {
                    let next =
                        self.resolve_position(WalkPosition { schema: items, one_of: None, ..at }, item);
                    self.descend(PathSegment::Index(index), item, next, at);
                }
            }
            Shape::Str(_) | Shape::Number(_) | Shape::Null => {
                self.visitor.leaf(VisitedValue { path: &self.path, value: node, at }, parent);
            }
        }
    }

    fn descend<S, D>(
        &mut self,
        step: PathSegment<'d>,
        value: D,
        next: WalkPosition<'s, S>,
        at: WalkPosition<'s, S>,
    ) where
        S: Copy,
        D: Tree<'d>,
        V: Visitor<'s, 'd, S, D>,
    {
        self.path.push(step);
        self.node(value, next, Some(at));
        self.path.pop();
    }

    fn position_of<S: Copy, D: Tree<'d>>(
        &self,
        at: WalkPosition<'s, S>,
        key: &str,
        value: D,
    ) -> WalkPosition<'s, S> {
        let (type_, field) = match (at.type_, at.field) {
            (None, _) => (None, None),
            (Some(type_), field) if key == "$ref" => (Some(type_), field),
            (Some(type_), None) => (Some(type_), type_.field(key)),
            (Some(_), Some(field)) => match self.types.of_field(field) {
                Some(type_) => (Some(type_), type_.field(key)),
                None => (None, None),
            },
        };
        let schema = at
            .schema
            .and_then(|schema| if schema.is_reference() { Some(schema) } else { schema.property(key) });
        self.resolve_position(WalkPosition { type_, field, schema, one_of: None, ..at }, value)
    }

    /// The position of `value`, after resolving its interface and its schema.
    fn resolve_position<S: Copy, D: Tree<'d>>(
        &self,
        at: WalkPosition<'s, S>,
        value: D,
    ) -> WalkPosition<'s, S> {
        let field_type = at.field.and_then(|field| self.types.of_field(field));
        let discriminator = field_type.and_then(Type::field_map).and_then(|(field, types)| {
            let shape = value.get(field)?.shape();
            shape.is_truthy().then_some((field, shape, types))
        });
        let at = resolve(at, value, discriminator.map(|(field, shape, _)| Discriminator { field, shape }));
        let concrete = discriminator.and_then(|(_, shape, types)| match shape {
            Shape::Str(text) => self.types.get(types.get(text)?),
            _ => None,
        });
        match concrete {
            Some(type_) => WalkPosition { type_: Some(type_), field: None, ..at },
            None => at,
        }
    }
}

/// The field that decides the type of an interface, and its value.
#[derive(Clone, Copy)]
struct Discriminator<'v> {
    field: &'v str,
    shape: Shape<'v>,
}

/// Follows `$ref` and decides `oneOf`. Also records the schema whose `oneOf` an interface decided.
fn resolve<'s, 'd, S: Copy, D: Tree<'d>>(
    at: WalkPosition<'s, S>,
    value: D,
    discriminator: Option<Discriminator<'_>>,
) -> WalkPosition<'s, S> {
    let Some(schema) = at.schema else { return at };
    let at = follow_ref(at, schema);
    let Some(schema) = at.schema else { return at };
    let Some(branches) = schema.branches() else { return at };
    let is_reference = |branch: &SchemaPosition<'s, S>| branch.is_reference();
    if branches.clone().count() == 2 && branches.clone().filter(is_reference).count() == 1 {
        let has_ref = value.get("$ref").is_some();
        return match branches.clone().find(|branch| is_reference(branch) == has_ref) {
            Some(branch) => follow_ref(at, branch),
            None => WalkPosition { schema: None, ..at },
        };
    }
    let Some(Discriminator { field, shape }) = discriminator else { return at };
    let decided = branches.map(|branch| follow_ref(at, branch)).find(|branch| {
        let property = branch.schema.and_then(|schema| schema.property(field));
        property.is_some_and(|property| property.values().contains(&shape))
    });
    match decided {
        Some(branch) => WalkPosition { one_of: Some(schema), ..branch },
        None => WalkPosition { schema: None, ..at },
    }
}

/// The position of the whole file that `schema` refers to, or of `schema` itself.
fn follow_ref<'s, S: Copy>(at: WalkPosition<'s, S>, schema: SchemaPosition<'s, S>) -> WalkPosition<'s, S> {
    match schema.referenced_schema() {
        Some((path, whole)) => WalkPosition { schema: Some(whole), schema_path: Some(path), ..at },
        None => WalkPosition { schema: Some(schema), ..at },
    }
}
