//! The GraphQL schema of a bundle, built at run time from the type descriptions of the data repo.

mod cache;
mod draft;
mod model;
mod order;
mod sdl;

use std::collections::{BTreeSet, HashMap, HashSet};

use apollo_compiler::ast;
use apollo_compiler::schema::{Component, ExtendedType, Schema as Compiled};
use apollo_compiler::validation::Valid;
use apollo_compiler::{Name, Node};
use qontract_bundle::Value;
use qontract_bundle::types::{self, Types};

pub use cache::SchemaCache;
use draft::{DraftArgument, DraftKind, DraftShape, Drafts};
pub use model::{
    ArgumentDef, BackReference, DirectiveDef, Dispatch, FieldDef, Kind, Resolver, Scalar, Shape, TypeDef,
    TypeId,
};

/// The reason why the types of a data repo are not a valid GraphQL schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A field has a type that is not defined.
    #[error("`{place}` has type `{name}`, which is not defined")]
    UnknownType {
        /// The field.
        place: String,
        /// The type.
        name: String,
    },
    /// A type implements an interface that is not defined.
    #[error("`{place}` implements `{name}`, which is not defined as an interface")]
    UnknownInterface {
        /// The type.
        place: String,
        /// The interface.
        name: String,
    },
    /// An interface uses an unknown strategy to resolve its object types.
    #[error(
        "interface `{type_}` resolves its types by `{strategy}`: only `fieldMap` and `schema` are supported"
    )]
    Strategy {
        /// The interface.
        type_: String,
        /// The strategy.
        strategy: String,
    },
    /// The type `Query` is missing.
    #[error("type `Query` is not defined")]
    NoQuery,
    /// The types are inconsistent, or violate a GraphQL rule.
    #[error("the types are not a valid GraphQL schema: {first}")]
    Invalid {
        /// The first error.
        first: String,
    },
}

/// The GraphQL schema of a bundle.
#[derive(Debug)]
pub struct Schema {
    types: Vec<TypeDef>,
    by_name: HashMap<Box<str>, TypeId>,
    by_datafile: HashMap<Box<str>, TypeId>,
    directives: Vec<DirectiveDef>,
    back_references: Vec<BackReference>,
    described: Types,
    query: TypeId,
    compiled: Valid<Compiled>,
}

impl Schema {
    /// Builds the schema from the `graphql` document of a bundle.
    pub fn build(graphql: &Value) -> Result<Self, SchemaError> {
        let described = Types::read(graphql);
        let mut drafts = Drafts::default();
        drafts.add_types(&described)?;
        let meta = ast::Document::parse(include_str!("schema/meta.graphql"), "meta.graphql")
            .map_err(|error| SchemaError::Invalid { first: error.errors.to_string() })?;
        drafts.add_meta(&meta, &Compiled::new());
        if !drafts.types.get("Query").is_some_and(|draft| matches!(draft.kind, DraftKind::Object)) {
            return Err(SchemaError::NoQuery);
        }
        let names = names_in_order(graphql);
        let order = order::of(&drafts, &names);
        let mut schema = number(drafts, &order, described)?;
        schema.compiled = compile(&schema, &meta)?;
        Ok(schema)
    }

    /// All types, in schema order.
    pub fn types(&self) -> &[TypeDef] {
        &self.types
    }

    /// The type with this id.
    pub fn type_(&self, id: TypeId) -> &TypeDef {
        &self.types[id]
    }

