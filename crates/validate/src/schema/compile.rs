//! A schema of the bundle in the form that is compiled.
//!
//! Left out is what would keep the rest from being compiled and is reported elsewhere: keywords of the wrong form,
//! references to nothing, patterns that are none. The siblings of a `$ref` are left out too: draft 6 ignores them.

use std::collections::BTreeSet;

use qontract_bundle::{Bundle, Map, Value};
use serde_json::{Map as PlainMap, Value as Plain, json};

use super::form;
use crate::keywords::{self, Holds};
use crate::pattern;
use crate::tree::{self, plain};

/// What every schema's path is put after; never looked up anywhere.
pub const BASE: &str = "bundle://schemas";

/// What `pattern` is called when it is compiled: the library's own keyword knows other expressions than Python's.
pub const PATTERN: &str = "pythonPattern";

/// Where a `$ref` leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// To a place of a schema of the bundle: its path, and the JSON pointer.
    Place(String, &'a str),
    /// Out of the bundle, which is never followed.
    Outside,
    /// To a schema that is not there.
    NoFile(String),
    /// To a place that is not there.
    NoPlace(String, &'a str),
}

/// Resolves a `$ref` that stands in the schema at `path`.
pub fn target<'a>(bundle: &Bundle, path: &str, reference: &'a str) -> Target<'a> {
    if reference.contains("://") {
        return Target::Outside;
    }
    let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let file = join(path, file);
    let Some(document) = bundle.schema(&file) else { return Target::NoFile(file) };
    match document.value.pointer(pointer) {
        Some(_) if pointer.is_empty() || pointer.starts_with('/') => Target::Place(file, pointer),
        _ => Target::NoPlace(file, pointer),
    }
}

/// The path of `file` as seen from the schema at `path`.
fn join(path: &str, file: &str) -> String {
    if file.is_empty() {
        return path.to_owned();
    }
    let mut steps: Vec<&str> = if file.starts_with('/') {
        Vec::new()
    } else {
        path.rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .split('/')
            .filter(|step| !step.is_empty())
            .collect()
    };
    for step in file.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

/// Turns schemas into what is compiled.
pub struct Converter<'a> {
    /// Where references lead.
    pub bundle: &'a Bundle,
    /// The path of the schema at hand.
    pub path: &'a str,
    /// Patterns that are no regular expressions.
    pub bad_patterns: &'a BTreeSet<String>,
}

impl Converter<'_> {
    /// The schema at the top of a file.
    pub fn convert(&self, schema: &Value) -> Plain {
        let mut converted = self.schema(schema);
        if let Plain::Object(map) = &mut converted {
            map.remove("$schema");
            map.remove("$id");
        }
        converted
    }

    fn schema(&self, schema: &Value) -> Plain {
        let map = match schema {
            Value::Bool(value) => return Plain::Bool(*value),
            Value::Map(map) => map,
            _ => return json!({}),
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return match target(self.bundle, self.path, reference) {
                Target::Place(file, pointer) => json!({ "$ref": uri(&file, pointer) }),
                Target::Outside | Target::NoFile(_) | Target::NoPlace(..) => json!({}),
            };
        }
        let mut converted = PlainMap::new();
        for (key, value) in map.iter() {
            self.keyword(key.as_str(), value, &mut converted);
        }
        Plain::Object(converted)
    }

    fn keyword(&self, key: &str, value: &Value, converted: &mut PlainMap<String, Plain>) {
        let Some(holds) = keywords::holds(key).filter(|_| form::fault(key, value).is_none()) else { return };
        let plain_value = match (key, holds, value) {
            ("pattern", _, Value::Str(text)) => {
                if !self.bad_patterns.contains(&**text) {
                    converted.insert(PATTERN.to_owned(), Plain::String(text.to_string()));
                }
                return;
            }
            ("enum", _, Value::List(values)) => {
                let mut seen = BTreeSet::new();
                let different: Vec<Plain> =
                    values.iter().filter(|value| seen.insert(tree::text(value))).map(plain).collect();
                if different.is_empty() {
                    converted.insert("not".to_owned(), json!({}));
                    return;
                }
                Plain::Array(different)
            }
            ("patternProperties", _, Value::Map(schemas)) => {
                let good = schemas.iter().filter(|(name, _)| !self.bad_patterns.contains(name.as_str()));
                let by_name =
                    good.map(|(name, schema)| (pattern::from_python(name.as_str()), self.schema(schema)));
                Plain::Object(by_name.collect())
            }
            ("description" | "title" | "examples" | "default" | "$schemaRef" | "$id", _, _) => return,
            (_, Holds::List | Holds::SchemaOrList, Value::List(items)) => {
                Plain::Array(items.iter().map(|item| self.schema(item)).collect())
            }
            (_, Holds::Schema | Holds::SchemaOrList, schema) => self.schema(schema),
            (_, Holds::Map, Value::Map(schemas)) => self.by_name(schemas),
            (_, Holds::Dependencies, Value::Map(entries)) => {
                let entries = entries.iter().map(|(name, entry)| {
                    let entry = if entry.as_list().is_some() { plain(entry) } else { self.schema(entry) };
                    (name.as_str().to_owned(), entry)
                });
                Plain::Object(entries.collect())
            }
            (_, _, value) => plain(value),
        };
        converted.insert(key.to_owned(), plain_value);
    }

    fn by_name(&self, schemas: &Map) -> Plain {
        let by_name = schemas.iter().map(|(name, schema)| (name.as_str().to_owned(), self.schema(schema)));
        Plain::Object(by_name.collect())
    }
}

/// The made-up address of a place in a schema.
pub fn uri(path: &str, pointer: &str) -> String {
    let mut uri = format!("{BASE}{}", encode(path));
    if !pointer.is_empty() {
        uri.push('#');
        uri.push_str(&encode(pointer));
    }
    uri
}

/// Percent-encodes what an address may not hold.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The path and the pointer of a made-up address.
pub fn place(uri: &str) -> Option<(String, String)> {
    let (path, pointer) = uri.strip_prefix(BASE)?.split_once('#')?;
    let pointer = decode(pointer);
    let pointer = match pointer.strip_suffix(PATTERN) {
        Some(parent) => format!("{parent}pattern"),
        None => pointer,
    };
    Some((decode(path), pointer))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        if let (b'%', Some(decoded)) = (byte, hex) {
            bytes.push(decoded);
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_seen_from_their_schema() {
        assert_eq!(join("/a/b-1.yml", "c-1.yml"), "/a/c-1.yml");
        assert_eq!(join("/a/b-1.yml", "../c-1.yml"), "/c-1.yml");
        assert_eq!(join("/a/b-1.yml", "/c/d-1.yml"), "/c/d-1.yml");
        assert_eq!(join("/a/b-1.yml", ""), "/a/b-1.yml");
    }

    #[test]
    fn an_address_leads_back_to_its_place() {
        let address = uri("/a b/ü-1.yml", "/properties/$schema/x%");
        assert_eq!(place(&address), Some(("/a b/ü-1.yml".to_owned(), "/properties/$schema/x%".to_owned())));
    }
}
