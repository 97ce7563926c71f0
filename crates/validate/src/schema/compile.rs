//! Compiles all schemas of a bundle into one list of nodes.
//!
//! Mistakes that are reported elsewhere are left out: malformed keywords, dangling or cyclic references,
//! invalid patterns. The siblings of a `$ref` are left out, too: draft 6 ignores them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use qontract_bundle::{Bundle, Map, Value};

use super::form;
use super::format::Format;
use super::loops::{self, Loop};
use super::numbers;
use super::reference::{self, Place, Target};
use super::rule::{Counted, Keyword, Node, NodeId, Others, Own, Parts, Rule};
use crate::failure::Allowed;
use crate::keywords::{self, below};
use crate::pattern::{BadPattern, Pattern};
use crate::tree;

use super::Formats;

/// A compiled pattern, or its error.
pub type Tried = Result<Arc<Pattern>, BadPattern>;

/// The compiled schemas of a bundle.
#[derive(Debug, Default)]
pub struct Compiled<'b> {
    /// All schemas and subschemas.
    pub nodes: Vec<Node<'b>>,
    /// All patterns.
    pub patterns: BTreeMap<&'b str, Tried>,
    /// The targets of references, by file and JSON pointer.
    pub referred: BTreeMap<&'b str, BTreeMap<String, Place<'b>>>,
    /// Cycles of references that never descend into a value.
    pub loops: Vec<Loop>,
    /// Nodes by the file and memory address of their schema.
    known: HashMap<(&'b str, usize), NodeId>,
}

impl<'b> Compiled<'b> {
    /// Compiles all schemas of `bundle`.
    pub fn new(bundle: &'b Bundle, formats: Formats) -> Self {
        let mut compiler = Compiler { bundle, formats, compiled: Compiled::default(), pending: Vec::new() };
        for schema in bundle.schemas() {
            let file: &'b str = &schema.path;
            let root: &'b Value = &schema.document.value;
            compiler.node(Place { file, pointer: String::new(), value: root });
            // Also where draft 6 does not look: siblings of a `$ref`, and unused definitions.
            keywords::each_schema(root, &mut String::new(), &mut |map, pointer| {
                compiler.patterns(map);
                compiler.inline(file, map, pointer);
            });
        }
        compiler.finish();
        let mut compiled = compiler.compiled;
        compiled.loops = loops::cut(&mut compiled.nodes);
        compiled
    }

    /// The node of a schema in `file`.
    pub fn node(&self, file: &'b str, schema: &'b Value) -> Option<NodeId> {
        self.known.get(&(file, std::ptr::from_ref(schema).addr())).copied()
    }
}

struct Compiler<'b> {
    bundle: &'b Bundle,
    formats: Formats,
    compiled: Compiled<'b>,
    pending: Vec<(NodeId, &'b Value)>,
}

impl<'b> Compiler<'b> {
    /// Interns the node of a schema, by its file and memory address. Its rules are compiled later, so that
    /// schemas may refer to each other.
    fn node(&mut self, place: Place<'b>) -> NodeId {
        let next = self.compiled.nodes.len();
        let key = (place.file, std::ptr::from_ref(place.value).addr());
        let id = *self.compiled.known.entry(key).or_insert(next);
        if id == next {
            let Place { file, pointer, value } = place;
            self.compiled.nodes.push(Node { file, pointer, rules: Vec::new() });
            self.pending.push((id, value));
        }
        id
    }

    /// Compiles the rules of all nodes that were interned and have none yet.
    fn finish(&mut self) {
        while let Some((id, schema)) = self.pending.pop() {
            let Node { file, pointer, .. } = &self.compiled.nodes[id];
            let at = At { file, pointer: pointer.clone() };
            self.compiled.nodes[id].rules = self.rules(&at, schema);
        }
    }

