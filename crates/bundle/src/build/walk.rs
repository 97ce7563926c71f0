//! One datafile, walked along its JSON schema and its GraphQL type.
//!
//! The walk finds what the file names (resources, other datafiles in lists) and how the items of its lists are
//! identified. It follows the schema only where a field's own schema is plain to see: `properties`, `items`, a
//! `$ref` to a whole file, a `oneOf` that an interface field or the presence of `$ref` decides.

use std::fmt::Write as _;

use qontract_yaml::{Node, Value as Yaml};

use super::Patches;
use super::convert::{Additions, Converter};
use super::schemas::{Schema, Schemas};
use crate::digest::Sha256;
use crate::json;
use crate::types::{Field, Type, Types};
use crate::value::{Key, Keys, Map, Value};

/// How a schema marks a field that names a resource.
const RESOURCE_REF: &str = "/common-1.json#/definitions/resourceref";

/// What the walk found.
#[derive(Default)]
pub struct Facts {
    /// Resources that the file names, with the place.
    pub backrefs: Vec<(String, String)>,
    /// Datafiles that stand in lists of the file.
    pub listed: Vec<String>,
    /// The identifiers of list items.
    pub additions: Additions,
    /// Schemas of the list items that got one.
    pub patches: Patches,
}

/// A step of a JSON path.
#[derive(Clone, Copy)]
enum Step<'d> {
    Key(&'d str),
    Index(usize),
}

/// Where the walk is in schema and type.
#[derive(Clone, Copy)]
struct At<'s> {
    type_: Option<&'s Type>,
    field: Option<&'s Field>,
    schema: Option<Schema<'s>>,
    /// The schema whose `oneOf` led to `schema`.
    one_of: Option<Schema<'s>>,
}

impl At<'_> {
    fn names_resource(&self) -> bool {
        self.schema.and_then(|schema| schema.text("$ref")) == Some(RESOURCE_REF)
    }
}

struct Walk<'s, 'd> {
    schemas: &'s Schemas,
    types: &'s Types,
    path: Vec<Step<'d>>,
    facts: Facts,
}

/// Walks the datafile `root` that names `schema`.
pub fn walk(root: Node<'_>, schema: Option<&str>, schemas: &Schemas, types: &Types) -> Facts {
    let mut walk = Walk { schemas, types, path: Vec::new(), facts: Facts::default() };
    let at = At {
        type_: schema.and_then(|schema| types.by_schema(schema)),
        field: None,
        schema: schema.and_then(|schema| schemas.get(schema)),
        one_of: None,
    };
    walk.node(root, at, schema.is_some());
    walk.facts
}

