//! The facts that the walk over a datafile collects for the bundle: the resources it names, the datafiles in
//! its lists, and how the items of its lists are identified.

use std::sync::Arc;

use qontract_yaml::Node;

use super::convert::{Additions, Converter};
use super::schemas::{Schema, SchemaPatches};
use crate::digest::Sha256;
use crate::json;
use crate::types::{Field, Types};
use crate::value::{Map, Value};
use crate::walk::{
    self, MapField, SchemaIndex, SchemaPosition, Shape, Tree, VisitedValue, Visitor, WalkPosition, jsonpath,
};

/// The facts about one datafile.
#[derive(Debug, Default)]
pub struct DatafileFacts {
    /// Resources that the file names.
    pub backrefs: Vec<ResourceRef>,
    /// Datafiles that are referred to from lists of the file.
    pub listed: Vec<Arc<str>>,
    /// Schemas of the list items that got an identifier.
    pub patches: SchemaPatches,
}

/// A reference to a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct ResourceRef {
    /// The path of the resource.
    pub resource: String,
    /// The JSON path of the reference in the datafile.
    pub jsonpath: String,
}

impl DatafileFacts {
    /// Frees unused capacity, because facts stay in the cache.
    pub fn shrink(&mut self) {
        self.backrefs.shrink_to_fit();
        self.listed.shrink_to_fit();
    }
}

/// Visitor that collects the facts of one datafile.
#[derive(Default)]
struct FactCollector {
    facts: DatafileFacts,
    additions: Additions,
}

/// Walks the datafile `root` that names `schema`; also returns the identifiers of its list items.
pub fn collect<'s, 'd: 's>(
    root: Node<'d>,
    schema: Option<&'d str>,
    schema_index: &'s SchemaIndex<'s, Schema<'s>>,
    types: &'s Types,
) -> (DatafileFacts, Additions) {
    let mut finder = FactCollector::default();
    walk::walk(root, schema, schema_index, types, &mut finder);
    (finder.facts, finder.additions)
}

impl<'s, 'd> Visitor<'s, 'd, Schema<'s>, Node<'d>> for FactCollector {
    fn item(
        &mut self,
        item: VisitedValue<'_, 's, 'd, Schema<'s>, Node<'d>>,
        fields: &[MapField<'s, 'd, Schema<'s>, Node<'d>>],
    ) {
        let mut identifying: Vec<&str> = Vec::new();
        for MapField { key, value, at } in fields {
            let identifies = at.field.is_some_and(Field::identifies) && *key != "$ref";
            match value.shape() {
                Shape::Str("") if *key == "$ref" => {}
                Shape::Str(path) if *key == "$ref" => self.facts.listed.push(path.into()),
                // A reference is identified by its path; other maps and lists do not contribute to the
                // identifier.
                Shape::Map if identifies => {
                    let reference = value.get("$ref").map(Tree::shape);
                    if matches!(reference, Some(Shape::Str(_) | Shape::Number(_) | Shape::Null)) {
                        identifying.push(key);
                    }
                }
                Shape::Str(_) | Shape::Number(_) | Shape::Null if identifies => identifying.push(key),
                _ => {}
            }
        }
        if !identifying.is_empty() {
            self.identify(item.value, item.at, &identifying);
        }
    }

    fn leaf(
        &mut self,
        leaf: VisitedValue<'_, 's, 'd, Schema<'s>, Node<'d>>,
        _parent: Option<WalkPosition<'s, Schema<'s>>>,
    ) {
        if let Some(text) = leaf.value.text().filter(|text| !text.is_empty() && leaf.at.names_resource()) {
            let (resource, jsonpath) = (text.to_owned(), jsonpath(leaf.path));
            self.facts.backrefs.push(ResourceRef { resource, jsonpath });
        }
    }
}

impl FactCollector {
    /// Records the identifier of a list item, and that its schema needs a field for it.
    fn identify<'s>(&mut self, item: Node<'_>, at: WalkPosition<'s, Schema<'s>>, fields: &[&str]) {
        let (nothing, mut findings) = (Additions::default(), Vec::new());
        let mut converter = Converter { additions: &nothing, findings: &mut findings };
        let chosen = item.entries().filter(|(key, _)| fields.contains(key));
        let chosen = chosen.map(|(key, value)| (key, converter.value(value))).collect();
        let identifier = identifier(Map::new(chosen));
        self.additions.add(item.id(), "__identifier", Value::str(&identifier));
        let Some(schema) = at.schema.map(SchemaPosition::tree) else { return };
        let patches = &mut self.facts.patches;
        if let Some(properties) = schema.get("properties") {
            patches.properties.insert(properties.id());
        } else {
            let branches = schema.get("oneOf").into_iter().flat_map(Tree::items);
            patches.properties.extend(branches.filter_map(|branch| Some(branch.get("properties")?.id())));
        }
        if let Some(root) = at.one_of.map(SchemaPosition::tree) {
            match root.get("properties") {
                Some(properties) => patches.properties.insert(properties.id()),
                None => patches.roots.insert(root.id()),
            };
        }
    }
}

/// The identifier of an object: the digest of its identifying fields.
pub fn identifier(fields: Map) -> String {
    let mut text = Vec::new();
    json::write_python(&Value::Map(fields), &mut text);
    Sha256::of(&text).to_string()
}
