//! The GraphQL types that the data repo defines, read from the bundle's `graphql` document.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use crate::value::{Map, Value};

/// All types, by name.
#[derive(Debug, Default)]
pub struct Types {
    /// Sorted by name.
    all: Vec<Type>,
    /// Indexes into `all`.
    by_name: HashMap<Box<str>, usize, RandomState>,
    /// Indexes into `all`, by the schema of the datafiles.
    by_schema: HashMap<Box<str>, usize, RandomState>,
}

/// An object or interface type.
#[derive(Debug)]
pub struct Type {
    /// The name.
    pub name: Box<str>,
    /// The fields, in the order of the file. If a field is defined twice, the last definition is used.
    pub fields: Vec<Field>,
    /// Index of each field, by name.
    field_index: HashMap<Box<str>, usize, RandomState>,
    /// Schema of the datafiles of this type.
    pub datafile: Option<Box<str>>,
    /// Whether the type is an interface.
    pub is_interface: bool,
    /// The interface that the type implements.
    pub interface: Option<Box<str>>,
    /// For an interface, the strategy to resolve the concrete type of an object.
    pub resolve: Option<TypeResolution>,
}

/// Type names, by the value of the discriminator field.
pub type TypesByValue = BTreeMap<Box<str>, Box<str>>;

/// The strategy to resolve the concrete type of an object of an interface.
#[derive(Debug)]
pub enum TypeResolution {
    /// By the value of one of the object's fields.
    FieldMap {
        /// The field.
        field: Box<str>,
        /// Types by value.
        types: TypesByValue,
    },
    /// By the `$schema` of the object.
    Schema,
    /// An unknown strategy.
    Unknown(Box<str>),
}

/// A field of a type.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "these are the attributes as the data repo writes them")]
pub struct Field {
    /// The name.
    pub name: Box<str>,
    /// Name of the field's type.
    pub type_name: Box<str>,
    /// Index of the field's type among all types, if the type is defined.
    type_index: Option<usize>,
    /// Whether the field is a list of that type.
    pub is_list: bool,
    /// Whether the field is never null.
    pub is_required: bool,
    /// Whether the field's type is an interface.
    pub is_interface: bool,
    /// Whether the field can be used as a search argument.
    pub is_searchable: bool,
    /// Whether the value is unique across all data.
    pub is_unique: bool,
    /// Whether the value is unique in its list.
    pub is_context_unique: bool,
    /// Whether the field names a resource, or lists all resources.
    pub is_resource: bool,
    /// Whether the field is resolved to the resource that it names.
    pub resolve_resource: bool,
    /// If present, the field is resolved to the datafiles that refer to the object.
    pub synthetic: Option<BackrefSelector>,
    /// If present, the field lists all datafiles of this schema.
    pub datafile_schema: Option<Box<str>>,
}

/// Selects the datafiles that refer to an object.
#[derive(Debug)]
pub struct BackrefSelector {
    /// The schema of the datafiles.
    pub schema: Box<str>,
    /// Path of the reference in these datafiles, with dots between keys.
    pub sub_attr: Box<str>,
}

impl Types {
    /// Reads the types of a bundle's `graphql` document: `{confs: […]}`, or a bare list.
    ///
    /// Malformed types and fields are skipped: [`mod@crate::build`] reports them.
    pub fn read(graphql: &Value) -> Self {
        let mut types: BTreeMap<Box<str>, Type> = BTreeMap::new();
        let mut by_schema: BTreeMap<Box<str>, Box<str>> = BTreeMap::new();
        // The types are visited in the order of the file, so that the last of two types for one schema is
        // used.
        for conf in confs(graphql).unwrap_or_default() {
            let Some(type_) = conf.as_map().and_then(Type::read) else { continue };
            if let Some(datafile) = &type_.datafile {
                by_schema.insert(datafile.clone(), type_.name.clone());
            }
            types.insert(type_.name.clone(), type_);
        }
        if let Some(query) = types.get("Query") {
            for field in &query.fields {
                if let Some(schema) = &field.datafile_schema {
                    by_schema.insert(schema.clone(), field.type_name.clone());
                }
            }
        }
        let mut all: Vec<Type> = types.into_values().collect();
        let by_name: HashMap<Box<str>, usize, RandomState> =
            all.iter().enumerate().map(|(place, type_)| (type_.name.clone(), place)).collect();
        for field in all.iter_mut().flat_map(|type_| &mut type_.fields) {
            field.type_index = by_name.get(&field.type_name).copied();
        }
        let by_schema =
            by_schema.into_iter().filter_map(|(schema, name)| Some((schema, *by_name.get(&name)?)));
        Self { by_schema: by_schema.collect(), all, by_name }
    }