impl<'s, 'd> Walk<'s, 'd> {
    fn node(&mut self, node: Node<'d>, at: At<'s>, has_schema: bool) {
        match node.value() {
            Yaml::Map(map) => {
                let mut identifying: Vec<&str> = Vec::new();
                let in_list = matches!(self.path.last(), Some(Step::Index(_)));
                for entry in map.iter().filter(|entry| entry.key != "$schema") {
                    let next = self.step_to(at, entry.key, entry.value);
                    if in_list {
                        self.look_at_item_field(entry.key, entry.value, next, &mut identifying);
                    }
                    self.path.push(Step::Key(entry.key));
                    self.node(entry.value, next, has_schema);
                    self.path.pop();
                }
                if !identifying.is_empty() {
                    self.identify(node, at, &identifying);
                }
            }
            Yaml::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    let items = at.schema.and_then(|schema| schema.get("items"));
                    let next = self.arrive(at.type_, at.field, items, item);
                    self.node(item, next, has_schema);
                    self.path.pop();
                }
            }
            Yaml::Str(text) if has_schema && !text.is_empty() && at.names_resource() => {
                let jsonpath = self.jsonpath();
                self.facts.backrefs.push((text.to_owned(), jsonpath));
            }
            _ => {}
        }
    }

    /// A field of a map that stands in a list: it may identify the map, or be a reference to a datafile.
    fn look_at_item_field(
        &mut self,
        key: &'d str,
        value: Node<'d>,
        at: At<'s>,
        identifying: &mut Vec<&'d str>,
    ) {
        let identifies = at.field.is_some_and(Field::identifies);
        match value.value() {
            Yaml::Str("") if key == "$ref" => {}
            Yaml::Str(path) if key == "$ref" => self.facts.listed.push(path.to_owned()),
            // A reference is taken by its path; other maps and lists identify nothing.
            Yaml::Map(map) if identifies && key != "$ref" => {
                let reference = map.get("$ref").map(Node::value);
                if reference.is_some_and(|value| !matches!(value, Yaml::Map(_) | Yaml::List(_))) {
                    identifying.push(key);
                }
            }
            Yaml::Map(_) | Yaml::List(_) => {}
            _ if identifies && key != "$ref" => identifying.push(key),
            _ => {}
        }
    }

    fn step_to(&self, at: At<'s>, key: &str, value: Node<'_>) -> At<'s> {
        let (type_, field) = match (at.type_, at.field) {
            (None, _) => (None, None),
            (Some(type_), field) if key == "$ref" => (Some(type_), field),
            (Some(type_), None) => (Some(type_), type_.field(key)),
            (Some(_), Some(field)) => match self.types.get(&field.type_name) {
                Some(type_) => (Some(type_), type_.field(key)),
                None => (None, None),
            },
        };
        let schema = at.schema.and_then(|schema| {
            if schema.get("$schemaRef").is_some() { Some(schema) } else { schema.get("properties")?.get(key) }
        });
        self.arrive(type_, field, schema, value)
    }

    /// The place of `value`, its interface and its schema resolved.
    fn arrive(
        &self,
        type_: Option<&'s Type>,
        field: Option<&'s Field>,
        schema: Option<Schema<'s>>,
        value: Node<'_>,
    ) -> At<'s> {
        let field_type = field.and_then(|field| self.types.get(&field.type_name));
        let discriminator = field_type.and_then(|type_| Some((type_.field_map()?, value))).and_then(
            |((field, types), value)| {
                let Yaml::Map(map) = value.value() else { return None };
                match map.get(field)?.value() {
                    Yaml::Str(text) if !text.is_empty() => Some((field, text, types)),
                    _ => None,
                }
            },
        );
        let (schema, one_of) =
            self.resolve(schema, value, discriminator.map(|(field, text, _)| (field, text)));
        let concrete = discriminator.and_then(|(_, text, types)| self.types.get(types.get(text)?));
        match concrete {
            Some(type_) => At { type_: Some(type_), field: None, schema, one_of },
            None => At { type_, field, schema, one_of },
        }
    }

    /// Follows `$ref` and decides `oneOf`; also the schema whose `oneOf` an interface decided.
    fn resolve(
        &self,
        schema: Option<Schema<'s>>,
        value: Node<'_>,
        discriminator: Option<(&str, &str)>,
    ) -> (Option<Schema<'s>>, Option<Schema<'s>>) {
        let Some(schema) = schema.map(|schema| self.follow(schema)) else { return (None, None) };
        let branches = schema.list("oneOf").filter(|_| schema.get("$schemaRef").is_none());
        let Some(mut branches) = branches else { return (Some(schema), None) };
        let is_reference = |branch: &Schema<'s>| branch.get("$schemaRef").is_some();
        let references = branches.clone().filter(is_reference).count();
        if references == 1 && branches.clone().count() == 2 {
            let has_ref = matches!(value.value(), Yaml::Map(map) if map.get("$ref").is_some());
            let branch = branches.find(|branch| is_reference(branch) == has_ref);
            return (branch.map(|branch| self.follow(branch)), None);
        }
        let Some((field, text)) = discriminator else { return (Some(schema), None) };
        let decided = branches.map(|branch| self.follow(branch)).find(|branch| {
            let values = branch.get("properties").and_then(|properties| properties.get(field));
            let mut values = values.and_then(|field| field.list("enum")).into_iter().flatten();
            values.any(|value| value.node.value() == Yaml::Str(text))
        });
        (decided, decided.map(|_| schema))
    }

    /// The whole file that a schema refers to, or the schema itself.
    fn follow(&self, schema: Schema<'s>) -> Schema<'s> {
        let referred = schema.text("$ref").filter(|_| schema.get("$schemaRef").is_none());
        referred.and_then(|path| self.schemas.get(path)).unwrap_or(schema)
    }

    /// Gives a list item its identifier, and its schema the field for it.
    fn identify(&mut self, item: Node<'d>, at: At<'s>, fields: &[&str]) {
        let Yaml::Map(map) = item.value() else { return };
        let (nothing, mut keys, mut findings) = (Additions::default(), Keys::default(), Vec::new());
        let mut converter = Converter { additions: &nothing, keys: &mut keys, findings: &mut findings };
        let chosen = map.iter().filter(|entry| fields.contains(&entry.key));
        let chosen = chosen.map(|entry| (Key::from(entry.key), converter.value(entry.value))).collect();
        let identifier = identifier(Map::new(chosen));
        self.facts.additions.add(item.id(), "__identifier", Value::str(&identifier));
        let Some(schema) = at.schema else { return };
        let patches = &mut self.facts.patches;
        if let Some(properties) = schema.get("properties") {
            patches.properties.insert(properties.id());
        } else {
            let branches = schema.list("oneOf").into_iter().flatten();
            patches.properties.extend(branches.filter_map(|branch| Some(branch.get("properties")?.id())));
        }
        if let Some(root) = at.one_of {
            match root.get("properties") {
                Some(properties) => patches.properties.insert(properties.id()),
                None => patches.roots.insert(root.id()),
            };
        }
    }

    fn jsonpath(&self) -> String {
        let mut text = String::new();
        for (index, step) in self.path.iter().enumerate() {
            if index > 0 {
                text.push('.');
            }
            match step {
                Step::Key(key) => text.push_str(key),
                Step::Index(index) => {
                    let _ = write!(text, "[{index}]");
                }
            }
        }
        text
    }
}

/// The identifier of an object: the digest of its identifying fields.
pub fn identifier(fields: Map) -> String {
    let mut text = Vec::new();
    json::write_python(&Value::Map(fields), &mut text);
    Sha256::of(&text).to_string()
}
