//! Writes the records of the established validator: the same rules, its order, its wording.
//!
//! Only the text of a JSON-schema error is our own. Mistakes that the established validator does not find are
//! not in its records either; `docs/compatibility.md` lists the differences.

use qontract_bundle::types::Types;
use qontract_bundle::{Bundle, Layout, Value};
use serde::Serialize;

use crate::explain::Subject;
use crate::links::What;
use crate::rules::files::{self, Named};
use crate::rules::graphql::{self, Misused};
use crate::rules::references::{self, Broken};
use crate::rules::schemas::{self, Meta};
use crate::rules::{resources, unique};
use crate::schema::{Checker, Formats, form};
use crate::{Context, FileLinks};

/// The name by which the established validator reports the file of GraphQL types, whatever its path.
const GRAPHQL_FILE: &str = "graphql-schemas/schema.yml";

/// One record.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Record {
    /// The path in the bundle.
    pub filename: String,
    /// The kind of the check.
    pub kind: Kind,
    /// The result of the check.
    pub result: Outcome,
}

/// Kinds of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// A file against its schema.
    #[serde(rename = "FILE")]
    File,
    /// A reference.
    #[serde(rename = "REF")]
    Reference,
    /// A schema.
    #[serde(rename = "SCHEMA")]
    Schema,
    /// Values that must be unique.
    #[serde(rename = "UNIQUE")]
    Unique,
}

/// The result of a check. Fields are in the order in which they are printed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The full error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_url: Option<String>,
    /// `OK` or `ERROR`.
    pub status: &'static str,
    /// A summary of one line.
    pub summary: String,
}

impl Record {
    /// Whether the record reports an error.
    pub fn is_error(&self) -> bool {
        self.result.reason.is_some()
    }

    fn ok(kind: Kind, filename: &str, schema: Option<&str>) -> Self {
        let summary = match schema {
            Some(schema) => format!("OK: {filename} ({schema})"),
            None => format!("OK: {filename}"),
        };
        let schema_url = schema.map(str::to_owned);
        let result = Outcome { error: None, reason: None, schema_url, status: "OK", summary };
        Self { filename: filename.to_owned(), kind, result }
    }

    fn error(kind: Kind, filename: &str, reason: &'static str, error: String, schema: Option<&str>) -> Self {
        let summary = match schema {
            Some(schema) => format!("ERROR: {filename} ({schema})"),
            None => format!("ERROR: {filename}"),
        };
        let schema_url = schema.map(str::to_owned);
        let result =
            Outcome { error: Some(error), reason: Some(reason), schema_url, status: "ERROR", summary };
        Self { filename: filename.to_owned(), kind, result }
    }
}

/// The records as JSON, indented by two spaces, with a final newline.
pub fn to_json(records: &[Record]) -> String {
    let mut text = serde_json::to_string_pretty(records).expect("records are plain data");
    text.push('\n');
    text
}

/// Writes records as JSON one by one, so that they need not be in memory together: a bundle has hundreds of
/// thousands of them, and their text is as large as the bundle.
#[derive(Debug, Default)]
pub struct JsonRecords {
    text: String,
    is_begun: bool,
}

impl JsonRecords {
    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        self.text.push_str(if self.is_begun { ",\n" } else { "[\n" });
        self.is_begun = true;
        let record = serde_json::to_string_pretty(record).expect("records are plain data");
        for (index, line) in record.lines().enumerate() {
            self.text.push_str(if index == 0 { "  " } else { "\n  " });
            self.text.push_str(line);
        }
    }

    /// Takes the buffered text if it has reached the flush threshold; it consists of whole records.
    pub fn take_if_large(&mut self) -> Option<String> {
        (self.text.len() >= MAX_BUFFER).then(|| std::mem::take(&mut self.text))
    }

    /// The rest of the text.
    pub fn finish(mut self) -> String {
        self.text.push_str(if self.is_begun { "\n]\n" } else { "[]\n" });
        self.text
    }
}

/// Buffered text is handed out from this size on.
const MAX_BUFFER: usize = 256 << 10;

/// All records of a bundle.
pub fn records(bundle: &Bundle) -> Vec<Record> {
    let mut records = Vec::new();
    visit_records(bundle, &mut |record| records.push(record));
    records
}

