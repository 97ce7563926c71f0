//! Compiles all schemas of a bundle into one list of nodes.
//!
//! Malformed keywords, dangling or cyclic references, and invalid patterns are skipped, because other rules
//! report them. The siblings of a `$ref` are skipped because draft 6 ignores them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use qontract_bundle::{Bundle, Map, Value};

use super::format::StringFormat;
use super::metaschema;
use super::numbers;
use super::ref_cycles::{self, RefCycle};
use super::reference::{self, RefTarget, SchemaLocation};
use super::rule::{
    AdditionalFields, Assertion, CountedUnit, Keyword, KeywordRule, NodeId, SchemaNode, Subschemas,
};
use crate::failure::AllowedValues;
use crate::keywords::{self, child_pointer};
use crate::pattern::{Pattern, PatternError};
use crate::tree;

use super::Formats;

/// A compiled pattern, or its error.
pub type CompiledPattern = Result<Arc<Pattern>, PatternError>;

/// The compiled schemas of a bundle.
#[derive(Debug, Default)]
pub struct CompiledSchemas<'b> {
    /// All schemas and subschemas.
    pub nodes: Vec<SchemaNode<'b>>,
    /// All patterns.
    pub patterns: BTreeMap<&'b str, CompiledPattern>,
    /// The targets of references, by file and JSON pointer.
    pub ref_targets: BTreeMap<&'b str, BTreeMap<String, SchemaLocation<'b>>>,
    /// Cycles of references that never descend into a value.
    pub ref_cycles: Vec<RefCycle>,
    /// Nodes by the file and memory address of their schema.
    node_ids: HashMap<(&'b str, usize), NodeId>,
}

impl<'b> CompiledSchemas<'b> {
    /// Compiles all schemas of `bundle`.
    pub fn new(bundle: &'b Bundle, formats: Formats) -> Self {
        let mut compiler =
            SchemaCompiler { bundle, formats, compiled: CompiledSchemas::default(), pending: Vec::new() };
        for schema in bundle.schemas() {
            let file: &'b str = &schema.path;
            let root: &'b Value = &schema.document.value;
            compiler.intern_node(SchemaLocation { file, pointer: String::new(), value: root });
            // The visit includes schemas in places that draft 6 ignores: siblings of a `$ref`, and unused
            // definitions.
            keywords::visit_schemas(root, &mut String::new(), &mut |map, pointer| {
                compiler.patterns(map);
                compiler.inline(file, map, pointer);
            });
        }
        compiler.compile_pending();
        let mut compiled = compiler.compiled;
        compiled.ref_cycles = ref_cycles::remove_ref_cycles(&mut compiled.nodes);
        compiled
    }

    /// The node of a schema in `file`.
    pub fn node_of(&self, file: &'b str, schema: &'b Value) -> Option<NodeId> {
        self.node_ids.get(&(file, std::ptr::from_ref(schema).addr())).copied()
    }
}

struct SchemaCompiler<'b> {
    bundle: &'b Bundle,
    formats: Formats,
    compiled: CompiledSchemas<'b>,
    pending: Vec<(NodeId, &'b Value)>,
}

impl<'b> SchemaCompiler<'b> {
    /// Interns the node of a schema, by its file and memory address. The rules of the node are compiled
    /// later, so that schemas may refer to each other.
    fn intern_node(&mut self, place: SchemaLocation<'b>) -> NodeId {
        let next = self.compiled.nodes.len();
        let key = (place.file, std::ptr::from_ref(place.value).addr());
        let id = *self.compiled.node_ids.entry(key).or_insert(next);
        if id == next {
            let SchemaLocation { file, pointer, value } = place;
            self.compiled.nodes.push(SchemaNode { file, pointer, rules: Vec::new() });
            self.pending.push((id, value));
        }
        id
    }

    /// Compiles the rules of all nodes that were interned and have none yet.
    fn compile_pending(&mut self) {
        while let Some((id, schema)) = self.pending.pop() {
            let SchemaNode { file, pointer, .. } = &self.compiled.nodes[id];
            let at = KeywordLocation { file, pointer: pointer.clone() };
            self.compiled.nodes[id].rules = self.rules(&at, schema);
        }
    }

