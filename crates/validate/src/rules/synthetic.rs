//! Rule: the schema and the field that a synthetic field names exist. If one of them does not exist, the
//! synthetic field is always empty.

use qontract_bundle::types::{BackrefSelector, Field, Type};
use qontract_bundle::{Map, Value};
use qontract_diagnostics::{Diagnostic, code, suggest};

use super::graphql;
use crate::Context;
use crate::schema::reference::{self, RefTarget};

/// Checks all synthetic fields.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    graphql::each_field(&cx.bundle.graphql().value, &mut |type_, field, pointer| {
        let known = type_.get("name").and_then(Value::as_str).and_then(|name| cx.types.get(name));
        let name = field.get("name").and_then(Value::as_str);
        let Some((type_, field)) = known.and_then(|known| Some((known, known.field(name?)?))) else { return };
        let Some(synthetic) = &field.synthetic else { return };
        let file = cx.layout.graphql.clone();
        findings
            .extend(check_field(cx, type_, field, synthetic, pointer).map(|finding| finding.in_file(file)));
    });
    findings
}

fn check_field(
    cx: &Context<'_>,
    type_: &Type,
    field: &Field,
    synthetic: &BackrefSelector,
    pointer: &str,
) -> Option<Diagnostic> {
    let BackrefSelector { schema, sub_attr } = synthetic;
    let shown = format!("{}.{}", type_.name, field.name);
    let Some(document) = cx.bundle.schema(schema) else {
        let message = format!("`{shown}` is always empty: schema `{schema}` not found");
        let finding =
            Diagnostic::new(code::SYNTHETIC, message).at_pointer(format!("{pointer}/synthetic/schema"));
        let paths = cx.bundle.schemas().iter().map(|schema| &*schema.path);
        return Some(match suggest::nearest_path(schema, paths) {
            Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
            None => finding,
        });
    };
    let mut places = vec![(schema.to_string(), &*document.value)];
    for step in sub_attr.split('.') {
        let next: Vec<_> =
            places.iter().flat_map(|(path, at)| field_schemas(cx, path, at, step, 0)).collect();
        if next.is_empty() {
            let message = format!("`{shown}` is always empty: `{schema}` has no field `{sub_attr}`");
            let finding =
                Diagnostic::new(code::SYNTHETIC, message).at_pointer(format!("{pointer}/synthetic/subAttr"));
            let fields = places.iter().filter_map(|(_, at)| at.get("properties").and_then(Value::as_map));
            let fields = fields.flat_map(|fields| fields.iter().map(|(name, _)| name.as_str()));
            return Some(match suggest::nearest(step, fields) {
                Some(meant) => finding.hint(format!("did you mean `{meant}`?")),
                None => finding.hint("name the field that holds the reference"),
            });
        }
        places = next;
    }
    None
}

/// The schemas of the field `step` of values of `schema`, in list items and in all alternatives.
pub fn field_schemas<'b>(
    cx: &Context<'b>,
    path: &str,
    schema: &'b Value,
    step: &str,
    depth: usize,
) -> Vec<(String, &'b Value)> {
    const MAX_DEPTH: usize = 12;
    let Some(map) = schema.as_map().filter(|_| depth < MAX_DEPTH) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some((path, target)) = resolve_ref(cx, path, map) {
        return field_schemas(cx, &path, target, step, depth + 1);
    }
    if let Some(field) = map.get("properties").and_then(|properties| properties.get(step)) {
        found.push((path.to_owned(), field));
    }
    for key in ["items", "oneOf", "anyOf", "allOf"] {
        match map.get(key) {
            Some(Value::List(branches)) => {
                for branch in branches {
                    found.extend(field_schemas(cx, path, branch, step, depth + 1));
                }
            }
            Some(branch) => found.extend(field_schemas(cx, path, branch, step, depth + 1)),
            None => {}
        }
    }
    found
}

/// The target of a schema that is a `$ref`, and its file.
pub fn resolve_ref<'b>(cx: &Context<'b>, path: &str, map: &Map) -> Option<(String, &'b Value)> {
    let reference = map.get("$ref")?.as_str()?;
    match reference::resolve(cx.bundle, path, reference) {
        RefTarget::Schema(place) => Some((place.file.to_owned(), place.value)),
        RefTarget::External | RefTarget::NoFile(_) | RefTarget::NoValue(..) | RefTarget::NotASchema(_) => {
            None
        }
    }
}
