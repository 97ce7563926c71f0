//! The types in memory, numbered in the order in which a schema lists them.

use std::collections::BTreeMap;

/// The number of a type: its index in the list of all types.
pub type TypeId = usize;

/// A named type.
#[derive(Debug)]
pub struct TypeDef {
    /// Its name.
    pub name: Box<str>,
    /// Its description.
    pub description: Option<Box<str>>,
    /// Its kind.
    pub kind: Kind,
    /// Its fields, in order; none for scalars and enums.
    pub fields: Vec<FieldDef>,
    /// The interfaces it implements.
    pub interfaces: Vec<TypeId>,
    /// For an interface: the object types that implement it, in order.
    pub possible: Vec<TypeId>,
    /// For an enum: its values and their descriptions.
    pub values: Vec<(Box<str>, Option<Box<str>>)>,
    /// Schema of the datafiles of this type.
    pub datafile: Option<Box<str>>,
}

/// The kind of a named type.
#[derive(Debug)]
pub enum Kind {
    /// A value without fields.
    Scalar(Scalar),
    /// A type with fields.
    Object,
    /// A type with fields that other types implement.
    Interface(Dispatch),
    /// One of a list of names.
    Enum,
}

/// The serialization of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// A whole number of 32 bits.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// Anything, written as a string that holds JSON text.
    Json,
}

/// How the concrete type of an object is resolved when a field promises only an interface.
#[derive(Debug)]
pub enum Dispatch {
    /// By the value of one of its keys; the type may be unknown to the schema.
    Key {
        /// The key.
        key: Box<str>,
        /// Names of types by value.
        types: BTreeMap<Box<str>, Box<str>>,
    },
    /// By its `$schema`.
    Schema,
    /// Not at all.
    None,
}

/// A field of an object or interface type.
#[derive(Debug)]
pub struct FieldDef {
    /// Its name.
    pub name: Box<str>,
    /// Its description.
    pub description: Option<Box<str>>,
    /// Its arguments, in order.
    pub arguments: Vec<ArgumentDef>,
    /// Its type.
    pub shape: Shape,
    /// Where its value comes from.
    pub resolver: Resolver,
}

/// An argument of a field or directive.
#[derive(Debug)]
pub struct ArgumentDef {
    /// Its name.
    pub name: Box<str>,
    /// Its description.
    pub description: Option<Box<str>>,
    /// Its type, never a list.
    pub shape: Shape,
    /// The default as GraphQL text.
    pub default: Option<Box<str>>,
}

/// `T`, `T!`, `[T!]` or `[T!]!`: fields have no other types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `T`
    pub named: TypeId,
    /// A list of `T!`.
    pub list: bool,
    /// Never null.
    pub required: bool,
}

/// Where the value of a field comes from.
#[derive(Debug)]
pub enum Resolver {
    /// The key of that name.
    Key,
    /// The key `$schema`.
    SchemaKey,
    /// All datafiles of a schema that the arguments let through.
    Datafiles(Box<str>),
    /// The datafiles that point here; an index into [`super::Schema::back_references`].
    BackReferences(usize),
    /// The resource whose path the key of that name holds.
    Resource,
    /// All resources that the arguments let through.
    Resources,
    /// The schema itself.
    Meta,
}

/// A back-reference: datafiles of `schema` that refer to an object at `path`.
#[derive(Debug, PartialEq, Eq)]
pub struct BackReference {
    /// Schema of the datafiles that point.
    pub schema: Box<str>,
    /// The keys down to the reference.
    pub path: Vec<Box<str>>,
}

/// A directive that requests or type descriptions may use.
#[derive(Debug)]
pub struct DirectiveDef {
    /// Its name.
    pub name: Box<str>,
    /// Its description.
    pub description: Option<Box<str>>,
    /// Where it may be used.
    pub locations: Vec<Box<str>>,
    /// Its arguments.
    pub arguments: Vec<ArgumentDef>,
}

impl TypeDef {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&FieldDef> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// Whether it has a selection of fields.
    pub fn is_composite(&self) -> bool {
        matches!(self.kind, Kind::Object | Kind::Interface(_))
    }
}
