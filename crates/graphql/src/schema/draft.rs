//! Draft types, which refer to each other by name. Before ids are assigned, the draft types are built from
//! the type descriptions of the data repo and from the GraphQL specification.

use std::collections::BTreeMap;

use apollo_compiler::ast;
use apollo_compiler::schema::{ExtendedType, Schema as Compiled};
use qontract_bundle::types::{Field, Type, TypeResolution, Types};

use super::SchemaError;
use super::model::{BackReference, Dispatch, Scalar};

/// The interface that all datafile types implement, if the data repo describes it.
const DATAFILE_OBJECT: &str = "DatafileObject_v1";
/// The name of the type of resources.
pub const RESOURCE: &str = "Resource_v1";

/// A type that refers to other types by name.
pub struct Draft {
    pub description: Option<Box<str>>,
    pub kind: DraftKind,
    pub fields: Vec<DraftField>,
    pub interfaces: Vec<Box<str>>,
    pub values: Vec<(Box<str>, Option<Box<str>>)>,
    pub datafile: Option<Box<str>>,
}

pub enum DraftKind {
    Scalar(Scalar),
    Object,
    Interface(Dispatch),
    Enum,
}

pub struct DraftField {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    pub arguments: Vec<DraftArgument>,
    pub shape: DraftShape,
    pub resolver: super::model::Resolver,
}

pub struct DraftArgument {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    pub shape: DraftShape,
    pub default: Option<Box<str>>,
}

#[derive(Clone)]
pub struct DraftShape {
    pub named: Box<str>,
    pub list: bool,
    pub required: bool,
}

pub struct DraftDirective {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    pub locations: Vec<Box<str>>,
    pub arguments: Vec<DraftArgument>,
}

/// All draft types and directives, and the back-references that their fields use.
#[derive(Default)]
pub struct Drafts {
    pub types: BTreeMap<Box<str>, Draft>,
    pub directives: Vec<DraftDirective>,
    pub back_references: Vec<BackReference>,
}

impl DraftShape {
    fn named(name: &str) -> Self {
        Self { named: name.into(), list: false, required: false }
    }
}

impl Drafts {
    /// Adds the scalars and the types that the data repo describes.
    pub fn add_types(&mut self, types: &Types) -> Result<(), SchemaError> {
        for (name, scalar) in [
            ("String", Scalar::String),
            ("Int", Scalar::Int),
            ("Float", Scalar::Float),
            ("Boolean", Scalar::Boolean),
            ("JSON", Scalar::Json),
        ] {
            self.types.insert(name.into(), Draft::new(DraftKind::Scalar(scalar)));
        }
        for type_ in types.iter() {
            let draft = self.type_(type_, types)?;
            self.types.insert(type_.name.clone(), draft);
        }
        Ok(())
    }

    fn type_(&mut self, type_: &Type, types: &Types) -> Result<Draft, SchemaError> {
        let kind = match (&type_.resolve, type_.is_interface) {
            (_, false) => DraftKind::Object,
            (None, true) => DraftKind::Interface(Dispatch::None),
            (Some(TypeResolution::Schema), true) => DraftKind::Interface(Dispatch::Schema),
            (Some(TypeResolution::FieldMap { field, types }), true) => {
                DraftKind::Interface(Dispatch::Key { key: field.clone(), types: types.clone() })
            }
            (Some(TypeResolution::Unknown(strategy)), true) => {
                let (type_, strategy) = (type_.name.to_string(), strategy.to_string());
                return Err(SchemaError::Strategy { type_, strategy });
            }
        };
        let fields = type_.fields.iter().map(|field| self.field(type_, field, types));
        let fields = fields.collect::<Result<_, _>>()?;
        if let Some(name) = type_.interface.as_deref()
            && !types.get(name).is_some_and(|other| other.is_interface)
        {
            let (place, name) = (type_.name.to_string(), name.to_owned());
            return Err(SchemaError::UnknownInterface { place, name });
        }
        let interfaces = interfaces(type_, types);
        Ok(Draft { fields, interfaces, datafile: type_.datafile.clone(), ..Draft::new(kind) })
    }

