//! Builds the GraphQL query for a kind from its type.

use qontract_graphql::Schema;
use qontract_graphql::schema::{Dispatch, FieldDef, Kind as TypeKind, Resolver, Scalar, TypeDef};

use super::UnknownName;
use super::kind::{Kind, name_field_of};

/// The key of the rows in the query result.
pub const ROWS_KEY: &str = "rows";
/// The key prefix of fields of type JSON.
pub const JSON_PREFIX: &str = "json__";
/// Maximum number of columns besides the name and the file.
const MAX_COLUMNS: usize = 5;
/// Maximum depth of nested objects that are shown.
const MAX_DEPTH: usize = 6;

/// The selected fields of a query.
pub struct Selection {
    /// The fields, in order, with the selection of each.
    fields: Vec<(String, String)>,
    /// Names of the fields that are columns.
    pub columns: Vec<String>,
}

impl Selection {
    /// The most informative columns: the name, then required references, then required values.
    pub fn short(kind: &Kind<'_>) -> Self {
        let mut selection = Self::with_name(kind);
        let described = kind.definition();
        let skipped = |field: &&FieldDef| {
            matches!(&*field.name, "schema" | "path" | "labels" | "description" | "content")
                || Some(&*field.name) == kind.name_field()
        };
        let single =
            || kind.type_.fields.iter().filter(|field| !field.shape.list).filter(|field| !skipped(field));
        let required = |field: &&FieldDef| field.shape.required;
        let refers = |field: &&FieldDef| kind.schema.type_(field.shape.named).is_composite();
        let is_indexed = |field: &&FieldDef| {
            let attributes = described.and_then(|described| described.field(&field.name));
            attributes.is_some_and(|field| field.is_searchable || field.is_unique)
        };
        let ranked = [
            single().filter(|field| is_indexed(field)).collect::<Vec<_>>(),
            single().filter(|field| required(field) && refers(field)).collect(),
            single().filter(|field| required(field) && !refers(field)).collect(),
            single().filter(|field| !required(field) && refers(field)).collect(),
            single().filter(|field| !required(field) && !refers(field)).collect(),
        ];
        for field in ranked.into_iter().flatten() {
            if selection.columns.len() > MAX_COLUMNS {
                break;
            }
            selection.add(kind.schema, field);
        }
        selection
    }

    /// All fields whose values fit into a cell.
    pub fn wide(kind: &Kind<'_>) -> Self {
        let mut selection = Self::with_name(kind);
        for field in &kind.type_.fields {
            if !matches!(&*field.name, "schema" | "path" | "content")
                && Some(&*field.name) != kind.name_field()
            {
                selection.add(kind.schema, field);
            }
        }
        selection
    }

    /// All fields; objects in other datafiles are shown by name and path only.
    pub fn whole(kind: &Kind<'_>) -> Self {
        let parts = whole_type(kind.schema, kind.type_, 0);
        Self { fields: vec![(String::new(), parts)], columns: Vec::new() }
    }

    fn with_name(kind: &Kind<'_>) -> Self {
        let mut selection = Self { fields: Vec::new(), columns: Vec::new() };
        if let Some(field) = kind.name_field().and_then(|title| kind.type_.field(title)) {
            selection.add(kind.schema, field);
        }
        if matches!(kind.type_.kind, TypeKind::Interface(_)) {
            selection.fields.push(("__typename".to_owned(), "__typename".to_owned()));
            selection.columns.push("__typename".to_owned());
        }
        selection
    }

    /// Adds a field for filtering or sorting.
    pub fn require(&mut self, kind: &Kind<'_>, name: &str) -> Result<(), UnknownName> {
        let Some(selected) = kind.type_.field(name).and_then(|field| cell_selection(kind.schema, field))
        else {
            let names = kind.type_.fields.iter().filter(|field| cell_selection(kind.schema, field).is_some());
            let names: Vec<&str> = names.map(|field| &*field.name).collect();
            let message = format!(
                "`{}` cannot be filtered or sorted by `{name}`; its fields are {}",
                kind.name(),
                names.join(", ")
            );
            return Err(UnknownName(message));
        };
        if !self.fields.iter().any(|(field, _)| field == name) {
            self.fields.push((name.to_owned(), selected));
        }
        Ok(())
    }