    /// The type with this name.
    pub fn get(&self, name: &str) -> Option<&Type> {
        Some(&self.all[*self.by_name.get(name)?])
    }

    /// The type of datafiles with this schema.
    pub fn by_schema(&self, schema: &str) -> Option<&Type> {
        Some(&self.all[*self.by_schema.get(schema)?])
    }

    /// The type of a field of one of these types.
    pub fn of_field(&self, field: &Field) -> Option<&Type> {
        self.all.get(field.type_index?)
    }

    /// All types, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.all.iter()
    }
}

/// The list of types of a `graphql` document.
pub fn confs(graphql: &Value) -> Option<&[Value]> {
    match graphql {
        Value::List(items) => Some(items),
        Value::Map(map) => map.get("confs")?.as_list(),
        _ => None,
    }
}

impl Type {
    fn read(conf: &Map) -> Option<Self> {
        let mut fields: Vec<Field> = Vec::new();
        for field in conf.get("fields").and_then(Value::as_list).unwrap_or_default() {
            let Some(field) = field.as_map().and_then(Field::read) else { continue };
            match fields.iter_mut().find(|earlier| earlier.name == field.name) {
                Some(earlier) => *earlier = field,
                None => fields.push(field),
            }
        }
        let places = fields.iter().enumerate().map(|(place, field)| (field.name.clone(), place)).collect();
        Some(Self {
            name: text(conf, "name")?,
            fields,
            field_index: places,
            datafile: text(conf, "datafile"),
            is_interface: flag(conf, "isInterface"),
            interface: text(conf, "interface"),
            resolve: conf.get("interfaceResolve").and_then(Value::as_map).map(TypeResolution::read),
        })
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        Some(&self.fields[*self.field_index.get(name)?])
    }

    /// The fields that identify an object in its list.
    pub fn context_unique_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.identifies())
    }

    /// The discriminator field of an interface that is resolved by field value, and the types by value.
    pub fn field_map(&self) -> Option<(&str, &TypesByValue)> {
        match &self.resolve {
            Some(TypeResolution::FieldMap { field, types }) if self.is_interface => Some((field, types)),
            _ => None,
        }
    }
}

impl TypeResolution {
    fn read(map: &Map) -> Self {
        match map.get("strategy").and_then(Value::as_str) {
            Some("fieldMap") => {
                let types = map.get("fieldMap").and_then(Value::as_map).into_iter().flat_map(Map::iter);
                let named =
                    types.filter_map(|(value, name)| Some((value.as_str().into(), name.as_str()?.into())));
                TypeResolution::FieldMap {
                    field: text(map, "field").unwrap_or_default(),
                    types: named.collect(),
                }
            }
            Some("schema") => TypeResolution::Schema,
            other => TypeResolution::Unknown(other.unwrap_or_default().into()),
        }
    }
}

impl Field {
    fn read(map: &Map) -> Option<Self> {
        let synthetic = map.get("synthetic").and_then(Value::as_map);
        Some(Self {
            name: text(map, "name")?,
            type_name: text(map, "type")?,
            type_index: None,
            is_list: flag(map, "isList"),
            is_required: flag(map, "isRequired"),
            is_interface: flag(map, "isInterface"),
            is_searchable: flag(map, "isSearchable"),
            is_unique: flag(map, "isUnique"),
            is_context_unique: flag(map, "isContextUnique"),
            is_resource: flag(map, "isResource"),
            resolve_resource: flag(map, "resolveResource"),
            synthetic: synthetic.and_then(|map| {
                Some(BackrefSelector { schema: text(map, "schema")?, sub_attr: text(map, "subAttr")? })
            }),
            datafile_schema: text(map, "datafileSchema"),
        })
    }

    /// Whether the field identifies an object within its list. A field that is unique across all data also
    /// identifies the object.
    pub fn identifies(&self) -> bool {
        self.is_unique || self.is_context_unique
    }
}

fn text(map: &Map, key: &str) -> Option<Box<str>> {
    map.get(key)?.as_str().map(Box::from)
}

fn flag(map: &Map, key: &str) -> bool {
    map.get(key).is_some_and(Value::is_true)
}
