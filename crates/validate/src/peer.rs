//! Writes the records of `qontract-validator`: those of the same rules, in the same order and with the same
//! wording.
//!
//! Only the messages of JSON Schema errors differ. Mistakes that `qontract-validator` does not find are not
//! in the records; `docs/compatibility.md` lists the differences.

use qontract_bundle::types::Types;
use qontract_bundle::{Bundle, Layout, Value};
use serde::Serialize;

use crate::explain::FailureExplainer;
use crate::links::LinkKind;
use crate::rules::files::{self, NamedSchema};
use crate::rules::graphql::{self, MisusedUnique};
use crate::rules::references::{self, BrokenReference};
use crate::rules::schemas::{self, Metaschema};
use crate::rules::{resources, unique};
use crate::schema::{Formats, SchemaChecker, metaschema};
use crate::{Context, FileLinks};

/// The name under which `qontract-validator` reports the file of GraphQL types, regardless of its path.
const GRAPHQL_FILE: &str = "graphql-schemas/schema.yml";

/// One record.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ValidatorRecord {
    /// The path in the bundle.
    pub filename: String,
    /// The kind of the check.
    pub kind: RecordKind,
    /// The result of the check.
    pub result: RecordResult,
}

/// Kinds of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RecordKind {
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
pub struct RecordResult {
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

impl ValidatorRecord {
    /// Whether the record reports an error.
    pub fn is_error(&self) -> bool {
        self.result.reason.is_some()
    }

    fn ok(kind: RecordKind, filename: &str, schema: Option<&str>) -> Self {
        let summary = match schema {
            Some(schema) => format!("OK: {filename} ({schema})"),
            None => format!("OK: {filename}"),
        };
        let schema_url = schema.map(str::to_owned);
        let result = RecordResult { error: None, reason: None, schema_url, status: "OK", summary };
        Self { filename: filename.to_owned(), kind, result }
    }

    fn error(
        kind: RecordKind,
        filename: &str,
        reason: &'static str,
        error: String,
        schema: Option<&str>,
    ) -> Self {
        let summary = match schema {
            Some(schema) => format!("ERROR: {filename} ({schema})"),
            None => format!("ERROR: {filename}"),
        };
        let schema_url = schema.map(str::to_owned);
        let result =
            RecordResult { error: Some(error), reason: Some(reason), schema_url, status: "ERROR", summary };
        Self { filename: filename.to_owned(), kind, result }
    }
}

/// The records as JSON, indented by two spaces, with a final newline.
pub fn to_json(records: &[ValidatorRecord]) -> String {
    let mut text = serde_json::to_string_pretty(records).expect("records are plain data");
    text.push('\n');
    text
}

/// Writes records as JSON one by one, so that they are never all in memory: a bundle has hundreds of
/// thousands of records, whose JSON is as large as the bundle.
#[derive(Debug, Default)]
pub struct JsonRecords {
    text: String,
    is_started: bool,
}

impl JsonRecords {
    /// Adds a record.
    pub fn add(&mut self, record: &ValidatorRecord) {
        self.text.push_str(if self.is_started { ",\n" } else { "[\n" });
        self.is_started = true;
        let record = serde_json::to_string_pretty(record).expect("records are plain data");
        for (index, line) in record.lines().enumerate() {
            self.text.push_str(if index == 0 { "  " } else { "\n  " });
            self.text.push_str(line);
        }
    }

    /// Takes the buffered text if it has reached the flush threshold; it consists of whole records.
    pub fn take_if_large(&mut self) -> Option<String> {
        (self.text.len() >= FLUSH_THRESHOLD).then(|| std::mem::take(&mut self.text))
    }

