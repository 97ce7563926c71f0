//! The kinds that can be listed: the fields of the type `Query`.

use qontract_bundle::types::{Field, Type};
use qontract_diagnostics::StyledText;
use qontract_diagnostics::suggest::did_you_mean;
use qontract_graphql::schema::{Dispatch, FieldDef, Kind as TypeKind, Resolver, TypeDef};
use qontract_graphql::{Engine, Schema};

use super::UnknownName;
use crate::table;

/// Short names, as in Kubernetes.
const ALIASES: [(&str, &str); 1] = [("ns", "namespaces")];

/// A kind of objects that can be listed.
pub struct Kind<'s> {
    /// The types of the data.
    pub schema: &'s Schema,
    /// The field of `Query`.
    pub field: &'s FieldDef,
    /// The type of the field.
    pub type_: &'s TypeDef,
}

impl<'s> Kind<'s> {
    /// Finds a kind by name. The name may omit the version; in that case, the latest version is used.
    pub fn find(schema: &'s Schema, name: &str) -> Result<Self, UnknownName> {
        let wanted = name.replace('-', "_").to_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == wanted);
        let wanted = alias.map_or(wanted, |(_, kind)| (*kind).to_owned());
        let kinds = || all_kinds(schema);
        let exact = kinds().find(|kind| kind.name().to_lowercase() == wanted);
        let same = |kind: &Kind<'_>| {
            let (stem, _) = stem(kind.name());
            let stem = stem.to_lowercase();
            stem == wanted || stem.strip_suffix('s') == Some(&*wanted)
        };
        let kind = exact.or_else(|| kinds().filter(same).max_by_key(|kind| stem(kind.name()).1));
        kind.ok_or_else(|| {
            let near = did_you_mean(&wanted, kinds().map(|kind| stem(kind.name()).0));
            let hint = near.unwrap_or_else(|| "`qontract get` lists all kinds".to_owned());
            UnknownName(format!("no such kind: `{name}`; {hint}"))
        })
    }

    /// The name of the field.
    pub fn name(&self) -> &'s str {
        &self.field.name
    }

    /// The definition of the type in the data repo.
    pub fn definition(&self) -> Option<&'s Type> {
        self.schema.described().get(&self.type_.name)
    }

    /// The field that names an object of this kind.
    pub fn name_field(&self) -> Option<&'s str> {
        name_field_of(self.schema, self.type_)
    }
}

/// All kinds, in the order of the schema.
fn all_kinds(schema: &Schema) -> impl Iterator<Item = Kind<'_>> {
    let listed = schema.type_(schema.query()).fields.iter().filter(|field| {
        matches!(field.resolver, Resolver::Datafiles(_) | Resolver::Resources) && field.shape.list
    });
    listed.map(|field| Kind { schema, field, type_: schema.type_(field.shape.named) })
}

/// Splits a name into stem and version: `apps_v1` → `apps`, 1
fn stem(name: &str) -> (&str, u32) {
    let split = name.rsplit_once("_v").and_then(|(stem, version)| Some((stem, version.parse().ok()?)));
    split.unwrap_or((name, 0))
}

/// The field that names an object of a type: a unique field, preferably `name`; otherwise `name`; otherwise
/// `path`.
pub fn name_field_of<'s>(schema: &'s Schema, type_: &'s TypeDef) -> Option<&'s str> {
    let described = schema.described().get(&type_.name);
    let plain = |field: &&Field| {
        let definition = type_.field(&field.name);
        definition.is_some_and(|definition| {
            let composite = schema.type_(definition.shape.named).is_composite();
            !composite && !definition.shape.list && matches!(definition.resolver, Resolver::Key)
        })
    };
    let fields = || described.into_iter().flat_map(|described| &described.fields).filter(plain);
    let named = fields().find(|field| &*field.name == "name");
    let known_by = named.filter(|field| field.is_unique || field.is_searchable);
    let unique = known_by.or_else(|| fields().find(|field| field.is_unique));
    let context = fields().find(|field| field.is_context_unique && &*field.name != "provider");
    // Objects of a datafile type may also be inline; such objects have no path.
    let has_path = match &type_.kind {
        TypeKind::Interface(dispatch) => matches!(dispatch, Dispatch::Schema),
        _ => type_.field("sha256sum").is_some(),
    };
    let path = fields().find(|field| &*field.name == "path" && has_path);
    unique.or(named).or(context).or(path).map(|field| &*field.name)
}

/// A table of all kinds with the number of their objects.
pub fn list(engine: &Engine) -> StyledText {
    let header = ["KIND", "TYPE", "COUNT"].map(str::to_owned).to_vec();
    let rows = all_kinds(engine.schema()).map(|kind| {
        let count = match &kind.field.resolver {
            Resolver::Datafiles(schema) => engine.index().files_of(schema).len(),
            _ => engine.bundle().resources().len(),
        };
        vec![kind.name().to_owned(), kind.type_.name.to_string(), count.to_string()]
    });
    table::styled(&header, &rows.collect::<Vec<_>>())
}