/// Calls `visit` with each record of a bundle, in order, as it is made.
pub fn visit_records(bundle: &Bundle, visit: &mut dyn FnMut(Record)) {
    let types = Types::read(&bundle.graphql().value);
    let checker = Checker::new(bundle, Formats::Ignored);
    let layout = Layout::default();
    let unread = std::collections::BTreeSet::new();
    let guide = crate::guide(bundle);
    let cache = crate::Known::default();
    let cx = Context {
        bundle,
        types: &types,
        guide: &guide,
        layout: &layout,
        checker: &checker,
        unread: &unread,
        known: &cache,
    };
    for schema in bundle.schemas() {
        visit(one_schema(&cx, &schema.path, &schema.document.value));
    }
    for file in bundle.datafiles() {
        visit(one_file(&cx, &file.path, &file.document.value));
    }
    let links = cx.links();
    references(&cx, &links, visit);
    repeated(&links).into_iter().for_each(&mut *visit);
    // Free the memory: nothing below needs the links.
    drop(links);
    for resource in bundle.resources() {
        let document = resource.schema.as_ref().and_then(|_| resources::document(resource));
        visit(match document {
            Some(value) => one_file(&cx, &resource.path, &value),
            None => Record::ok(Kind::File, &resource.path, None),
        });
    }
    types_records(&cx).into_iter().for_each(visit);
}

/// Resources that name a schema but are not plain YAML, mostly templates: accepted, and worth a warning.
pub fn unchecked(bundle: &Bundle) -> impl Iterator<Item = &str> {
    let named = bundle.resources().iter().filter(|resource| resource.schema.is_some());
    named.filter(|resource| resources::document(resource).is_none()).map(|resource| &*resource.path)
}

fn first_message(cx: &Context<'_>, root: &Value, failures: Vec<crate::Failure>) -> Option<String> {
    let subject = Subject::new(cx.bundle, cx.layout, "", root);
    subject.explain(failures).first().map(references::in_words)
}

fn one_schema(cx: &Context<'_>, path: &str, schema: &Value) -> Record {
    let error = |reason, text, schema: Option<&str>| Record::error(Kind::Schema, path, reason, text, schema);
    let named = schema.get("$schema").and_then(Value::as_str);
    let meta = schemas::meta(cx, schema);
    match meta {
        Meta::Missing => {
            return error("MISSING_SCHEMA_URL", format!("Missing schema URL in file {path}"), None);
        }
        Meta::Unknown(url) => {
            let text = format!("Meta schema {url} not found in the file {path}");
            return error("META_SCHEMA_NOT_FOUND", text, Some(url));
        }
        Meta::Draft | Meta::Schema(_) => {}
    }
    if let Some(fault) = form::faults(schema).into_iter().next() {
        let text = format!("{} {}", fault.pointer, fault.what);
        return error("SCHEMA_ERROR", text, named);
    }
    if let Meta::Schema(meta) = meta
        && let Some(text) = cx.checker.check(meta, schema).and_then(|found| first_message(cx, schema, found))
    {
        return error("VALIDATION_ERROR", text, named);
    }
    Record::ok(Kind::Schema, path, named)
}

fn one_file(cx: &Context<'_>, path: &str, root: &Value) -> Record {
    let error = |reason, text, schema: Option<&str>| Record::error(Kind::File, path, reason, text, schema);
    match files::named(cx, root) {
        Named::Missing | Named::NotText(_) => {
            error("MISSING_SCHEMA_URL", format!("Missing schema URL in file {path}"), None)
        }
        Named::Address(url) => not_found(path, url),
        Named::Unknown(url) => not_found(path, &url),
        Named::Schema(url) => {
            let failures = cx.checker.check(&url, root).unwrap_or_default();
            match first_message(cx, root, failures) {
                Some(text) => error("VALIDATION_ERROR", text, Some(&url)),
                None => Record::ok(Kind::File, path, Some(&url)),
            }
        }
    }
}

fn not_found(path: &str, url: &str) -> Record {
    let text = format!("Schema {url} not found in the file {path}");
    Record::error(Kind::File, path, "SCHEMA_NOT_FOUND", text, Some(url))
}

