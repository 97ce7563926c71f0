//! The objects from which fields are read, and the values of their keys.

use qontract_bundle::{Backref, Value};

use crate::schema::{ArgumentDef, DirectiveDef, FieldDef, Shape};

/// The id of a datafile: its index among all datafiles of the bundle.
pub type FileId = u32;
/// The id of a resource: its index among all resources of the bundle.
pub type ResourceId = u32;

/// An object of the introspection schema.
#[derive(Clone, Copy, Debug)]
pub enum IntrospectionObject<'a> {
    /// The schema.
    Schema,
    /// A type with its list and non-null wrappers.
    Type(Shape),
    /// A field.
    Field(&'a FieldDef),
    /// An argument.
    Argument(&'a ArgumentDef),
    /// An enum value: its name and description.
    EnumValue(&'a str, Option<&'a str>),
    /// A directive.
    Directive(&'a DirectiveDef),
}

/// An object from which fields can be read.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The root of a request.
    Root,
    /// A whole datafile.
    File(FileId),
    /// A value inside a datafile.
    Value(&'a Value),
    /// A resource.
    Resource(ResourceId),
    /// A back-reference of a resource: a position in a datafile that names the resource.
    Backref(&'a Backref),
    /// A part of the schema.
    Meta(IntrospectionObject<'a>),
    /// A string that is not a value in a datafile.
    Text(&'a str),
    /// A Boolean that is not a value in a datafile.
    Flag(bool),
    /// A list where a single value is expected. Such a list has no fields.
    Opaque,
}

/// The raw value of a key.
#[derive(Clone, Copy, Debug)]
pub enum RawValue<'a> {
    /// The key is missing.
    Absent,
    /// A value.
    Value(&'a Value),
    /// A string that is not a value in a datafile.
    Text(&'a str),
    /// The back-references of a resource.
    Backrefs(&'a [Backref]),
}

/// The elements of a list.
#[derive(Clone, Debug)]
pub enum ListSource<'a> {
    /// Values inside a datafile.
    Values(&'a [Value]),
    /// The targets of references; `None` for a dangling reference.
    Referred(Vec<Option<FileId>>),
    /// Datafiles.
    Files(&'a [FileId]),
    /// Datafiles selected by arguments or by an element selection.
    Chosen(Vec<FileId>),
    /// Resources.
    Resources(Vec<ResourceId>),
    /// A list with one missing element.
    Missing,
    /// The back-references of a resource.
    Backrefs(&'a [Backref]),
    /// Parts of the schema.
    Metas(Vec<IntrospectionObject<'a>>),
    /// Strings.
    Texts(&'a [Box<str>]),
}

impl<'a> ListSource<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            ListSource::Values(items) => items.len(),
            ListSource::Referred(files) => files.len(),
            ListSource::Files(files) => files.len(),
            ListSource::Chosen(files) | ListSource::Resources(files) => files.len(),
            ListSource::Missing => 1,
            ListSource::Backrefs(backrefs) => backrefs.len(),
            ListSource::Metas(metas) => metas.len(),
            ListSource::Texts(texts) => texts.len(),
        }
    }

    /// The element at an index; `None` if the element is a dangling reference or is missing.
    pub fn element(&self, index: usize) -> Option<Source<'a>> {
        match self {
            ListSource::Values(items) => Some(Source::Value(&items[index])),
            ListSource::Referred(files) => files[index].map(Source::File),
            ListSource::Files(files) => Some(Source::File(files[index])),
            ListSource::Chosen(files) => Some(Source::File(files[index])),
            ListSource::Resources(ids) => Some(Source::Resource(ids[index])),
            ListSource::Missing => None,
            ListSource::Backrefs(backrefs) => Some(Source::Backref(&backrefs[index])),
            ListSource::Metas(metas) => Some(Source::Meta(metas[index])),
            ListSource::Texts(texts) => Some(Source::Text(&texts[index])),
        }
    }
}

/// The resolved value of a field, before it is coerced to the type of the field.
#[derive(Clone, Debug)]
pub enum ResolvedValue<'a> {
    /// No value.
    Null,
    /// A single value.
    One(Source<'a>),
    /// A list.
    Many(ListSource<'a>),
}
