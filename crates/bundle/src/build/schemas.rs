//! The JSON Schemas of the data repo: read by the walk over datafiles, then patched into the bundle.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use qontract_diagnostics::{Diagnostic, code};
use qontract_yaml::{Document, Node, NodeId, Value as Yaml};
use rayon::prelude::*;

use super::convert::{Additions, Converter};
use super::parse;
use crate::repo::{Listing, RepoFile};
use crate::value::{Map, Value};
use crate::walk::{SchemaIndex, Shape, Tree};

/// The schema of datafile schemas.
const METASCHEMA: &str = "/metaschema-1.json";

/// The `properties` of schemas that get the field `__identifier`.
#[derive(Debug, Default, PartialEq)]
pub struct SchemaPatches {
    /// Maps under `properties` that get the field.
    pub properties: BTreeSet<SchemaId>,
    /// Schemas that get a new `properties` map with the field.
    pub roots: BTreeSet<SchemaId>,
}

impl SchemaPatches {
    /// Adds the patches of another datafile.
    pub fn merge(&mut self, other: &SchemaPatches) {
        self.properties.extend(&other.properties);
        self.roots.extend(&other.roots);
    }
}

/// All schemas, by path.
#[derive(Debug)]
pub struct Schemas {
    files: Vec<(RepoFile, Document)>,
    by_path: HashMap<String, u32>,
    /// Path and digest of each schema, concatenated.
    digests: Vec<u8>,
}

/// A position within a schema.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'s> {
    file: u32,
    /// The schema node at this position.
    pub node: Node<'s>,
}

/// Identifies a position within a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaId {
    file: u32,
    node: NodeId,
}

impl SchemaId {
    /// The file number and the node number.
    pub fn numbers(self) -> [u32; 2] {
        [self.file, self.node.into()]
    }
}

impl From<[u32; 2]> for SchemaId {
    fn from([file, node]: [u32; 2]) -> Self {
        Self { file, node: node.into() }
    }
}

impl Schema<'_> {
    /// The identifier of this position.
    pub fn id(self) -> SchemaId {
        SchemaId { file: self.file, node: self.node.id() }
    }
}

impl<'s> Tree<'s> for Schema<'s> {
    fn shape(self) -> Shape<'s> {
        self.node.shape()
    }

    fn get(self, key: &str) -> Option<Self> {
        self.node.get(key).map(|node| Schema { node, ..self })
    }

    fn entries(self) -> impl Iterator<Item = (&'s str, Self)> {
        self.node.entries().map(move |(key, node)| (key, Schema { node, ..self }))
    }

    fn items(self) -> impl Iterator<Item = Self> {
        self.node.items().map(move |node| Schema { node, ..self })
    }
}

/// Reads and parses all schemas.
pub fn read(listing: Listing, findings: &mut Vec<Diagnostic>) -> Schemas {
    findings.extend(listing.findings);
    let files: Vec<RepoFile> =
        listing.files.into_iter().filter(|file| parse::is_document(file, findings)).collect();
    let parsed: Vec<_> = files
        .into_par_iter()
        .map(|file| {
            let mut found = Vec::new();
            let parsed = parse::parse(&file, &mut found);
            if let Some((document, _)) = &parsed {
                check(&file, document, &mut found);
            }
            (parsed.map(|(document, sum)| (file, document, sum)), found)
        })
        .collect();
    let mut schemas = Schemas { files: Vec::new(), by_path: HashMap::new(), digests: Vec::new() };
    for (file, found) in parsed {
        findings.extend(found);
        if let Some((file, document, sum)) = file {
            let place = u32::try_from(schemas.files.len()).expect("fewer schemas than 2^32");
            schemas.digests.extend([file.path.as_bytes(), b"\0", sum.as_bytes()].concat());
            schemas.by_path.insert(file.path.clone(), place);
            schemas.files.push((file, document));
        }
    }
    schemas
}

fn check(file: &RepoFile, document: &Document, findings: &mut Vec<Diagnostic>) {
    let Yaml::Map(map) = document.root().value() else {
        return findings.push(parse::not_a_map(file, document));
    };
    match map.get("$schema").map(Node::value) {
        Some(Yaml::Str(METASCHEMA)) => {
            let properties = map.get("properties");
            if !matches!(properties.map(Node::value), Some(Yaml::Map(_))) {
                let finding =
                    Diagnostic::new(code::SCHEMA_WITHOUT_PROPERTIES, "the schema has no `properties`");
                findings.push(finding.in_file(&file.name));
            }
        }
        Some(_) => {}
        None => {
            let finding = Diagnostic::new(code::SCHEMA_WITHOUT_SCHEMA, "the schema has no `$schema`");
            findings.push(finding.in_file(&file.name).hint(format!("add `$schema: {METASCHEMA}`")));
        }
    }
}

impl Schemas {
    /// Identifies the content of all schemas: part of the cache key.
    pub fn digests(&self) -> &[u8] {
        &self.digests
    }

    /// The schemas, indexed for the walk.
    pub fn index(&self) -> SchemaIndex<'_, Schema<'_>> {
        let schemas = (0..).zip(&self.files);
        SchemaIndex::new(
            schemas.map(|(file, (listed, document))| {
                (listed.path.as_str(), Schema { file, node: document.root() })
            }),
        )
    }

    /// The schema of datafiles that name `path`.
    pub fn get(&self, path: &str) -> Option<Schema<'_>> {
        let file = *self.by_path.get(path)?;
        Some(Schema { file, node: self.files[file as usize].1.root() })
    }

    /// The schemas as they are in the bundle: with the fields that bundling adds to datafiles.
    pub fn patched(&self, patches: &SchemaPatches) -> Vec<(Arc<str>, Value)> {
        let identifier = || Value::Map(Map::new(vec![("type", Value::str("string"))]));
        let mut findings = Vec::new();
        let mut patched = Vec::with_capacity(self.files.len());
        for (place, (file, document)) in (0..).zip(&self.files) {
            let mut additions = Additions::default();
            let root = Schema { file: place, node: document.root() };
            let names = root.get("$schema").and_then(Tree::text);
            if let (Some(METASCHEMA), Some(properties)) = (names, root.get("properties")) {
                additions.add(properties.node.id(), "$file_sha256sum", checksum_schema());
            }
            for id in patches.properties.iter().filter(|id| id.file == place) {
                additions.add(id.node, "__identifier", identifier());
            }
            for id in patches.roots.iter().filter(|id| id.file == place) {
                let properties = Map::new(vec![("__identifier", identifier())]);
                additions.add(id.node, "properties", Value::Map(properties));
            }
            let mut converter = Converter { additions: &additions, findings: &mut findings };
            patched.push((file.path.as_str().into(), converter.value(document.root())));
        }
        patched
    }
}

fn checksum_schema() -> Value {
    Value::Map(Map::new(vec![
        ("description", Value::str("sha256sum of the datafile")),
        ("type", Value::str("string")),
    ]))
}