    fn field(&mut self, type_: &Type, field: &Field, types: &Types) -> Result<DraftField, SchemaError> {
        use super::model::Resolver;
        let mut shape = DraftShape {
            named: scalar(&field.type_name).map_or_else(|| field.type_name.clone(), Into::into),
            list: field.is_list,
            required: field.is_required,
        };
        let mut arguments = Vec::new();
        let mut argument = |name: &str, named: &str| {
            let (name, shape) = (name.into(), DraftShape::named(named));
            arguments.push(DraftArgument { name, description: None, shape, default: None });
        };
        let resolver = if let Some(schema) = &field.datafile_schema {
            let searched = types.of_field(field).map(|type_| type_.fields.as_slice());
            for field in searched.unwrap_or_default().iter().filter(|field| field.is_searchable) {
                argument(&field.name, "String");
            }
            argument("path", "String");
            argument("filter", "JSON");
            Resolver::Datafiles(schema.clone())
        } else if let Some(synthetic) = &field.synthetic {
            let path = synthetic.sub_attr.split('.').map(Into::into).collect();
            let reference = BackReference { schema: synthetic.schema.clone(), path };
            let known = self.back_references.iter().position(|known| *known == reference);
            Resolver::BackReferences(known.unwrap_or_else(|| {
                self.back_references.push(reference);
                self.back_references.len() - 1
            }))
        } else if field.is_resource && field.resolve_resource && &*field.type_name == "string" {
            // The field is nullable even if it is required, because the resource may be missing.
            shape = DraftShape::named(RESOURCE);
            Resolver::Resource
        } else if field.is_resource && &*field.type_name == RESOURCE {
            argument("path", "String");
            argument("schema", "String");
            Resolver::Resources
        } else if &*field.name == "schema" {
            Resolver::SchemaKey
        } else {
            Resolver::Key
        };
        if scalar(&field.type_name).is_none() && types.get(&shape.named).is_none()
            || &*shape.named == RESOURCE && types.get(RESOURCE).is_none()
        {
            let place = format!("{}.{}", type_.name, field.name);
            return Err(SchemaError::UnknownType { place, name: shape.named.to_string() });
        }
        Ok(DraftField { name: field.name.clone(), description: None, arguments, shape, resolver })
    }

    /// Adds the introspection types and the directives. Fields and order are those of `meta.graphql`; missing
    /// descriptions are taken from apollo-compiler.
    pub fn add_meta(&mut self, meta: &ast::Document, built_in: &Compiled) {
        for (name, draft) in &mut self.types {
            if matches!(draft.kind, DraftKind::Scalar(_)) {
                draft.description = built_in.types.get(&**name).and_then(description);
            }
        }
        for definition in &meta.definitions {
            match definition {
                ast::Definition::ObjectTypeDefinition(object) => {
                    let known = built_in.types.get(&object.name);
                    let known_fields = known.and_then(|known| known.as_object()).map(|known| &known.fields);
                    let fields = object.fields.iter().map(|field| {
                        let known = known_fields.and_then(|fields| fields.get(&field.name));
                        let description = known.and_then(|known| text(known.description.as_deref()));
                        meta_field(field, description)
                    });
                    let fields = fields.collect();
                    let description = known.and_then(description);
                    let draft = Draft { description, fields, ..Draft::new(DraftKind::Object) };
                    self.types.insert(object.name.as_str().into(), draft);
                }
                ast::Definition::EnumTypeDefinition(enumeration) => {
                    let known = built_in.types.get(&enumeration.name);
                    let known_values = known.and_then(|known| known.as_enum()).map(|known| &known.values);
                    let values = enumeration.values.iter().map(|value| {
                        let known = known_values.and_then(|values| values.get(&value.value));
                        let known = known.and_then(|known| text(known.description.as_deref()));
                        (value.value.as_str().into(), text(value.description.as_deref()).or(known))
                    });
                    let values = values.collect();
                    let description = known.and_then(description);
                    let draft = Draft { description, values, ..Draft::new(DraftKind::Enum) };
                    self.types.insert(enumeration.name.as_str().into(), draft);
                }
                ast::Definition::DirectiveDefinition(directive) => {
                    let known = built_in.directive_definitions.get(&directive.name);
                    let arguments = directive.arguments.iter().map(|argument| {
                        let known = known.and_then(|known| known.argument_by_name(&argument.name));
                        let known = known.and_then(|known| text(known.description.as_deref()));
                        meta_argument(argument, known)
                    });
                    let described = known.and_then(|known| text(known.description.as_deref()));
                    let mut locations: Vec<Box<str>> =
                        directive.locations.iter().map(|place| place.name().into()).collect();
                    if directive.name == "deprecated" {
                        // The parser does not support this directive location yet.
                        locations.push("DIRECTIVE_DEFINITION".into());
                    }
                    self.directives.push(DraftDirective {
                        name: directive.name.as_str().into(),
                        description: text(directive.description.as_deref()).or(described),
                        locations,
                        arguments: arguments.collect(),
                    });
                }
                _ => {}
            }
        }
    }
}

