//! A query compiled against a schema: for every position and every type possible there, the fields to write.
//!
//! Conditions are evaluated, fragments are expanded and repeated fields are merged at compile time: what is
//! left for an object is a list of fields in the order of the answer.

mod compile;

use std::sync::atomic::AtomicUsize;

use apollo_compiler::Node;
use apollo_compiler::ast;

use crate::location::Location;
use crate::schema::{Scalar, Shape, TypeId};

/// The number of a selection in its plan.
pub type SelectionId = usize;

/// A compiled query.
#[derive(Debug)]
pub struct Plan {
    /// All selections; each is for one object type.
    pub selections: Vec<Selection>,
    /// The selection on `Query`.
    pub root: SelectionId,
    /// Number of fields with arguments.
    pub argument_sets: usize,
    /// Whether it reads nothing but the schema, so that the answer never changes.
    pub only_introspection: bool,
    /// Size of the last answer, in bytes: the estimate for the next one.
    pub last_size: AtomicUsize,
}

/// The fields to write for an object of one type.
#[derive(Debug)]
pub struct Selection {
    /// The object type.
    pub type_: TypeId,
    /// The fields, in the order of the answer.
    pub fields: Vec<FieldPlan>,
}

/// One field to write.
#[derive(Debug)]
pub struct FieldPlan {
    /// Its key in the answer.
    pub key: Box<str>,
    /// The key as JSON, with its colon.
    pub encoded_key: Box<[u8]>,
    /// The target of the field.
    pub target: FieldTarget,
    /// The key of the data that it reads.
    pub read: ReadKey,
    /// The type of its value.
    pub shape: Shape,
    /// The form in which its value, or each element of it, is written.
    pub form: ValueForm,
    /// The locations that select it in the request.
    pub locations: Vec<Location>,
    /// Its arguments, and their number among those of the plan.
    pub arguments: Option<(usize, Vec<Argument>)>,
}

/// The target of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldTarget {
    /// The name of the type.
    TypeName,
    /// The schema.
    Schema,
    /// A type of the schema, by name.
    Type,
    /// The field of this number of the object's type.
    Field(usize),
}

/// The key of the data that a field reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadKey {
    /// This one.
    Key(Box<str>),
    /// `path`, which for a datafile is not a key but its location.
    Path,
    /// `$schema`.
    Schema,
    /// None: the value comes from elsewhere.
    Nothing,
}

/// The form in which a value is written.
#[derive(Debug)]
pub enum ValueForm {
    /// As a scalar.
    Scalar(Scalar),
    /// As the name of an enum value.
    Enum,
    /// As an object of one type.
    Object(SelectionId),
    /// As an object whose type is resolved at run time; selections by type, sorted.
    Abstract(Vec<(TypeId, SelectionId)>),
}

/// An argument as the request gives it.
#[derive(Debug)]
pub struct Argument {
    /// Its name.
    pub name: Box<str>,
    /// A literal or a variable.
    pub value: Node<ast::Value>,
}
