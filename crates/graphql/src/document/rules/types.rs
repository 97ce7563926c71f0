//! Types of values, and what the schema says of a name.

use crate::document::syntax::tree::{Form, Type};
use crate::schema::{ArgumentDef, Kind, Schema, Shape, TypeId};

/// What is around a named type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    List,
    NonNull,
}

/// A type of values: a name, and what is around it, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputType {
    pub wraps: Vec<Wrap>,
    pub named: TypeId,
}

impl InputType {
    /// The type as a request writes it; none if the schema does not know it.
    pub fn of(schema: &Schema, type_: &Type<'_>) -> Option<Self> {
        let named = schema.type_id(type_.named().text)?;
        let mut wraps = Vec::new();
        let mut inner = type_;
        loop {
            match &inner.form {
                Form::Named(_) => return Some(Self { wraps, named }),
                Form::List(next) => (wraps.push(Wrap::List), inner = next).1,
                Form::NonNull(next) => (wraps.push(Wrap::NonNull), inner = next).1,
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

    /// Without the `!` around it.
    pub fn nullable(&self) -> Self {
        if self.is_non_null() { self.inner() } else { self.clone() }
    }

    /// The type of an element, if this is a list that may be null.
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

    /// Whether a value of this type always is one of the other.
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

/// A field, as far as requests care.
#[derive(Debug, Clone, Copy)]
pub struct FieldInfo<'c> {
    pub name: &'c str,
    pub shape: Shape,
    pub arguments: &'c [ArgumentDef],
}

/// Questions about the types of a schema.
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

    /// Whether some object can be of both types.
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
