//! Query plans: a query compiled against a schema, with the fields to write for every position and every
//! object type that is possible there.
//!
//! `@skip` and `@include` are evaluated, fragments are expanded and repeated fields are merged at compile
//! time. At run time, an object is written by iterating over a list of fields in response order.

mod compile;

use std::sync::atomic::AtomicUsize;

use apollo_compiler::Node;
use apollo_compiler::ast;
use apollo_compiler::executable::ExecutableDocument;

use crate::location::{Location, RequestLines};
use crate::schema::{Scalar, Shape, TypeId};

/// The id of a selection: its index in the plan.
pub type SelectionId = usize;

/// The document that contains an operation to compile.
#[derive(Clone, Copy, Debug)]
pub struct PlanSource<'d> {
    /// The operations and fragments.
    pub executable: &'d ExecutableDocument,
    /// The lines of the document, for the locations of errors.
    pub lines: &'d RequestLines,
}

/// A compiled query.
#[derive(Debug)]
pub struct Plan {
    /// All selections, each for one object type.
    pub selections: Vec<Selection>,
    /// The selection on `Query`.
    pub root: SelectionId,
    /// Number of argument sets, which equals the number of fields with arguments.
    pub argument_sets: usize,
    /// Whether the query reads only the schema, so that the response does not depend on the data.
    pub only_introspection: bool,
    /// Size of the last response, in bytes: the initial buffer size for the next one.
    pub last_size: AtomicUsize,
}

/// The fields to write for an object of one type.
#[derive(Debug)]
pub struct Selection {
    /// The object type.
    pub type_: TypeId,
    /// The fields, in response order.
    pub fields: Vec<FieldPlan>,
}

/// One field to write.
#[derive(Debug)]
pub struct FieldPlan {
    /// The key in the response.
    pub key: Box<str>,
    /// The key as a JSON string, followed by a colon.
    pub encoded_key: Box<[u8]>,
    /// The target of the field.
    pub target: FieldTarget,
    /// The key that the field reads from the data.
    pub read: ReadKey,
    /// The type of the field's value.
    pub shape: Shape,
    /// The form in which the value of the field is written; for a list, the form of each element.
    pub form: ValueForm,
    /// The locations in the request that select the field.
    pub locations: Vec<Location>,
    /// The index of the field's argument set in the plan, and the arguments.
    pub arguments: Option<(usize, Vec<Argument>)>,
}

/// The definition that a field selects: a meta field or a field of the object type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldTarget {
    /// `__typename`.
    TypeName,
    /// `__schema`.
    Schema,
    /// `__type`.
    Type,
    /// A field of the object type, by index.
    Field(usize),
}

/// The key that a field reads from the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadKey {
    /// This key.
    Key(Box<str>),
    /// `path`: for a datafile, this is its path, not a key of the data.
    Path,
    /// `$schema`.
    Schema,
    /// No key: the value has a different source.
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
    /// As an object whose type is resolved at run time; the selections are sorted by type.
    Abstract(Vec<(TypeId, SelectionId)>),
}

/// An argument of a field, as written in the request.
#[derive(Debug)]
pub struct Argument {
    /// The name.
    pub name: Box<str>,
    /// The value: a literal that may contain variables.
    pub value: Node<ast::Value>,
}
