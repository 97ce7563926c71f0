//! The datafiles of the data repo.

use std::collections::{BTreeMap, BTreeSet};

use qontract_diagnostics::Diagnostic;
use qontract_yaml::{Node, Value as Yaml};
use rayon::prelude::*;

use super::Patches;
use super::convert::Converter;
use super::facts::{self, Facts};
use super::schemas::{Schema, Schemas};
use crate::digest::Sha256;
use crate::model::Backref;
use crate::repo::{File, Listing};
use crate::types::Types;
use crate::value::{Map, Value};
use crate::walk::{Guide, Tree as _};

/// What all datafiles say.
#[derive(Default)]
pub struct Data {
    /// Documents by path, sorted.
    pub documents: Vec<(String, Value)>,
    /// Where resources are named, by resource.
    pub backrefs: BTreeMap<String, Vec<Backref>>,
    /// Datafiles that stand in lists.
    pub listed: BTreeSet<String>,
    /// Schemas of list items.
    pub patches: Patches,
}

struct One {
    path: String,
    document: Option<(Value, Option<String>, Facts)>,
    findings: Vec<Diagnostic>,
}

/// Reads, parses, walks and converts all datafiles.
pub fn read(listing: Listing, schemas: &Schemas, types: &Types, findings: &mut Vec<Diagnostic>) -> Data {
    findings.extend(listing.findings);
    let files: Vec<File> =
        listing.files.into_iter().filter(|file| super::is_document(file, findings)).collect();
    let guide = schemas.guide();
    let all: Vec<One> = files.par_iter().map(|file| one(file, &guide, types)).collect();
    let mut data = Data::default();
    // In the order of paths, so that back-references are too.
    for One { path, document, findings: found } in all {
        findings.extend(found);
        let Some((document, schema, facts)) = document else { continue };
        let Facts { backrefs, listed, additions: _, patches } = facts;
        for (resource, jsonpath) in backrefs {
            let datafile_schema = schema.clone().unwrap_or_default();
            data.backrefs.entry(resource).or_default().push(Backref {
                path: path.clone(),
                datafile_schema,
                jsonpath,
            });
        }
        data.listed.extend(listed);
        data.patches.merge(patches);
        data.documents.push((path, document));
    }
    data
}

fn one<'s>(file: &File, guide: &'s Guide<'s, Schema<'s>>, types: &'s Types) -> One {
    let mut findings = Vec::new();
    let path = file.path.clone();
    let Some((document, bytes)) = super::parse(file, &mut findings) else {
        return One { path, document: None, findings };
    };
    let Yaml::Map(map) = document.root().value() else {
        findings.push(super::not_a_map(file, &document));
        return One { path, document: None, findings };
    };
    let schema = match map.get("$schema").map(Node::value) {
        Some(Yaml::Str(schema)) if !schema.is_empty() => Some(schema),
        _ => None,
    };
    let mut facts = facts::of(document.root(), schema, guide, types);
    let checksum = Value::str(&Sha256::of(&bytes).to_string());
    facts.additions.add(document.root().id(), "$file_sha256sum", checksum);
    let mut found = Vec::new();
    let mut converter = Converter { additions: &facts.additions, findings: &mut found };
    let value = converter.value(document.root());
    findings.extend(found.into_iter().map(|finding| finding.in_file(&file.name)));
    One { path, document: Some((value, schema.map(str::to_owned), facts)), findings }
}

/// Gives the datafiles that stand in lists their identifiers, and their schemas the field for it.
pub fn identify(
    documents: Vec<(String, Value)>,
    listed: &BTreeSet<String>,
    schemas: &Schemas,
    types: &Types,
    patches: &mut Patches,
) -> Vec<(String, Value)> {
    let mut identified = Vec::with_capacity(documents.len());
    for (path, document) in documents {
        let identifier = listed.contains(&path).then(|| file_identifier(&document, schemas, types)).flatten();
        let (Some(identifier), Value::Map(map)) = (identifier, &document) else {
            identified.push((path, document));
            continue;
        };
        let schema = map.get("$schema").and_then(Value::as_str).and_then(|schema| schemas.get(schema));
        if let Some(properties) = schema.and_then(|schema| schema.get("properties")) {
            patches.properties.insert(properties.id());
        }
        let Value::Map(map) = document else { continue };
        identified.push((path, Value::Map(map.with("__identifier", Value::str(&identifier)))));
    }
    identified
}

/// The identifier of a whole datafile, if its type has identifying fields and the file any of them.
fn file_identifier(document: &Value, schemas: &Schemas, types: &Types) -> Option<String> {
    let schema = document.get("$schema")?.as_str()?;
    schemas.get(schema)?;
    let fields = types.by_schema(schema)?.context_unique_fields();
    let chosen: Vec<(&str, Value)> =
        fields.filter_map(|field| Some((&*field.name, document.get(&field.name)?.clone()))).collect();
    (!chosen.is_empty()).then(|| facts::identifier(Map::new(chosen)))
}