    /// The id of the type with this name.
    pub fn type_id(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The id of the type that datafiles with this schema have.
    pub fn datafile_type(&self, schema: &str) -> Option<TypeId> {
        self.by_datafile.get(schema).copied()
    }

    /// The schemas of all datafiles that have a type.
    pub fn typed_schemas(&self) -> BTreeSet<String> {
        let schemas = (0..self.types.len()).flat_map(|type_| self.schemas_of(type_));
        schemas.map(String::from).collect()
    }

    /// The schemas that datafiles of a type may have: the schema of the type, the schemas of its interfaces
    /// and of the `Query` fields that list the type, and, for an interface, the schemas of its object types.
    pub fn schemas_of(&self, type_: TypeId) -> Vec<Box<str>> {
        let mut schemas = Vec::new();
        let family = std::iter::once(type_).chain(self.types[type_].possible.iter().copied());
        for id in family {
            schemas.extend(self.types[id].datafile.clone());
            // A datafile with the schema of an interface may have any of the object types of the interface.
            schemas.extend(
                self.types[id].interfaces.iter().filter_map(|other| self.types[*other].datafile.clone()),
            );
            for field in &self.types[self.query].fields {
                if let Resolver::Datafiles(schema) = &field.resolver
                    && field.shape.named == id
                {
                    schemas.push(schema.clone());
                }
            }
        }
        schemas.sort();
        schemas.dedup();
        schemas
    }

    /// The id of the type `Query`.
    pub fn query(&self) -> TypeId {
        self.query
    }

    /// All directives, in schema order.
    pub fn directives(&self) -> &[DirectiveDef] {
        &self.directives
    }

    /// The back-references that fields use.
    pub fn back_references(&self) -> &[BackReference] {
        &self.back_references
    }

    /// The type descriptions of the data repo.
    pub fn described(&self) -> &Types {
        &self.described
    }

    /// The schema as an apollo-compiler schema.
    pub(crate) fn compiled(&self) -> &Valid<Compiled> {
        &self.compiled
    }
}

/// The names of the described types in file order, without duplicates.
fn names_in_order(graphql: &Value) -> Vec<&str> {
    let confs = types::confs(graphql).unwrap_or_default();
    let mut seen = HashSet::new();
    let names = confs.iter().filter_map(|conf| conf.get("name")?.as_str());
    names.filter(|name| seen.insert(*name)).collect()
}

/// Replaces type names by ids.
fn number(mut drafts: Drafts, order: &[Box<str>], described: Types) -> Result<Schema, SchemaError> {
    let by_name: HashMap<Box<str>, TypeId> =
        order.iter().enumerate().map(|(id, name)| (name.clone(), id)).collect();
    let id = |place: &str, name: &str| {
        let unknown = || SchemaError::UnknownType { place: place.to_owned(), name: name.to_owned() };
        by_name.get(name).copied().ok_or_else(unknown)
    };
    let shape = |place: &str, shape: &DraftShape| {
        let DraftShape { named, list, required } = shape;
        Ok::<_, SchemaError>(Shape { named: id(place, named)?, list: *list, required: *required })
    };
    let arguments = |place: &str, arguments: Vec<DraftArgument>| {
        let number = |argument: DraftArgument| {
            let DraftArgument { name, description, shape: draft, default } = argument;
            Ok(ArgumentDef { name, description, shape: shape(place, &draft)?, default })
        };
        arguments.into_iter().map(number).collect::<Result<Vec<_>, SchemaError>>()
    };
    let mut types = Vec::with_capacity(order.len());
    for name in order {
        let unknown = || SchemaError::UnknownType { place: "Query".to_owned(), name: name.to_string() };
        let draft = drafts.types.remove(name).ok_or_else(unknown)?;
        let mut fields = Vec::with_capacity(draft.fields.len());
        for field in draft.fields {
            let place = format!("{name}.{}", field.name);
            fields.push(FieldDef {
                shape: shape(&place, &field.shape)?,
                arguments: arguments(&place, field.arguments)?,
                name: field.name,
                description: field.description,
                resolver: field.resolver,
            });
        }
        types.push(TypeDef {
            name: name.clone(),
            description: draft.description,
            kind: match draft.kind {
                DraftKind::Scalar(scalar) => Kind::Scalar(scalar),
                DraftKind::Object => Kind::Object,
                DraftKind::Interface(dispatch) => Kind::Interface(dispatch),
                DraftKind::Enum => Kind::Enum,
            },
            fields,
            interfaces: draft.interfaces.iter().map(|other| id(name, other)).collect::<Result<_, _>>()?,
            possible: Vec::new(),
            values: draft.values,
            datafile: draft.datafile,
        });
    }
    let mut by_datafile = HashMap::new();
    for id in 0..types.len() {
        if let Some(datafile) = &types[id].datafile {
            by_datafile.entry(datafile.clone()).or_insert(id);
        }
        if matches!(types[id].kind, Kind::Object) {
            for interface in types[id].interfaces.clone() {
                types[interface].possible.push(id);
            }
        }
    }
    let mut directives = Vec::new();
    for directive in drafts.directives {
        directives.push(DirectiveDef {
            arguments: arguments(&directive.name, directive.arguments)?,
            name: directive.name,
            description: directive.description,
            locations: directive.locations,
        });
    }
    let query = id("schema", "Query")?;
    let back_references = drafts.back_references;
    let compiled = Valid::assume_valid(Compiled::new());
    Ok(Schema { types, by_name, by_datafile, directives, back_references, described, query, compiled })
}

/// Builds the schema for apollo-compiler, with the introspection types of `meta.graphql`.
fn compile(schema: &Schema, meta: &ast::Document) -> Result<Valid<Compiled>, SchemaError> {
    let invalid = |errors: &dyn std::fmt::Display| {
        let text = errors.to_string();
        SchemaError::Invalid { first: text.lines().next().unwrap_or_default().to_owned() }
    };
    let mut compiled =
        Compiled::parse(schema.to_sdl(), "schema.graphql").map_err(|error| invalid(&error.errors))?;
    for definition in &meta.definitions {
        if let ast::Definition::ObjectTypeDefinition(object) = definition
            && let Some(ExtendedType::Object(known)) = compiled.types.get_mut(&object.name)
        {
            let known = known.make_mut();
            known.fields.clear();
            for field in &object.fields {
                // Only built-in names may begin with `__`, and names without a location count as built-in.
                let name = Name::new_unchecked(field.name.as_str());
                known.fields.insert(name, Component::from(Node::clone(field)));
            }
        }
    }
    compiled.validate().map_err(|error| invalid(&error.errors))
}