    fn add(&mut self, schema: &Schema, field: &FieldDef) {
        let name = field.name.to_string();
        if self.columns.contains(&name) {
            return;
        }
        if let Some(selected) = cell_selection(schema, field) {
            self.fields.push((name.clone(), selected));
            self.columns.push(name);
        }
    }

    /// Builds the query.
    pub fn query(&self, kind: &Kind<'_>, name: Option<&str>) -> String {
        let mut selections: Vec<&str> = self.fields.iter().map(|(_, selected)| selected.as_str()).collect();
        if selections.is_empty() {
            selections.push("__typename");
        }
        let path = name.filter(|name| name.starts_with('/'));
        let argument =
            path.map_or(String::new(), |path| format!("(path: {})", serde_json::Value::from(path)));
        format!("{{ {ROWS_KEY}: {}{argument} {{ {} }} }}", kind.name(), selections.join(" "))
    }
}

/// The selection of a field that fits in a cell; `None` if it does not fit.
fn cell_selection(schema: &Schema, field: &FieldDef) -> Option<String> {
    let type_ = schema.type_(field.shape.named);
    match type_.kind {
        TypeKind::Scalar(Scalar::Json) | TypeKind::Enum => None,
        TypeKind::Scalar(_) => Some(field.name.to_string()),
        TypeKind::Object | TypeKind::Interface(_) => {
            if matches!(field.resolver, Resolver::Datafiles(_) | Resolver::Resources) {
                return None;
            }
            Some(format!("{} {{ {} }}", field.name, name_field_of(schema, type_)?))
        }
    }
}

fn whole_type(schema: &Schema, type_: &TypeDef, depth: usize) -> String {
    let mut parts = Vec::new();
    // Inline objects have no path and no schema.
    let written_here = |field: &&FieldDef| {
        depth == 0 || !matches!(&*field.name, "path" | "schema") || type_.datafile.is_none()
    };
    for field in type_.fields.iter().filter(written_here) {
        parts.extend(whole_field(schema, field, "", depth));
    }
    if matches!(type_.kind, TypeKind::Interface(_)) {
        for possible in &type_.possible {
            let possible = schema.type_(*possible);
            let mut more = Vec::new();
            for field in possible.fields.iter().filter(|field| type_.field(&field.name).is_none()) {
                // The prefix distinguishes fields with the same key that have different types in different
                // objects.
                more.extend(whole_field(schema, field, &format!("{}__", possible.name), depth));
            }
            if !more.is_empty() {
                parts.push(format!("... on {} {{ {} }}", possible.name, more.join(" ")));
            }
        }
    }
    if parts.is_empty() { "__typename".to_owned() } else { parts.join(" ") }
}

fn whole_field(schema: &Schema, field: &FieldDef, prefix: &str, depth: usize) -> Option<String> {
    let type_ = schema.type_(field.shape.named);
    let name = &field.name;
    let alias = if prefix.is_empty() { String::new() } else { format!("{prefix}{name}: ") };
    let elsewhere = type_.datafile.is_some() || matches!(type_.kind, TypeKind::Interface(Dispatch::Schema));
    let named = name_field_of(schema, type_)
        .filter(|_| elsewhere || matches!(field.resolver, Resolver::BackReferences(_)));
    match type_.kind {
        TypeKind::Scalar(Scalar::Json) => Some(format!("{prefix}{JSON_PREFIX}{name}: {name}")),
        TypeKind::Scalar(_) | TypeKind::Enum => Some(format!("{alias}{name}")),
        _ if matches!(field.resolver, Resolver::Datafiles(_) | Resolver::Resources) => None,
        _ if matches!(field.resolver, Resolver::Resource) => Some(format!("{alias}{name} {{ path }}")),
        _ if named.is_some() => Some(format!("{alias}{name} {{ {} }}", named.unwrap_or_default())),
        _ if depth >= MAX_DEPTH => None,
        _ => Some(format!("{alias}{name} {{ {} }}", whole_type(schema, type_, depth + 1))),
    }
}
