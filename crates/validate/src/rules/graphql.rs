//! Rules for the definition of the GraphQL types: its schema, the names of types and interfaces, and unique
//! fields.

use std::collections::BTreeSet;

use qontract_bundle::types::{self, Types};
use qontract_bundle::{Map, Value};
use qontract_diagnostics::{Code, Diagnostic, code, suggest};

use super::files;
use crate::Context;

/// GraphQL types that need no definition.
pub const SCALARS: [&str; 5] = ["string", "int", "float", "boolean", "json"];

/// A field whose `isUnique` has no effect.
pub struct MisusedUnique<'a> {
    /// JSON pointer of `isUnique`.
    pub pointer: String,
    /// The type that has the field.
    pub type_name: &'a str,
    /// The field.
    pub field: &'a str,
    /// The field's type, if it causes the problem. `None` means that the type that has the field has no
    /// datafiles.
    pub complex: Option<&'a str>,
}

/// All fields whose `isUnique` has no effect.
pub fn misused_unique_fields<'a>(graphql: &'a Value, types: &Types) -> Vec<MisusedUnique<'a>> {
    let top_level = top_level(types);
    let mut found = Vec::new();
    each_field(graphql, &mut |type_, field, pointer| {
        if field.get("isUnique").is_none() {
            return;
        }
        let (Some(type_name), Some(name)) = (text(type_, "name"), text(field, "name")) else { return };
        let own_type = text(field, "type").unwrap_or_default();
        let pointer = format!("{pointer}/isUnique");
        if !top_level.contains(type_name) {
            found.push(MisusedUnique { pointer, type_name, field: name, complex: None });
        } else if !SCALARS.contains(&own_type) {
            found.push(MisusedUnique { pointer, type_name, field: name, complex: Some(own_type) });
        }
    });
    found
}

/// The names of types that have datafiles of their own, directly or through their interface.
fn top_level(types: &Types) -> BTreeSet<&str> {
    let mut names: BTreeSet<&str> =
        types.iter().filter(|type_| type_.datafile.is_some()).map(|type_| &*type_.name).collect();
    let query = types.get("Query").into_iter().flat_map(|query| &query.fields);
    names.extend(query.filter(|field| field.datafile_schema.is_some()).map(|field| &*field.type_name));
    let through: Vec<&str> = types
        .iter()
        .filter(|type_| type_.interface.as_deref().is_some_and(|interface| names.contains(interface)))
        .map(|type_| &*type_.name)
        .collect();
    names.extend(through);
    names
}

fn text<'a>(map: &'a Map, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str()
}

/// The JSON pointer of the list of types.
pub fn list_pointer(graphql: &Value) -> &'static str {
    if graphql.as_map().is_some() { "/confs" } else { "" }
}

fn each_type<'a>(graphql: &'a Value, visit: &mut impl FnMut(&'a Map, &str)) {
    let list = list_pointer(graphql);
    for (index, type_) in types::confs(graphql).unwrap_or_default().iter().enumerate() {
        if let Some(type_) = type_.as_map() {
            visit(type_, &format!("{list}/{index}"));
        }
    }
}

/// Visits the fields of all types, with the JSON pointer of each.
pub fn each_field<'a>(graphql: &'a Value, visit: &mut impl FnMut(&'a Map, &'a Map, &str)) {
    each_type(graphql, &mut |type_, pointer| {
        let fields = type_.get("fields").and_then(Value::as_list).unwrap_or_default();
        for (index, field) in fields.iter().enumerate() {
            if let Some(field) = field.as_map() {
                visit(type_, field, &format!("{pointer}/fields/{index}"));
            }
        }
    });
}

/// Checks the definition of the types.
pub fn check(cx: &Context<'_>) -> Vec<Diagnostic> {
    let graphql = &cx.bundle.graphql().value;
    let mut checks = TypeChecker { cx, file: cx.layout.graphql.clone(), findings: Vec::new() };
    // If the file could not be read, bundling has reported that error.
    if graphql.as_map().is_some() && !cx.unread.contains(&checks.file) {
        checks.findings = files::check_document(cx, &mut cx.checker.session(), &checks.file, graphql);
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    each_type(graphql, &mut |type_, pointer| {
        checks.type_(type_, pointer);
        if let Some(name) = text(type_, "name").filter(|name| !seen.insert(name)) {
            let message = format!("the type `{name}` is defined twice; the last definition is used");
            checks.report(code::GRAPHQL_TWICE, &format!("{pointer}/name"), message);
        }
    });
    each_field(graphql, &mut |_, field, pointer| checks.field(field, pointer));
    checks.unique(graphql);
    checks.findings
}

struct TypeChecker<'a> {
    cx: &'a Context<'a>,
    file: String,
    findings: Vec<Diagnostic>,
}

