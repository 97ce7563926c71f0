//! Exports the schemas of a bundle for editors: plain JSON Schema for the files as people write them.
//!
//! Fields that bundling adds and the data repo's own keywords, such as `$schemaRef`, are removed. References
//! become relative paths, so that the directory works in any location. Patterns are unchanged, because
//! editors support them.

use std::collections::BTreeMap;

use qontract_bundle::types::Types;
use qontract_bundle::{Bundle, Layout, Value};
use serde_json::{Map, Value as Plain, json};

use crate::keywords::{self, KeywordKind};
use crate::schema::reference::{self, DRAFT, RefTarget, SchemaLocation};
use crate::tree::plain;

/// The exported schemas of a bundle: path within the directory ↦ JSON text.
pub fn schemas(bundle: &Bundle) -> BTreeMap<String, String> {
    let types = Types::read(&bundle.graphql().value);
    let mut files = BTreeMap::new();
    for schema in bundle.schemas() {
        let one = SchemaExporter { bundle, path: &schema.path };
        let mut exported = one.schema(&schema.document.value);
        if let Plain::Object(map) = &mut exported {
            map.insert("$schema".to_owned(), json!(format!("{DRAFT}#")));
            if let (None, Some(type_)) = (map.get("title"), types.by_schema(&schema.path)) {
                map.insert("title".to_owned(), json!(&*type_.name));
            }
        }
        files.insert(file_of(&schema.path), pretty(&exported));
    }
    files
}

/// Editor settings that map each exported schema to its datafiles.
///
/// A datafile names its schema by a path that no editor can resolve, so the settings list the files of each
/// schema.
pub fn settings(bundle: &Bundle, folder: &str, layout: &Layout) -> String {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for datafile in bundle.datafiles() {
        let Some(schema) = datafile.document.schema().filter(|path| bundle.schema(path).is_some()) else {
            continue;
        };
        let schema = format!("{}/{}", folder.trim_end_matches('/'), file_of(schema));
        files.entry(schema).or_default().push(layout.datafile(&datafile.path));
    }
    pretty(&json!({ "yaml.schemas": files, "yaml.yamlVersion": "1.1" }))
}

/// The file name of an exported schema: always `.json`, without the leading slash.
pub fn file_of(path: &str) -> String {
    let path = path.trim_start_matches('/');
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    format!("{stem}.json")
}

fn pretty(value: &Plain) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain JSON");
    text.push('\n');
    text
}

struct SchemaExporter<'a> {
    bundle: &'a Bundle,
    path: &'a str,
}

impl SchemaExporter<'_> {
    fn schema(&self, schema: &Value) -> Plain {
        let Value::Map(map) = schema else { return plain(schema) };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let mut exported = Map::new();
            exported.insert("$ref".to_owned(), json!(self.relative(reference)));
            // A description next to a reference is kept, because editors show it.
            if let Some(description) = map.get("description").and_then(Value::as_str) {
                exported.insert("description".to_owned(), json!(description));
            }
            return Plain::Object(exported);
        }
        let mut exported = Map::new();
        for (key, value) in map.iter() {
            let Some(holds) = keywords::keyword_kind(key.as_str()) else { continue };
            let value = match (key.as_str(), holds, value) {
                ("$schema" | "$id" | "$schemaRef", _, _) => continue,
                (_, KeywordKind::Map, Value::Map(schemas)) => {
                    let own = schemas.iter().filter(|(name, _)| !is_added(name.as_str()));
                    Plain::Object(
                        own.map(|(name, schema)| (name.as_str().to_owned(), self.schema(schema))).collect(),
                    )
                }
                (_, KeywordKind::List | KeywordKind::SchemaOrList, Value::List(items)) => {
                    Plain::Array(items.iter().map(|item| self.schema(item)).collect())
                }
                (_, KeywordKind::Schema | KeywordKind::SchemaOrList, schema) => self.schema(schema),
                (_, KeywordKind::Dependencies, Value::Map(entries)) => {
                    let entries =
                        entries.iter().map(|(name, entry)| (name.as_str().to_owned(), self.schema(entry)));
                    Plain::Object(entries.collect())
                }
                (_, _, value) => plain(value),
            };
            exported.insert(key.as_str().to_owned(), value);
        }
        Plain::Object(exported)
    }

    /// A reference, relative to the exported file.
    fn relative(&self, reference: &str) -> String {
        let RefTarget::Schema(SchemaLocation { file, pointer, .. }) =
            reference::resolve(self.bundle, self.path, reference)
        else {
            return reference.to_owned();
        };
        let pointer = encoded(&pointer);
        match file {
            DRAFT => format!("{DRAFT}#{pointer}"),
            _ if file == self.path => format!("#{pointer}"),
            _ => {
                let up = "../".repeat(self.path.trim_start_matches('/').matches('/').count());
                let fragment = if pointer.is_empty() { String::new() } else { format!("#{pointer}") };
                format!("{up}{}{fragment}", file_of(file))
            }
        }
    }
}

/// A JSON pointer, percent-encoded for use in a URI.
fn encoded(pointer: &str) -> String {
    let mut out = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Whether bundling adds the field to datafiles.
fn is_added(name: &str) -> bool {
    matches!(name, "$file_sha256sum" | "__identifier")
}