    /// The rest of the text.
    pub fn finish(mut self) -> String {
        self.text.push_str(if self.is_started { "\n]\n" } else { "[]\n" });
        self.text
    }
}

/// Number of bytes at which buffered text is returned.
const FLUSH_THRESHOLD: usize = 256 << 10;

/// All records of a bundle.
pub fn records(bundle: &Bundle) -> Vec<ValidatorRecord> {
    let mut records = Vec::new();
    visit_records(bundle, &mut |record| records.push(record));
    records
}

/// Calls `visit` with each record of a bundle, in order, as it is made.
pub fn visit_records(bundle: &Bundle, visit: &mut dyn FnMut(ValidatorRecord)) {
    let types = Types::read(&bundle.graphql().value);
    let checker = SchemaChecker::new(bundle, Formats::Ignored);
    let layout = Layout::default();
    let unread = std::collections::BTreeSet::new();
    let schema_index = crate::schema_index(bundle);
    let cache = crate::ValidationCache::default();
    let cx = Context {
        bundle,
        types: &types,
        schema_index: &schema_index,
        layout: &layout,
        checker: &checker,
        unread: &unread,
        cache: &cache,
    };
    for schema in bundle.schemas() {
        visit(schema_record(&cx, &schema.path, &schema.document.value));
    }
    for file in bundle.datafiles() {
        visit(file_record(&cx, &file.path, &file.document.value));
    }
    let links = cx.links();
    reference_records(&cx, &links, visit);
    uniqueness_records(&links).into_iter().for_each(&mut *visit);
    // The memory is freed here, because the code below does not need the links.
    drop(links);
    for resource in bundle.resources() {
        let document = resource.schema.as_ref().and_then(|_| resources::document(resource));
        visit(match document {
            Some(value) => file_record(&cx, &resource.path, &value),
            None => ValidatorRecord::ok(RecordKind::File, &resource.path, None),
        });
    }
    types_records(&cx).into_iter().for_each(visit);
}

/// Resources that name a schema but are not plain YAML. Most of them are templates. They are accepted with a
/// warning.
pub fn unchecked_resources(bundle: &Bundle) -> impl Iterator<Item = &str> {
    let named = bundle.resources().iter().filter(|resource| resource.schema.is_some());
    named.filter(|resource| resources::document(resource).is_none()).map(|resource| &*resource.path)
}

fn first_message(cx: &Context<'_>, root: &Value, failures: Vec<crate::SchemaFailure>) -> Option<String> {
    let subject = FailureExplainer::new(cx.bundle, cx.layout, "", root);
    subject.explain(failures).first().map(references::message_with_pointer)
}

fn schema_record(cx: &Context<'_>, path: &str, schema: &Value) -> ValidatorRecord {
    let error = |reason, text, schema: Option<&str>| {
        ValidatorRecord::error(RecordKind::Schema, path, reason, text, schema)
    };
    let named = schema.get("$schema").and_then(Value::as_str);
    let meta = schemas::metaschema(cx, schema);
    match meta {
        Metaschema::Missing => {
            return error("MISSING_SCHEMA_URL", format!("Missing schema URL in file {path}"), None);
        }
        Metaschema::Unknown(url) => {
            let text = format!("Meta schema {url} not found in the file {path}");
            return error("META_SCHEMA_NOT_FOUND", text, Some(url));
        }
        Metaschema::Draft | Metaschema::Schema(_) => {}
    }
    if let Some(fault) = metaschema::faults(schema).into_iter().next() {
        let text = format!("{} {}", fault.pointer, fault.message);
        return error("SCHEMA_ERROR", text, named);
    }
    if let Metaschema::Schema(meta) = meta
        && let Some(text) = cx.checker.check(meta, schema).and_then(|found| first_message(cx, schema, found))
    {
        return error("VALIDATION_ERROR", text, named);
    }
    ValidatorRecord::ok(RecordKind::Schema, path, named)
}

fn file_record(cx: &Context<'_>, path: &str, root: &Value) -> ValidatorRecord {
    let error = |reason, text, schema: Option<&str>| {
        ValidatorRecord::error(RecordKind::File, path, reason, text, schema)
    };
    match files::named_schema(cx, root) {
        NamedSchema::Missing | NamedSchema::NotAString(_) => {
            error("MISSING_SCHEMA_URL", format!("Missing schema URL in file {path}"), None)
        }
        NamedSchema::Address(url) => schema_not_found(path, url),
        NamedSchema::Unknown(url) => schema_not_found(path, &url),
        NamedSchema::Schema(url) => {
            let failures = cx.checker.check(&url, root).unwrap_or_default();
            match first_message(cx, root, failures) {
                Some(text) => error("VALIDATION_ERROR", text, Some(&url)),
                None => ValidatorRecord::ok(RecordKind::File, path, Some(&url)),
            }
        }
    }
}

fn schema_not_found(path: &str, url: &str) -> ValidatorRecord {
    let text = format!("Schema {url} not found in the file {path}");
    ValidatorRecord::error(RecordKind::File, path, "SCHEMA_NOT_FOUND", text, Some(url))
}

fn reference_records(cx: &Context<'_>, files: &[FileLinks<'_>], visit: &mut dyn FnMut(ValidatorRecord)) {
    for FileLinks { path, links } in files {
        for link in links {
            let schema = link.schema_path.unwrap_or_default();
            match &link.kind {
                LinkKind::Resource(resource) if cx.bundle.resource(resource).is_none() => {
                    let text = format!("Resource file {resource} not found in file {path}");
                    let reason = "RESOURCE_FILE_NOT_FOUND";
                    visit(ValidatorRecord::error(RecordKind::Reference, path, reason, text, Some(schema)));
                }
                LinkKind::Reference(reference) => {
                    let to = reference.to;
                    let shown = to.as_str().map_or_else(|| crate::tree::plain(to).to_string(), str::to_owned);
                    visit(match references::check_reference(cx, *reference, schema) {
                        None => {
                            let mut record = ValidatorRecord::ok(RecordKind::Reference, path, Some(schema));
                            record.result.summary = format!("OK: {path} ({shown}) ({schema})");
                            record
                        }
                        Some(broken) => {
                            let (reason, text) = match broken {
                                BrokenReference::NotFound => (
                                    "FILE_NOT_FOUND",
                                    format!("Reference to file {shown} in file {path} not found"),
                                ),
                                BrokenReference::OtherSchema(found, expected) => {
                                    let text =
                                        format!("incorrect schema: got `{found}`, expecting `{expected}`");
                                    ("INCORRECT_SCHEMA", text)
                                }
                                BrokenReference::SchemaMismatch(why) => (
                                    "SCHEMA_REF_VALIDATION_ERROR",
                                    why.into_iter().next().unwrap_or_default(),
                                ),
                            };
                            ValidatorRecord::error(RecordKind::Reference, path, reason, text, None)
                        }
                    });
                }
                LinkKind::Resource(_) | LinkKind::Unique { .. } | LinkKind::Item(_) => {}
            }
        }
    }
}