    fn rules(&mut self, at: &KeywordLocation<'b>, schema: &'b Value) -> Vec<Keyword<'b>> {
        let map = match schema {
            Value::Bool(false) => {
                return vec![Keyword { name: "", rule: KeywordRule::Assertion(Assertion::Forbidden) }];
            }
            Value::Map(map) => map,
            _ => return Vec::new(),
        };
        self.patterns(map);
        self.inline(at.file, map, &at.pointer);
        if let Some(reference) = map.get("$ref") {
            let target = reference.as_str().map(|written| reference::resolve(self.bundle, at.file, written));
            let Some(RefTarget::Schema(place)) = target else { return Vec::new() };
            let referred = self.compiled.ref_targets.entry(place.file).or_default();
            referred.entry(place.pointer.clone()).or_insert_with(|| place.clone());
            let rule = KeywordRule::Subschemas(Subschemas::Ref(self.intern_node(place)));
            return vec![Keyword { name: "$ref", rule }];
        }
        let mut rules = Vec::new();
        for (key, value) in map.iter() {
            if metaschema::fault(key.as_str(), value).is_none() {
                let at = KeywordLocation { file: at.file, pointer: child_pointer(&at.pointer, key.as_str()) };
                let found = self.keyword(&at, key.as_str(), value, map).into_iter();
                rules.extend(found.map(|rule| Keyword { name: key.as_str(), rule }));
            }
        }
        rules
    }

    /// Compiles a keyword of the schema `whole`.
    fn keyword(
        &mut self,
        at: &KeywordLocation<'b>,
        key: &'b str,
        value: &'b Value,
        whole: &'b Map,
    ) -> Vec<KeywordRule<'b>> {
        if let Some(own) = self.assertion(key, value, whole) {
            return vec![KeywordRule::Assertion(own)];
        }
        vec![match (key, value) {
            ("allOf", Value::List(items)) => KeywordRule::Subschemas(Subschemas::AllOf(self.list(at, items))),
            ("anyOf", Value::List(items)) => KeywordRule::AnyOf(self.list(at, items)),
            ("oneOf", Value::List(items)) => KeywordRule::OneOf(self.list(at, items)),
            ("items", Value::List(items)) => {
                KeywordRule::Subschemas(Subschemas::PositionalItems(self.list(at, items)))
            }
            ("items", schema) => {
                KeywordRule::Subschemas(Subschemas::Items(self.intern_node(at.place(schema))))
            }
            ("not", schema) => KeywordRule::Not(self.intern_node(at.place(schema))),
            ("contains", schema) => KeywordRule::Contains(self.intern_node(at.place(schema))),
            ("propertyNames", schema) => KeywordRule::PropertyNames(self.intern_node(at.place(schema))),
            ("properties", Value::Map(fields)) => {
                KeywordRule::Subschemas(Subschemas::Fields(self.by_name(at, fields)))
            }
            ("patternProperties", Value::Map(schemas)) => {
                let by_name = self.by_name(at, schemas).into_iter();
                let matching = by_name.filter_map(|(name, node)| Some((self.pattern(name)?, node)));
                KeywordRule::Subschemas(Subschemas::Matching(matching.collect()))
            }
            ("additionalProperties", Value::Map(_)) => {
                let node = self.intern_node(at.place(value));
                KeywordRule::Subschemas(Subschemas::AdditionalFields(self.additional_fields(whole), node))
            }
            ("additionalItems", Value::Map(_)) => {
                let node = self.intern_node(at.place(value));
                let Some(items) = whole.get("items").and_then(Value::as_list) else { return Vec::new() };
                KeywordRule::Subschemas(Subschemas::AdditionalItems(items.len(), node))
            }
            ("dependencies", Value::Map(entries)) => {
                let (mut needs, mut dependent) = (Vec::new(), Vec::new());
                for (name, entry) in entries.iter() {
                    match entry.as_list() {
                        Some(names) => needs.push((name.as_str(), texts(names))),
                        None => dependent
                            .push((name.as_str(), self.intern_node(at.child_location(name.as_str(), entry)))),
                    }
                }
                return vec![
                    KeywordRule::Assertion(Assertion::DependentRequired(needs)),
                    KeywordRule::Subschemas(Subschemas::Dependent(dependent)),
                ];
            }
            // Definitions are compiled even if no reference points to them.
            ("definitions", Value::Map(schemas)) => {
                self.by_name(at, schemas);
                return Vec::new();
            }
            _ => return Vec::new(),
        }]
    }

    /// Compiles an assertion: a keyword without subschemas.
    fn assertion(&mut self, key: &str, value: &'b Value, whole: &'b Map) -> Option<Assertion<'b>> {
        let least = |counted| Some(Assertion::Min(counted, numbers::float(value)?));
        let most = |counted| Some(Assertion::Max(counted, numbers::float(value)?));
        match (key, value) {
            ("type", Value::Str(name)) => Some(Assertion::Type(vec![name])),
            ("type", Value::List(names)) => Some(Assertion::Type(texts(names))),
            ("enum", Value::List(values)) => Some(Assertion::Enum(values, allowed(values))),
            ("const", value) => Some(Assertion::Const(value, allowed(std::slice::from_ref(value)))),
            ("pattern", Value::Str(written)) => self.pattern(written).map(Assertion::Pattern),
            ("format", Value::Str(name)) => self.format(name),
            ("minimum", limit) => Some(Assertion::Minimum(limit)),
            ("maximum", limit) => Some(Assertion::Maximum(limit)),
            ("exclusiveMinimum", limit) => Some(Assertion::ExclusiveMinimum(limit)),
            ("exclusiveMaximum", limit) => Some(Assertion::ExclusiveMaximum(limit)),
            ("multipleOf", of) => Some(Assertion::MultipleOf(of)),
            ("minLength", _) => least(CountedUnit::Characters),
            ("maxLength", _) => most(CountedUnit::Characters),
            ("minItems", _) => least(CountedUnit::Items),
            ("maxItems", _) => most(CountedUnit::Items),
            ("minProperties", _) => least(CountedUnit::Fields),
            ("maxProperties", _) => most(CountedUnit::Fields),
            ("uniqueItems", Value::Bool(true)) => Some(Assertion::Unique),
            ("required", Value::List(names)) => Some(Assertion::Required(texts(names))),
            ("additionalProperties", Value::Bool(false)) => {
                Some(Assertion::NoAdditionalFields(self.additional_fields(whole)))
            }
            ("additionalItems", Value::Bool(false)) => whole
                .get("items")
                .and_then(Value::as_list)
                .map(|items| Assertion::NoAdditionalItems(items.len())),
            _ => None,
        }
    }

    fn list(&mut self, at: &KeywordLocation<'b>, schemas: &'b [Value]) -> Vec<NodeId> {
        let schemas = schemas.iter().enumerate();
        schemas
            .map(|(index, schema)| self.intern_node(at.child_location(&index.to_string(), schema)))
            .collect()
    }

    fn by_name(&mut self, at: &KeywordLocation<'b>, schemas: &'b Map) -> Vec<(&'b str, NodeId)> {
        let schemas = schemas.iter();
        schemas
            .map(|(name, schema)| (name.as_str(), self.intern_node(at.child_location(name.as_str(), schema))))
            .collect()
    }

    /// Compiles an inline `$schemaRef`.
    fn inline(&mut self, file: &'b str, map: &'b Map, pointer: &str) {
        if let Some(value @ Value::Map(_)) = map.get("$schemaRef") {
            self.intern_node(SchemaLocation { file, pointer: child_pointer(pointer, "$schemaRef"), value });
        }
    }

    /// Compiles all patterns of a schema, including those that are not enforced.
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
    /// flags of the first pattern apply to all of them.
    fn additional_fields(&mut self, whole: &'b Map) -> AdditionalFields<'b> {
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
        AdditionalFields { named, patterns }
    }

    fn format(&self, name: &'b str) -> Option<Assertion<'b>> {
        if self.formats == Formats::Ignored {
            return None;
        }
        Some(Assertion::Format(name, StringFormat::named(name)?))
    }
}

/// The location of a keyword.
struct KeywordLocation<'b> {
    file: &'b str,
    pointer: String,
}

impl<'b> KeywordLocation<'b> {
    fn place(&self, value: &'b Value) -> SchemaLocation<'b> {
        SchemaLocation { file: self.file, pointer: self.pointer.clone(), value }
    }

    fn child_location(&self, step: &str, value: &'b Value) -> SchemaLocation<'b> {
        SchemaLocation { file: self.file, pointer: child_pointer(&self.pointer, step), value }
    }
}

/// The distinct values.
fn allowed(values: &[Value]) -> AllowedValues {
    let mut seen = BTreeSet::new();
    AllowedValues(values.iter().filter(|value| seen.insert(tree::text(value))).map(tree::plain).collect())
}

fn texts(values: &[Value]) -> Vec<&str> {
    values.iter().filter_map(Value::as_str).collect()
}