fn references(cx: &Context<'_>, files: &[FileLinks<'_>], visit: &mut dyn FnMut(Record)) {
    for FileLinks { path, links } in files {
        for link in links {
            let schema = link.schema_path.unwrap_or_default();
            match &link.what {
                What::Resource(resource) if cx.bundle.resource(resource).is_none() => {
                    let text = format!("Resource file {resource} not found in file {path}");
                    let reason = "RESOURCE_FILE_NOT_FOUND";
                    visit(Record::error(Kind::Reference, path, reason, text, Some(schema)));
                }
                What::Reference(reference) => {
                    let to = reference.to;
                    let shown = to.as_str().map_or_else(|| crate::tree::plain(to).to_string(), str::to_owned);
                    visit(match references::broken(cx, *reference, schema) {
                        None => {
                            let mut record = Record::ok(Kind::Reference, path, Some(schema));
                            record.result.summary = format!("OK: {path} ({shown}) ({schema})");
                            record
                        }
                        Some(broken) => {
                            let (reason, text) = match broken {
                                Broken::NotFound => (
                                    "FILE_NOT_FOUND",
                                    format!("Reference to file {shown} in file {path} not found"),
                                ),
                                Broken::OtherSchema(found, expected) => {
                                    let text =
                                        format!("incorrect schema: got `{found}`, expecting `{expected}`");
                                    ("INCORRECT_SCHEMA", text)
                                }
                                Broken::Unfit(why) => (
                                    "SCHEMA_REF_VALIDATION_ERROR",
                                    why.into_iter().next().unwrap_or_default(),
                                ),
                            };
                            Record::error(Kind::Reference, path, reason, text, None)
                        }
                    });
                }
                What::Resource(_) | What::Unique { .. } | What::Item(_) => {}
            }
        }
    }
}

fn repeated(files: &[FileLinks<'_>]) -> Vec<Record> {
    let mut records = Vec::new();
    for group in unique::repeated(files) {
        let mut paths: Vec<&str> = group.places.iter().map(|(path, _)| *path).collect();
        paths.sort_unstable();
        let text = format!("The field '{}' is repeated: {}", group.field, paths.join(", "));
        records.push(Record::error(Kind::Unique, paths[0], "DUPLICATE_UNIQUE_FIELD", text, None));
    }
    for unique::Twins { path, item, places } in unique::twins(files, |item| item.seen_by_peer) {
        let duplicates: Vec<String> =
            places.iter().map(|(index, _)| format!("{}/{index}", item.list)).collect();
        let text = format!(
            "Context uniqueness error, file: {path}, fields: {}, duplicates: {}",
            item.fields.join(", "),
            duplicates.join(", ")
        );
        records.push(Record::error(Kind::Unique, path, "DUPLICATE_CONTEXT_UNIQUE_FIELD", text, None));
    }
    records
}

fn types_records(cx: &Context<'_>) -> Vec<Record> {
    let graphql = &cx.bundle.graphql().value;
    let mut records = Vec::new();
    if graphql.as_map().is_some() {
        records.push(one_file(cx, GRAPHQL_FILE, graphql));
    }
    for Misused { type_name, field, complex, .. } in graphql::misused(graphql, cx.types) {
        let (reason, text) = match complex {
            Some(own_type) => (
                "IS_UNIQUE_ON_COMPLEX_FIELD",
                format!("isUnique set on {type_name}.{field}, type {own_type} is not a simple type"),
            ),
            None => (
                "IS_UNIQUE_ON_NON_TOP_LEVEL_TYPE",
                format!(
                    "isUnique set on {type_name}.{field}, which is not a top-level type, add datafile to {type_name} \
                     if there is a datafile mapping to it."
                ),
            ),
        };
        records.push(Record::error(Kind::Schema, GRAPHQL_FILE, reason, text, None));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::{JsonRecords, Kind, Record, to_json};

    #[test]
    fn records_one_by_one_are_the_text_of_all() {
        let ok = Record::ok(Kind::File, "/a.yml", Some("/s.yml"));
        let error =
            Record::error(Kind::Reference, "/b.yml", "FILE_NOT_FOUND", "a\nb {\"x\"}".to_owned(), None);
        for records in [vec![], vec![ok], vec![error, Record::ok(Kind::Schema, "/c.yml", None)]] {
            let mut json = JsonRecords::default();
            let mut text = String::new();
            for record in &records {
                json.add(record);
                text.extend(json.take_if_large());
            }
            text.push_str(&json.finish());
            assert_eq!(text, to_json(&records));
        }
    }
}