fn uniqueness_records(files: &[FileLinks<'_>]) -> Vec<ValidatorRecord> {
    let mut records = Vec::new();
    for group in unique::repeated_values(files) {
        let mut paths: Vec<&str> = group.places.iter().map(|(path, _)| *path).collect();
        paths.sort_unstable();
        let text = format!("The field '{}' is repeated: {}", group.field, paths.join(", "));
        records.push(ValidatorRecord::error(
            RecordKind::Unique,
            paths[0],
            "DUPLICATE_UNIQUE_FIELD",
            text,
            None,
        ));
    }
    for unique::DuplicateItems { path, item, places } in
        unique::duplicate_items(files, |item| item.seen_by_peer)
    {
        let duplicates: Vec<String> =
            places.iter().map(|(index, _)| format!("{}/{index}", item.list)).collect();
        let text = format!(
            "Context uniqueness error, file: {path}, fields: {}, duplicates: {}",
            item.fields.join(", "),
            duplicates.join(", ")
        );
        records.push(ValidatorRecord::error(
            RecordKind::Unique,
            path,
            "DUPLICATE_CONTEXT_UNIQUE_FIELD",
            text,
            None,
        ));
    }
    records
}

fn types_records(cx: &Context<'_>) -> Vec<ValidatorRecord> {
    let graphql = &cx.bundle.graphql().value;
    let mut records = Vec::new();
    if graphql.as_map().is_some() {
        records.push(file_record(cx, GRAPHQL_FILE, graphql));
    }
    for MisusedUnique { type_name, field, complex, .. } in graphql::misused_unique_fields(graphql, cx.types) {
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
        records.push(ValidatorRecord::error(RecordKind::Schema, GRAPHQL_FILE, reason, text, None));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::{JsonRecords, RecordKind, ValidatorRecord, to_json};

    #[test]
    fn records_written_one_by_one_equal_records_written_at_once() {
        let ok = ValidatorRecord::ok(RecordKind::File, "/a.yml", Some("/s.yml"));
        let error = ValidatorRecord::error(
            RecordKind::Reference,
            "/b.yml",
            "FILE_NOT_FOUND",
            "a\nb {\"x\"}".to_owned(),
            None,
        );
        for records in
            [vec![], vec![ok], vec![error, ValidatorRecord::ok(RecordKind::Schema, "/c.yml", None)]]
        {
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
