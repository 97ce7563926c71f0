//! Input types and schema lookups for validation.

use crate::document::syntax::tree::{Type, TypeForm};
use crate::schema::{ArgumentDef, Kind, Schema, Shape, TypeId};

/// A list or non-null wrapper around a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    List,
    NonNull,
}

/// The type that a position expects.
#[derive(Debug, Clone)]
pub struct ExpectedType {
    /// The type.
    pub type_: InputType,
    /// Whether the position has a default.
    pub has_default: bool,
}

impl ExpectedType {
    /// The type of a position without a default.
    pub fn without_default(type_: InputType) -> Self {
        Self { type_, has_default: false }
    }

    /// The type of an argument.
    pub fn of_argument(argument: &ArgumentDef) -> Self {
        Self { type_: InputType::of_argument(argument), has_default: argument.default.is_some() }
    }
}

/// An input type: a named type and its wrappers, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputType {
    pub wraps: Vec<Wrap>,
    pub named: TypeId,
}

impl InputType {
    /// Resolves a type that occurs in a request; `None` if the schema does not contain it.
    pub fn of(schema: &Schema, type_: &Type<'_>) -> Option<Self> {
        let named = schema.type_id(type_.named().text)?;
        let mut wraps = Vec::new();
        let mut inner = type_;
        loop {
            match &inner.form {
                TypeForm::Named(_) => return Some(Self { wraps, named }),
                TypeForm::List(next) => (wraps.push(Wrap::List), inner = next).1,
                TypeForm::NonNull(next) => (wraps.push(Wrap::NonNull), inner = next).1,
            }
        }
    }

    /// The type of an argument.
    pub fn of_argument(argument: &ArgumentDef) -> Self {
        let Shape { named, required, .. } = argument.shape;
        Self { wraps: if required { vec![Wrap::NonNull] } else { Vec::new() }, named }
    }

    pub fn is_non_null(&self) -> bool {
        self.wraps.first() == Some(&Wrap::NonNull)
    }

    fn inner(&self) -> Self {
        Self { wraps: self.wraps[1..].to_vec(), named: self.named }
    }

    /// The type without its outer `!`.
    pub fn nullable(&self) -> Self {
        if self.is_non_null() { self.inner() } else { self.clone() }
    }

    /// The element type, if this is a nullable list.
    pub fn element(&self) -> Option<Self> {
        (self.wraps.first() == Some(&Wrap::List)).then(|| self.inner())
    }

    pub fn show(&self, schema: &Schema) -> String {
        let name = schema.type_(self.named).name.to_string();
        self.wraps.iter().rev().fold(name, |inner, wrap| match wrap {
            Wrap::List => format!("[{inner}]"),
            Wrap::NonNull => format!("{inner}!"),
        })
    }

    /// Whether every value of this type is also a value of the other type.
    pub fn fits(&self, other: &Self) -> bool {
        self.named == other.named && fits(&self.wraps, &other.wraps)
    }
}

fn fits(mine: &[Wrap], theirs: &[Wrap]) -> bool {
    match (mine, theirs) {
        ([], []) => true,
        ([Wrap::NonNull, mine @ ..], [Wrap::NonNull, theirs @ ..])
        | ([Wrap::List, mine @ ..], [Wrap::List, theirs @ ..]) => fits(mine, theirs),
        (_, [Wrap::NonNull, ..]) => false,
        ([Wrap::NonNull, mine @ ..], _) => fits(mine, theirs),
        _ => false,
    }
}

/// The parts of a field that validation uses.
#[derive(Debug, Clone, Copy)]
pub struct FieldInfo<'c> {
    pub name: &'c str,
    pub shape: Shape,
    pub arguments: &'c [ArgumentDef],
}

/// Type predicates for validation.
impl Schema {
    pub(super) fn is_input(&self, id: TypeId) -> bool {
        matches!(self.type_(id).kind, Kind::Scalar(_) | Kind::Enum)
    }

    pub(super) fn is_abstract(&self, id: TypeId) -> bool {
        matches!(self.type_(id).kind, Kind::Interface(_))
    }

    /// Whether an object or interface type implements the interface.
    pub(super) fn implements(&self, type_: TypeId, interface: TypeId) -> bool {
        self.type_(type_).interfaces.contains(&interface)
    }

    /// Whether an object can have both types.
    pub(super) fn overlap(&self, one: TypeId, other: TypeId) -> bool {
        if one == other {
            return true;
        }
        match (self.is_abstract(one), self.is_abstract(other)) {
            (true, true) => self.type_(one).possible.iter().any(|type_| self.implements(*type_, other)),
            (true, false) => self.implements(other, one),
            (false, true) => self.implements(one, other),
            (false, false) => false,
        }
    }
}