impl Draft {
    fn new(kind: DraftKind) -> Self {
        let (fields, interfaces, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { description: None, kind, fields, interfaces, values, datafile: None }
    }
}

/// The GraphQL name of a scalar type of the data repo.
pub fn scalar(name: &str) -> Option<&'static str> {
    Some(match name {
        "string" => "String",
        "int" => "Int",
        "float" => "Float",
        "boolean" => "Boolean",
        "json" => "JSON",
        _ => return None,
    })
}

/// The interfaces of a type: the interface that it names and, for a datafile type, the interface of all
/// datafile types.
fn interfaces(type_: &Type, types: &Types) -> Vec<Box<str>> {
    let own = type_.interface.as_deref();
    let has_datafile = |name: &str| types.get(name).is_some_and(|type_| type_.datafile.is_some());
    let mut interfaces: Vec<Box<str>> = own.into_iter().map(Into::into).collect();
    let is_datafile = type_.datafile.is_some() || own.is_some_and(has_datafile);
    let known = types.get(DATAFILE_OBJECT).is_some_and(|known| known.is_interface);
    if is_datafile && known && own != Some(DATAFILE_OBJECT) && &*type_.name != DATAFILE_OBJECT {
        interfaces.push(DATAFILE_OBJECT.into());
    }
    interfaces
}

fn text(text: Option<&str>) -> Option<Box<str>> {
    text.map(Into::into)
}

fn description(type_: &ExtendedType) -> Option<Box<str>> {
    text(type_.description().map(apollo_compiler::Node::as_str))
}

fn meta_field(field: &ast::FieldDefinition, description: Option<Box<str>>) -> DraftField {
    DraftField {
        name: field.name.as_str().into(),
        description,
        arguments: field.arguments.iter().map(|argument| meta_argument(argument, None)).collect(),
        shape: meta_shape(&field.ty),
        resolver: super::model::Resolver::Meta,
    }
}

fn meta_argument(argument: &ast::InputValueDefinition, known: Option<Box<str>>) -> DraftArgument {
    DraftArgument {
        name: argument.name.as_str().into(),
        description: text(argument.description.as_deref()).or(known),
        shape: meta_shape(&argument.ty),
        default: argument.default_value.as_ref().map(|value| value.to_string().into()),
    }
}

fn meta_shape(type_: &ast::Type) -> DraftShape {
    let (list, required) = (type_.is_list(), type_.is_non_null());
    DraftShape { named: type_.inner_named_type().as_str().into(), list, required }
}