impl TypeChecker<'_> {
    fn report(&mut self, code: Code, pointer: &str, message: String) -> &mut Diagnostic {
        self.findings.push(Diagnostic::new(code, message).in_file(&self.file).at_pointer(pointer));
        self.findings.last_mut().expect("it was just pushed")
    }

    fn suggest_type(&mut self, written: &str) {
        let names = self.cx.types.iter().map(|type_| &*type_.name).chain(SCALARS);
        if let (Some(meant), Some(finding)) = (suggest::nearest(written, names), self.findings.last_mut()) {
            finding.hint = Some(format!("did you mean `{meant}`?"));
        }
    }

    fn type_(&mut self, type_: &Map, pointer: &str) {
        if let Some(name) = text(type_, "interface") {
            let at = format!("{pointer}/interface");
            match self.cx.types.get(name) {
                None => {
                    self.report(code::GRAPHQL_INTERFACE, &at, format!("interface `{name}` not found"));
                    self.suggest_type(name);
                }
                Some(interface) if !interface.is_interface => {
                    let finding =
                        self.report(code::GRAPHQL_INTERFACE, &at, format!("`{name}` is not an interface"));
                    finding.hint = Some(format!("add `isInterface: true` to `{name}`"));
                }
                Some(_) => {}
            }
        }
        self.resolve(type_, pointer);
        self.schema_of(type_, "datafile", pointer);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let fields = type_.get("fields").and_then(Value::as_list).unwrap_or_default();
        for (index, field) in fields.iter().enumerate() {
            let Some(name) = field.get("name").and_then(Value::as_str) else { continue };
            if !seen.insert(name) {
                let message = format!("the field `{name}` is defined twice; the last definition is used");
                self.report(code::GRAPHQL_TWICE, &format!("{pointer}/fields/{index}/name"), message);
            }
        }
    }

    fn resolve(&mut self, type_: &Map, pointer: &str) {
        let Some(resolve) = type_.get("interfaceResolve").and_then(Value::as_map) else { return };
        let at = format!("{pointer}/interfaceResolve");
        match text(resolve, "strategy") {
            Some("schema") => {}
            Some("fieldMap") => {
                let types = resolve.get("fieldMap").and_then(Value::as_map).into_iter().flat_map(Map::iter);
                for (value, name) in types {
                    let Some(name) = name.as_str().filter(|name| self.cx.types.get(name).is_none()) else {
                        continue;
                    };
                    let at = crate::keywords::child_pointer(&format!("{at}/fieldMap"), value.as_str());
                    self.report(code::GRAPHQL_TYPE, &at, format!("type `{name}` not found"));
                    self.suggest_type(name);
                }
            }
            other => {
                let message = format!(
                    "`{}` is not a strategy to resolve the type of an object",
                    other.unwrap_or_default()
                );
                let finding = self.report(code::GRAPHQL_INTERFACE, &format!("{at}/strategy"), message);
                finding.hint = Some("write `fieldMap` or `schema`".to_owned());
            }
        }
    }

    fn schema_of(&mut self, map: &Map, key: &str, pointer: &str) {
        let Some(path) = text(map, key).filter(|path| self.cx.bundle.schema(path).is_none()) else { return };
        if self.cx.unread.contains(&self.cx.layout.schema(path)) {
            return;
        }
        let message = format!("schema `{path}` not found");
        let paths = self.cx.bundle.schemas().iter().map(|schema| &*schema.path);
        let meant = suggest::nearest_path(path, paths).map(|meant| format!("did you mean `{meant}`?"));
        self.report(code::GRAPHQL_SCHEMA, &format!("{pointer}/{key}"), message).hint = meant;
    }

    fn field(&mut self, field: &Map, pointer: &str) {
        if let Some(name) = text(field, "type")
            && !SCALARS.contains(&name)
            && self.cx.types.get(name).is_none()
        {
            self.report(code::GRAPHQL_TYPE, &format!("{pointer}/type"), format!("type `{name}` not found"));
            self.suggest_type(name);
        }
        self.schema_of(field, "datafileSchema", pointer);
    }

    fn unique(&mut self, graphql: &Value) {
        for MisusedUnique { pointer, type_name, field, complex } in
            misused_unique_fields(graphql, self.cx.types)
        {
            let (code, why, hint) = match complex {
                Some(own_type) => (
                    code::UNIQUE_COMPLEX,
                    format!("`{own_type}` is not a simple type"),
                    "mark a string or number field".to_owned(),
                ),
                None => (
                    code::UNIQUE_BELOW,
                    format!("`{type_name}` has no datafiles"),
                    format!("write `isContextUnique`, or add `datafile` to `{type_name}` if it has files"),
                ),
            };
            let message = format!("`{type_name}.{field}` cannot be unique: {why}");
            self.report(code, &pointer, message).hint = Some(hint);
        }
    }
}
