//! Rule: GraphQL types match their JSON schemas. If they do not, queries can fail for valid data.

use std::collections::BTreeSet;

use qontract_bundle::types::{Field, Type};
use qontract_bundle::{Map, Value, types};
use qontract_diagnostics::{Diagnostic, code};

use super::graphql::{SCALARS, list_pointer};
use super::synthetic::resolve_ref;
use crate::Context;

/// Fields that every datafile type has, and that schemas do not define.
const BUILT_IN_FIELDS: [&str; 2] = ["schema", "path"];

/// Compares all datafile types, and the types of their fields, with their schemas.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let mut matching = SchemaMatcher { cx, seen: BTreeSet::new(), findings: Vec::new() };
    for schema in cx.bundle.schemas() {
        if let Some(type_) = cx.types.by_schema(&schema.path) {
            matching.type_(type_, &schema.path, &schema.document.value);
        }
    }
    matching.findings
}

struct SchemaMatcher<'a> {
    cx: &'a Context<'a>,
    /// Types and memory addresses of schemas that were already compared.
    seen: BTreeSet<(&'a str, usize)>,
    findings: Vec<Diagnostic>,
}

impl<'a> SchemaMatcher<'a> {
    fn type_(&mut self, type_: &'a Type, path: &str, schema: &'a Value) {
        let Some(map) = schema.as_map() else { return };
        if let Some((path, target)) = resolve_ref(self.cx, path, map) {
            // With `$schemaRef`, the value is a reference to another datafile.
            if map.get("$schemaRef").is_none() {
                self.type_(type_, &path, target);
            }
            return;
        }
        // A schema with the field `$ref` is that of a reference, not of its target.
        let is_reference = map.get("properties").is_some_and(|fields| fields.get("$ref").is_some());
        if is_reference || !self.seen.insert((&type_.name, std::ptr::from_ref(schema).addr())) {
            return;
        }
        if let Some(Value::List(branches)) = map.get("oneOf") {
            for branch in branches {
                self.branch(type_, path, branch, map);
            }
            if map.get("properties").is_none() {
                return;
            }
        }
        // All types of an interface share one schema, in which most fields are optional.
        if type_.field_map().is_some() {
            return;
        }
        self.fields(type_, path, map, None);
    }

    /// Compares an alternative of an interface's schema with the type to which it belongs.
    fn branch(&mut self, type_: &'a Type, path: &str, branch: &'a Value, whole: &Map) {
        let Some(map) = branch.as_map().filter(|map| map.get("$schemaRef").is_none()) else { return };
        let (path, branch, map) = match resolve_ref(self.cx, path, map) {
            Some((path, target)) => match target.as_map() {
                Some(map) => (path, target, map),
                None => return,
            },
            None => (path.to_owned(), branch, map),
        };
        let Some((field, types)) = type_.field_map() else { return };
        let values = map.get("properties").and_then(|fields| fields.get(field)?.get("enum")?.as_list());
        for value in values.unwrap_or_default() {
            let concrete = value.as_str().and_then(|value| self.cx.types.get(types.get(value)?));
            if let Some(concrete) = concrete
                && self.seen.insert((&concrete.name, std::ptr::from_ref(branch).addr()))
            {
                self.fields(concrete, &path, map, Some(whole));
            }
        }
    }

    /// Compares the fields of a type with those of a schema, which may be an alternative of a `whole`.
    fn fields(&mut self, type_: &'a Type, path: &str, map: &'a Map, whole: Option<&Map>) {
        let Some(properties) = map.get("properties").and_then(Value::as_map) else { return };
        let closed = matches!(map.get("additionalProperties"), Some(Value::Bool(false)));
        for field in &type_.fields {
            if field.synthetic.is_some()
                || field.datafile_schema.is_some()
                || BUILT_IN_FIELDS.contains(&&*field.name)
            {
                continue;
            }
            let Some(property) = properties.get(&field.name) else {
                if closed {
                    self.report_absent(type_, field, path);
                }
                continue;
            };
            let demanded =
                is_required(map, &field.name) || whole.is_some_and(|whole| is_required(whole, &field.name));
            if field.is_required && !demanded {
                self.report_optional(type_, field, path);
            }
            if SCALARS.contains(&&*field.type_name) {
                continue;
            }
            if let Some(inner) = self.cx.types.of_field(field) {
                let items = property.get("items").filter(|_| field.is_list);
                self.type_(inner, path, items.unwrap_or(property));
            }
        }
    }

    fn report_absent(&mut self, type_: &Type, field: &Field, path: &str) {
        let message = format!("`{}.{}` is always empty: `{path}` has no such field", type_.name, field.name);
        self.report(type_, field, Diagnostic::new(code::FIELD_WITHOUT_SCHEMA, message), "name");
    }

    fn report_optional(&mut self, type_: &Type, field: &Field, path: &str) {
        let message = format!("`{}.{}` is required, but optional in `{path}`", type_.name, field.name);
        let finding = Diagnostic::new(code::REQUIRED_BUT_OPTIONAL, message);
        let finding =
            finding.hint(format!("add `{}` to `required` of the schema, or drop `isRequired`", field.name));
        self.report(type_, field, finding.label("a file without it makes queries fail"), "isRequired");
    }

    fn report(&mut self, type_: &Type, field: &Field, finding: Diagnostic, key: &str) {
        let finding =
            finding.in_file(self.cx.layout.graphql.clone()).at_pointer(self.pointer(type_, field, key));
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// The JSON pointer of an attribute of a field, in its last definition if the field is defined twice.
    fn pointer(&self, type_: &Type, field: &Field, key: &str) -> String {
        let graphql = &self.cx.bundle.graphql().value;
        let confs = types::confs(graphql).unwrap_or_default();
        let named = |value: &Value, name: &str| value.get("name").and_then(Value::as_str) == Some(name);
        let at = confs.iter().rposition(|conf| named(conf, &type_.name)).unwrap_or_default();
        let fields = confs.get(at).and_then(|conf| conf.get("fields")?.as_list()).unwrap_or_default();
        let index = fields.iter().rposition(|candidate| named(candidate, &field.name)).unwrap_or_default();
        format!("{}/{at}/fields/{index}/{key}", list_pointer(graphql))
    }
}

/// Whether a schema requires a field, directly or in all of its alternatives.
fn is_required(map: &Map, field: &str) -> bool {
    let names = map.get("required").and_then(Value::as_list).unwrap_or_default();
    if names.iter().any(|name| name.as_str() == Some(field)) {
        return true;
    }
    let demands = |branch: &Value| branch.as_map().is_some_and(|map| is_required(map, field));
    let branches = |key: &str| map.get(key).and_then(Value::as_list).unwrap_or_default();
    branches("allOf").iter().any(demands)
        || ["oneOf", "anyOf"].iter().any(|key| !branches(key).is_empty() && branches(key).iter().all(demands))
}