    fn rules(&mut self, at: &At<'b>, schema: &'b Value) -> Vec<Keyword<'b>> {
        let map = match schema {
            Value::Bool(false) => return vec![Keyword { name: "", rule: Rule::Own(Own::Forbidden) }],
            Value::Map(map) => map,
            _ => return Vec::new(),
        };
        self.patterns(map);
        self.inline(at.file, map, &at.pointer);
        if let Some(reference) = map.get("$ref") {
            let target = reference.as_str().map(|written| reference::target(self.bundle, at.file, written));
            let Some(Target::Place(place)) = target else { return Vec::new() };
            let referred = self.compiled.referred.entry(place.file).or_default();
            referred.entry(place.pointer.clone()).or_insert_with(|| place.clone());
            let rule = Rule::Parts(Parts::Whole(self.node(place)));
            return vec![Keyword { name: "$ref", rule }];
        }
        let mut rules = Vec::new();
        for (key, value) in map.iter() {
            if form::fault(key.as_str(), value).is_none() {
                let at = At { file: at.file, pointer: below(&at.pointer, key.as_str()) };
                let found = self.keyword(&at, key.as_str(), value, map).into_iter();
                rules.extend(found.map(|rule| Keyword { name: key.as_str(), rule }));
            }
        }
        rules
    }

    /// Compiles a keyword of the schema `whole`.
    fn keyword(&mut self, at: &At<'b>, key: &'b str, value: &'b Value, whole: &'b Map) -> Vec<Rule<'b>> {
        if let Some(own) = self.own(key, value, whole) {
            return vec![Rule::Own(own)];
        }
        vec![match (key, value) {
            ("allOf", Value::List(items)) => Rule::Parts(Parts::All(self.list(at, items))),
            ("anyOf", Value::List(items)) => Rule::AnyOf(self.list(at, items)),
            ("oneOf", Value::List(items)) => Rule::OneOf(self.list(at, items)),
            ("items", Value::List(items)) => Rule::Parts(Parts::Each(self.list(at, items))),
            ("items", schema) => Rule::Parts(Parts::Items(self.node(at.place(schema)))),
            ("not", schema) => Rule::Not(self.node(at.place(schema))),
            ("contains", schema) => Rule::Contains(self.node(at.place(schema))),
            ("propertyNames", schema) => Rule::Names(self.node(at.place(schema))),
            ("properties", Value::Map(fields)) => Rule::Parts(Parts::Fields(self.by_name(at, fields))),
            ("patternProperties", Value::Map(schemas)) => {
                let by_name = self.by_name(at, schemas).into_iter();
                let matching = by_name.filter_map(|(name, node)| Some((self.pattern(name)?, node)));
                Rule::Parts(Parts::Matching(matching.collect()))
            }
            ("additionalProperties", Value::Map(_)) => {
                let node = self.node(at.place(value));
                Rule::Parts(Parts::Others(self.others(whole), node))
            }
            ("additionalItems", Value::Map(_)) => {
                let node = self.node(at.place(value));
                let Some(items) = whole.get("items").and_then(Value::as_list) else { return Vec::new() };
                Rule::Parts(Parts::Rest(items.len(), node))
            }
            ("dependencies", Value::Map(entries)) => {
                let (mut needs, mut dependent) = (Vec::new(), Vec::new());
                for (name, entry) in entries.iter() {
                    match entry.as_list() {
                        Some(names) => needs.push((name.as_str(), texts(names))),
                        None => dependent.push((name.as_str(), self.node(at.below(name.as_str(), entry)))),
                    }
                }
                return vec![Rule::Own(Own::Needs(needs)), Rule::Parts(Parts::Dependent(dependent))];
            }
            // Compiled even if nothing refers to them.
            ("definitions", Value::Map(schemas)) => {
                self.by_name(at, schemas);
                return Vec::new();
            }
            _ => return Vec::new(),
        }]
    }

    /// Compiles an assertion: a keyword without subschemas.
    fn own(&mut self, key: &str, value: &'b Value, whole: &'b Map) -> Option<Own<'b>> {
        let least = |counted| Some(Own::Least(counted, numbers::float(value)?));
        let most = |counted| Some(Own::Most(counted, numbers::float(value)?));
        match (key, value) {
            ("type", Value::Str(name)) => Some(Own::Type(vec![name])),
            ("type", Value::List(names)) => Some(Own::Type(texts(names))),
            ("enum", Value::List(values)) => Some(Own::Enum(values, allowed(values))),
            ("const", value) => Some(Own::Const(value, allowed(std::slice::from_ref(value)))),
            ("pattern", Value::Str(written)) => self.pattern(written).map(Own::Pattern),
            ("format", Value::Str(name)) => self.format(name),
            ("minimum", limit) => Some(Own::Minimum(limit)),
            ("maximum", limit) => Some(Own::Maximum(limit)),
            ("exclusiveMinimum", limit) => Some(Own::ExclusiveMinimum(limit)),
            ("exclusiveMaximum", limit) => Some(Own::ExclusiveMaximum(limit)),
            ("multipleOf", of) => Some(Own::MultipleOf(of)),
            ("minLength", _) => least(Counted::Characters),
            ("maxLength", _) => most(Counted::Characters),
            ("minItems", _) => least(Counted::Items),
            ("maxItems", _) => most(Counted::Items),
            ("minProperties", _) => least(Counted::Fields),
            ("maxProperties", _) => most(Counted::Fields),
            ("uniqueItems", Value::Bool(true)) => Some(Own::Unique),
            ("required", Value::List(names)) => Some(Own::Required(texts(names))),
            ("additionalProperties", Value::Bool(false)) => Some(Own::Closed(self.others(whole))),
            ("additionalItems", Value::Bool(false)) => {
                whole.get("items").and_then(Value::as_list).map(|items| Own::ClosedList(items.len()))
            }
            _ => None,
        }
    }

    fn list(&mut self, at: &At<'b>, schemas: &'b [Value]) -> Vec<NodeId> {
        let schemas = schemas.iter().enumerate();
        schemas.map(|(index, schema)| self.node(at.below(&index.to_string(), schema))).collect()
    }

    fn by_name(&mut self, at: &At<'b>, schemas: &'b Map) -> Vec<(&'b str, NodeId)> {
        let schemas = schemas.iter();
        schemas.map(|(name, schema)| (name.as_str(), self.node(at.below(name.as_str(), schema)))).collect()
    }

    /// Compiles an inline `$schemaRef`.
    fn inline(&mut self, file: &'b str, map: &'b Map, pointer: &str) {
        if let Some(value @ Value::Map(_)) = map.get("$schemaRef") {
            self.node(Place { file, pointer: below(pointer, "$schemaRef"), value });
        }
    }

    /// Compiles all patterns of a schema, also those that are not enforced.
    fn patterns(&mut self, map: &'b Map) {
        let of_text = map.get("pattern").and_then(Value::as_str).into_iter();
        let of_names = map.get("patternProperties").and_then(Value::as_map).into_iter();
        let of_names = of_names.flat_map(|names| names.iter().map(|(name, _)| name.as_str()));
        of_text.chain(of_names).for_each(|written| drop(self.pattern(written)));
    }

    fn pattern(&mut self, written: &'b str) -> Option<Arc<Pattern>> {
        let tried = self.compiled.patterns.entry(written);
        tried.or_insert_with(|| Pattern::new(written).map(Arc::new)).as_ref().ok().cloned()
    }

    /// The fields that a schema does not define. Python joins the patterns with `|` into one, so that the
    /// flags of the first apply to all.
    fn others(&mut self, whole: &'b Map) -> Others<'b> {
        let named = whole.get("properties").and_then(Value::as_map);
        let by_pattern = whole.get("patternProperties").and_then(Value::as_map);
        let written: Vec<&str> = by_pattern
            .into_iter()
            .flat_map(|by_pattern| by_pattern.iter().map(|(name, _)| name.as_str()))
            .collect();
        let joined = written.join("|");
        let patterns = match Pattern::new(&joined) {
            _ if joined.is_empty() => Vec::new(),
            Ok(pattern) => vec![Arc::new(pattern)],
            Err(_) => written.into_iter().filter_map(|written| self.pattern(written)).collect(),
        };
        Others { named, patterns }
    }

    fn format(&self, name: &'b str) -> Option<Own<'b>> {
        if self.formats == Formats::Ignored {
            return None;
        }
        Some(Own::Format(name, Format::named(name)?))
    }
}

/// The location of a keyword.
struct At<'b> {
    file: &'b str,
    pointer: String,
}

impl<'b> At<'b> {
    fn place(&self, value: &'b Value) -> Place<'b> {
        Place { file: self.file, pointer: self.pointer.clone(), value }
    }

    fn below(&self, step: &str, value: &'b Value) -> Place<'b> {
        Place { file: self.file, pointer: below(&self.pointer, step), value }
    }
}

/// The distinct values.
fn allowed(values: &[Value]) -> Allowed {
    let mut known = BTreeSet::new();
    Allowed(values.iter().filter(|value| known.insert(tree::text(value))).map(tree::plain).collect())
}

fn texts(values: &[Value]) -> Vec<&str> {
    values.iter().filter_map(Value::as_str).collect()
}
