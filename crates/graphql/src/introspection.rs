//! Introspection: resolves the fields of `__schema` and `__type`.

use crate::schema::{Kind, Schema, Shape};
use crate::source::{IntrospectionObject, ListSource, ResolvedValue, Source};

/// Resolves the field `name` of an introspection object. Nothing in a schema is deprecated, so
/// `includeDeprecated` has no effect.
pub fn resolve<'a>(schema: &'a Schema, meta: IntrospectionObject<'a>, name: &str) -> ResolvedValue<'a> {
    match meta {
        IntrospectionObject::Schema => match name {
            "types" => metas((0..schema.types().len()).map(|id| IntrospectionObject::Type(named(id)))),
            "queryType" => one(IntrospectionObject::Type(named(schema.query()))),
            "directives" => metas(schema.directives().iter().map(IntrospectionObject::Directive)),
            _ => ResolvedValue::Null,
        },
        IntrospectionObject::Type(shape) => type_field(schema, shape, name),
        IntrospectionObject::Field(field) => match name {
            "name" => text(Some(&field.name)),
            "description" => text(field.description.as_deref()),
            "args" => metas(field.arguments.iter().map(IntrospectionObject::Argument)),
            "type" => one(IntrospectionObject::Type(field.shape)),
            other => never_deprecated(other),
        },
        IntrospectionObject::Argument(argument) => match name {
            "name" => text(Some(&argument.name)),
            "description" => text(argument.description.as_deref()),
            "type" => one(IntrospectionObject::Type(argument.shape)),
            "defaultValue" => text(argument.default.as_deref()),
            other => never_deprecated(other),
        },
        IntrospectionObject::EnumValue(value, description) => match name {
            "name" => text(Some(value)),
            "description" => text(description),
            other => never_deprecated(other),
        },
        IntrospectionObject::Directive(directive) => match name {
            "name" => text(Some(&directive.name)),
            "description" => text(directive.description.as_deref()),
            "isRepeatable" => ResolvedValue::One(Source::Flag(false)),
            "locations" => ResolvedValue::Many(ListSource::Texts(&directive.locations)),
            "args" => metas(directive.arguments.iter().map(IntrospectionObject::Argument)),
            other => never_deprecated(other),
        },
    }
}

fn type_field<'a>(schema: &'a Schema, shape: Shape, name: &str) -> ResolvedValue<'a> {
    let inner = match shape {
        Shape { required: true, .. } => Some(("NON_NULL", Shape { required: false, ..shape })),
        Shape { list: true, .. } => Some(("LIST", Shape { list: false, required: true, ..shape })),
        _ => None,
    };
    if let Some((kind, inner)) = inner {
        return match name {
            "kind" => text(Some(kind)),
            "ofType" => one(IntrospectionObject::Type(inner)),
            _ => ResolvedValue::Null,
        };
    }
    let type_ = schema.type_(shape.named);
    match name {
        "kind" => text(Some(match type_.kind {
            Kind::Scalar(_) => "SCALAR",
            Kind::Object => "OBJECT",
            Kind::Interface(_) => "INTERFACE",
            Kind::Enum => "ENUM",
        })),
        "name" => text(Some(&type_.name)),
        "description" => text(type_.description.as_deref()),
        "fields" if type_.is_composite() => metas(type_.fields.iter().map(IntrospectionObject::Field)),
        "interfaces" if type_.is_composite() => {
            metas(type_.interfaces.iter().map(|id| IntrospectionObject::Type(named(*id))))
        }
        "possibleTypes" if matches!(type_.kind, Kind::Interface(_)) => {
            metas(type_.possible.iter().map(|id| IntrospectionObject::Type(named(*id))))
        }
        "enumValues" if matches!(type_.kind, Kind::Enum) => metas(
            type_
                .values
                .iter()
                .map(|(name, description)| IntrospectionObject::EnumValue(name, description.as_deref())),
        ),
        _ => ResolvedValue::Null,
    }
}

/// The type with this id, without wrappers.
pub fn named(id: usize) -> Shape {
    Shape { named: id, list: false, required: false }
}

fn never_deprecated<'a>(field: &str) -> ResolvedValue<'a> {
    if field == "isDeprecated" { ResolvedValue::One(Source::Flag(false)) } else { ResolvedValue::Null }
}

fn text(text: Option<&str>) -> ResolvedValue<'_> {
    text.map_or(ResolvedValue::Null, |text| ResolvedValue::One(Source::Text(text)))
}

fn one(meta: IntrospectionObject<'_>) -> ResolvedValue<'_> {
    ResolvedValue::One(Source::Meta(meta))
}

fn metas<'a>(metas: impl Iterator<Item = IntrospectionObject<'a>>) -> ResolvedValue<'a> {
    ResolvedValue::Many(ListSource::Metas(metas.collect()))
}
