//! The types of a schema. Types refer to each other by id, in the order in which the schema lists them.

use std::collections::BTreeMap;

/// The id of a type: its index in the list of all types.
pub type TypeId = usize;

/// A named type.
#[derive(Debug)]
pub struct TypeDef {
    /// The name.
    pub name: Box<str>,
    /// The description.
    pub description: Option<Box<str>>,
    /// The kind.
    pub kind: Kind,
    /// The fields, in order; none for scalars and enums.
    pub fields: Vec<FieldDef>,
    /// The interfaces that the type implements.
    pub interfaces: Vec<TypeId>,
    /// For an interface: the object types that implement it, in order.
    pub possible: Vec<TypeId>,
    /// For an enum: its values and their descriptions.
    pub values: Vec<(Box<str>, Option<Box<str>>)>,
    /// The schema of the datafiles of this type.
    pub datafile: Option<Box<str>>,
}

/// The kind of a named type.
#[derive(Debug)]
pub enum Kind {
    /// A scalar type.
    Scalar(Scalar),
    /// An object type.
    Object,
    /// An interface, which object types implement.
    Interface(Dispatch),
    /// An enum.
    Enum,
}

/// The serialization of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    String,
    /// A signed 32-bit integer.
    Int,
    /// A floating-point number.
    Float,
    /// `true` or `false`.
    Boolean,
    /// Any value, serialized as a string that contains JSON.
    Json,
}

/// The strategy to resolve the object type of a value of an interface type.
#[derive(Debug)]
pub enum Dispatch {
    /// By the value of a key. The resulting type may be missing from the schema.
    Key {
        /// The key.
        key: Box<str>,
        /// Type names, by value of the key.
        types: BTreeMap<Box<str>, Box<str>>,
    },
    /// By the `$schema` of the value.
    Schema,
    /// The type cannot be resolved.
    None,
}

/// A field of an object or interface type.
#[derive(Debug)]
pub struct FieldDef {
    /// The name.
    pub name: Box<str>,
    /// The description.
    pub description: Option<Box<str>>,
    /// The arguments, in order.
    pub arguments: Vec<ArgumentDef>,
    /// The type.
    pub shape: Shape,
    /// The source of the field's value.
    pub resolver: Resolver,
}

/// An argument of a field or directive.
#[derive(Debug)]
pub struct ArgumentDef {
    /// The name.
    pub name: Box<str>,
    /// The description.
    pub description: Option<Box<str>>,
    /// The type, which is never a list.
    pub shape: Shape,
    /// The default value, in GraphQL syntax.
    pub default: Option<Box<str>>,
}

/// A type with its wrappers: `T`, `T!`, `[T!]` or `[T!]!`. Other combinations do not occur in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The named type `T`.
    pub named: TypeId,
    /// Whether the type is a list of `T!`.
    pub list: bool,
    /// Whether the type is non-null.
    pub required: bool,
}

/// The source of the value of a field.
#[derive(Debug)]
pub enum Resolver {
    /// The key with the name of the field.
    Key,
    /// The key `$schema`.
    SchemaKey,
    /// The datafiles of a schema that match the arguments.
    Datafiles(Box<str>),
    /// The datafiles that refer to the object, by index into [`super::Schema::back_references`].
    BackReferences(usize),
    /// The resource whose path is the value of the key with the name of the field.
    Resource,
    /// The resources that match the arguments.
    Resources,
    /// A part of the schema, for introspection.
    Meta,
}

/// A back-reference: the datafiles of `schema` that refer to an object through the keys in `path`.
#[derive(Debug, PartialEq, Eq)]
pub struct BackReference {
    /// The schema of the datafiles that refer to the object.
    pub schema: Box<str>,
    /// The keys that lead to the reference in such a datafile.
    pub path: Vec<Box<str>>,
}

/// A directive definition.
#[derive(Debug)]
pub struct DirectiveDef {
    /// The name.
    pub name: Box<str>,
    /// The description.
    pub description: Option<Box<str>>,
    /// The locations where the directive may be used.
    pub locations: Vec<Box<str>>,
    /// The arguments.
    pub arguments: Vec<ArgumentDef>,
}

impl TypeDef {
    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&FieldDef> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// Whether the type is an object or interface type, which requires a selection of fields.
    pub fn is_composite(&self) -> bool {
        matches!(self.kind, Kind::Object | Kind::Interface(_))
    }
}
