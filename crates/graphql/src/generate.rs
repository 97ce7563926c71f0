//! Generates Rust types for the answers to GraphQL requests. The result is committed; `cargo xtask generate` writes it.
//!
//! Fragments that several requests spread are [`SharedFragments`]: their types are generated once and
//! embedded in the types of the requests.

mod interface;
mod names;
mod shared_fragments;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use apollo_compiler::Node;
use apollo_compiler::executable::{ExecutableDocument, Field, Selection, SelectionSet};

use crate::document::Document;
use crate::failure::{Code, Failure};
use crate::limits::QueryLimits;
use crate::schema::{Kind, Scalar, Schema, Shape, TypeId};

use names::{camel, pascal, snake, unversioned};
pub use shared_fragments::{SharedFragment, SharedFragments};

/// Allows a lint that the field names of the data violate.
const ALLOW: &str = "#![allow(clippy::struct_field_names, reason = \"the names are those of the data\")]\n\n";

/// The Rust source for the answers to the operations of `query`, all of which must be named. `package` is the
/// crate that the source belongs to.
pub fn query(
    schema: &Schema,
    query: &str,
    shared: &SharedFragments,
    package: &str,
) -> Result<String, Vec<Failure>> {
    let spread = shared.spread_by(query).map_err(|why| vec![failure(why)])?;
    let needed = shared.needed_by(query).map_err(|why| vec![failure(why)])?;
    let text = needed.iter().fold(query.to_owned(), |text, fragment| format!("{text}\n{}", fragment.text));
    let document = Document::prepare(schema, &text, &QueryLimits::default())?;
    let head = format!(
        "//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.\n\
         {ALLOW}use qontract_graphql::{{Operation, QuerySource}};\n{}use serde::Deserialize;\n",
        shared_fragments::imports(&spread, package),
    );
    let operations = document.executable().operations.iter().filter_map(|operation| operation.name.as_ref());
    let mut taken: HashSet<String> = operations.map(ToString::to_string).collect();
    taken.extend(needed.iter().map(|fragment| fragment.name.clone()));
    let mut generator = Generator {
        schema,
        document: document.executable(),
        shared: needed.iter().map(|fragment| fragment.name.as_str()).collect(),
        types: Vec::new(),
        used_names: taken,
        types_by_signature: HashMap::new(),
    };
    for operation in document.executable().operations.iter() {
        let Some(name) = &operation.name else {
            return Err(vec![failure("an operation has no name")]);
        };
        let fields = generator.fields(schema.query(), &[&operation.selection_set]);
        let index = generator
            .structure(name, &format!("The answer to `{name}`."), &fields)
            .map_err(|failure| vec![failure])?;
        let _ = write!(
            generator.types[index],
            "\nimpl Operation for {name} {{\n    \
             const SOURCE: QuerySource = QuerySource::new(\"{name}\", include_str!(\"query.graphql\"), &[{}]);\n}}\n",
            shared_fragments::texts(&spread),
        );
    }
    Ok(head + &generator.types.concat())
}

/// The Rust source for the shared fragments of one package: a type for each, with its text.
pub fn fragments(schema: &Schema, shared: &SharedFragments, package: &str) -> Result<String, Vec<Failure>> {
    let document = shared.document(schema).map_err(|failure| vec![failure])?;
    let head = format!(
        "//! Types of the fragments in `fragments/`, made by `cargo xtask generate`: change the fragments, not this file.\n\
         {ALLOW}use serde::Deserialize;\n",
    );
    let mut generator = Generator {
        schema,
        document: &document,
        shared: shared.iter().map(|fragment| fragment.name.as_str()).collect(),
        types: Vec::new(),
        used_names: shared.iter().map(|fragment| fragment.name.clone()).collect(),
        types_by_signature: HashMap::new(),
    };
    for SharedFragment { name, text, file, .. } in
        shared.iter().filter(|fragment| fragment.package == package)
    {
        let Some(fragment) = document.fragments.get(name.as_str()) else { continue };
        let on = schema.type_id(fragment.type_condition()).unwrap_or_default();
        if !matches!(schema.type_(on).kind, Kind::Object) {
            return Err(vec![failure(format!("the fragment `{name}` is not on an object type"))]);
        }
        let fields = generator.fields(on, &[&fragment.selection_set]);
        let doc = format!("The fragment `{name}`: a `{}`.", schema.type_(on).name);
        let index = generator.structure(name, &doc, &fields).map_err(|failure| vec![failure])?;
        let needed = shared.needed_by(text).map_err(|why| vec![failure(why)])?;
        let files = [file].into_iter().chain(needed.iter().map(|fragment| &fragment.file));
        let texts: Vec<String> = files.map(|file| format!("include_str!(\"fragments/{file}\")")).collect();
        let _ = write!(
            generator.types[index],
            "\nimpl {name} {{\n    /// The text of the fragment, and those of the fragments that it spreads.\n    \
             pub const FRAGMENTS: &'static [&'static str] = &[{}];\n}}\n",
            texts.join(", ")
        );
    }
    Ok(head + &generator.types.concat())
}

fn failure(message: impl Into<String>) -> Failure {
    Failure::new(Code::ValidationFailed, message.into())
}

/// A field of an answer: its key, the nodes that select it, and whether it may be missing.
struct RequestedField<'d> {
    key: String,
    nodes: Vec<&'d Node<Field>>,
    conditional: bool,
}

/// The fields of a selection, and the shared fragments that it spreads.
#[derive(Default)]
struct SelectedFields<'d> {
    fields: Vec<RequestedField<'d>>,
    shared: BTreeSet<&'d str>,
    /// The fragments that are being expanded.
    expanding: HashSet<&'d str>,
    /// Whether the fields of shared fragments are collected as well.
    expand: bool,
}

struct Generator<'d> {
    schema: &'d Schema,
    document: &'d ExecutableDocument,
    /// Names of the shared fragments, whose types exist elsewhere.
    shared: BTreeSet<&'d str>,
    /// The source of each type, outer types first.
    types: Vec<String>,
    /// Names of Rust types that are in use.
    used_names: HashSet<String>,
    /// Rust types by the signature of their selection: equal selections share one type.
    types_by_signature: HashMap<String, String>,
}

impl<'d> Generator<'d> {
    fn fields(&self, type_: TypeId, sets: &[&'d SelectionSet]) -> SelectedFields<'d> {
        let mut collected = SelectedFields::default();
        for set in sets {
            self.collect(type_, set, false, &mut collected);
        }
        collected
    }

    /// The response keys that a shared fragment adds.
    fn keys(&self, name: &str) -> Vec<String> {
        let Some(fragment) = self.document.fragments.get(name) else { return Vec::new() };
        let on = self.schema.type_id(fragment.type_condition()).unwrap_or_default();
        let mut collected = SelectedFields { expand: true, ..SelectedFields::default() };
        self.collect(on, &fragment.selection_set, false, &mut collected);
        collected.fields.into_iter().map(|field| field.key).collect()
    }

    fn collect(
        &self,
        type_: TypeId,
        set: &'d SelectionSet,
        conditional: bool,
        collected: &mut SelectedFields<'d>,
    ) {
        let applies = |name: &str| {
            let id = self.schema.type_id(name);
            id.is_some_and(|id| id == type_ || self.schema.type_(id).possible.contains(&type_))
        };
        for selection in &set.selections {
            let has = |name: &str| selection.directives().has(name);
            let conditional = conditional || has("skip") || has("include");
            match selection {
                Selection::Field(field) => {
                    let key = field.response_key().as_str();
                    match collected.fields.iter_mut().find(|known| known.key == key) {
                        Some(known) => {
                            known.nodes.push(field);
                            known.conditional &= conditional;
                        }
                        None => collected.fields.push(RequestedField {
                            key: key.to_owned(),
                            nodes: vec![field],
                            conditional,
                        }),
                    }
                }
                Selection::InlineFragment(inline) => {
                    if inline.type_condition.as_deref().is_none_or(applies) {
                        self.collect(type_, &inline.selection_set, conditional, collected);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name.as_str();
                    let Some(fragment) = self.document.fragments.get(name) else { continue };
                    let is_of_type = self.schema.type_id(fragment.type_condition()) == Some(type_);
                    if is_of_type && !conditional && !collected.expand && self.shared.contains(name) {
                        collected.shared.insert(name);
                    } else if applies(fragment.type_condition()) && collected.expanding.insert(name) {
                        self.collect(type_, &fragment.selection_set, conditional, collected);
                        collected.expanding.remove(name);
                    }
                }
            }
        }
    }

    /// The selection on a type as text, down to the leaf fields.
    fn signature(&self, id: TypeId, sets: &[&'d SelectionSet]) -> String {
        let type_ = self.schema.type_(id);
        let members = if type_.possible.is_empty() { vec![id] } else { type_.possible.clone() };
        let mut text = type_.name.to_string();
        for member in members {
            let _ = write!(text, "{{{}", self.schema.type_(member).name);
            let SelectedFields { fields, shared, .. } = self.fields(member, sets);
            for name in shared {
                let _ = write!(text, ",...{name}");
            }
            for field in fields {
                let below = self.below(&field);
                let _ = write!(text, ",{}={}:{}{below}", field.key, field.nodes[0].name, field.conditional);
            }
            text.push('}');
        }
        text
    }

    /// Writes a struct and the types of its fields; returns its index in `types`.
    fn structure(&mut self, name: &str, doc: &str, selected: &SelectedFields<'d>) -> Result<usize, Failure> {
        self.refuse_overlaps(selected)?;
        let index = self.types.len();
        self.types.push(String::new());
        let is_camel = selected.fields.iter().all(|field| camel(&snake(&field.key)) == field.key);
        let mut lines = String::new();
        for fragment in &selected.shared {
            let field = snake(fragment);
            let _ = writeln!(
                lines,
                "    /// The fragment `{fragment}`.\n    #[serde(flatten)]\n    pub {field}: {fragment},"
            );
        }
        for field in &selected.fields {
            let rust = snake(&field.key);
            let mut attributes = Vec::new();
            if !is_camel && rust.trim_start_matches("r#") != field.key {
                attributes.push(format!("rename = \"{}\"", field.key));
            }
            let mut type_ = self.type_(name, field)?;
            // An option may be missing.
            if field.conditional && !type_.starts_with("Option<") {
                type_ = format!("Option<{type_}>");
            }
            let field_name = &field.nodes[0].name;
            let _ = writeln!(lines, "    /// `{field_name}`");
            if !attributes.is_empty() {
                let _ = writeln!(lines, "    #[serde({})]", attributes.join(", "));
            }
            let _ = writeln!(lines, "    pub {rust}: {type_},");
        }
        let is_renamed =
            selected.fields.iter().any(|field| snake(&field.key).trim_start_matches("r#") != field.key);
        let rename = if is_camel && is_renamed { "#[serde(rename_all = \"camelCase\")]\n" } else { "" };
        let derive = "#[derive(Clone, Debug, PartialEq, Deserialize)]";
        self.types[index] = format!("\n/// {doc}\n{derive}\n{rename}pub struct {name} {{\n{lines}}}\n");
        Ok(index)
    }

    /// A key is read by one type: either by a shared fragment, or by the type that contains it.
    fn refuse_overlaps(&self, selected: &SelectedFields<'d>) -> Result<(), Failure> {
        let mut taken: HashSet<String> = selected.fields.iter().map(|field| field.key.clone()).collect();
        for fragment in &selected.shared {
            for key in self.keys(fragment) {
                if taken.contains(&key) {
                    let text = format!(
                        "`{key}` is selected twice, once by the shared fragment `{fragment}`: give it an alias"
                    );
                    return Err(failure(text));
                }
                taken.insert(key);
            }
        }
        Ok(())
    }

    /// A name for the Rust type of a GraphQL type: its own name if it is free, else the path to it.
    fn name(&mut self, own: &str, way: String) -> String {
        let own = unversioned(&pascal(own)).to_owned();
        let name = if self.used_names.contains(&own) { way } else { own };
        self.used_names.insert(name.clone());
        name
    }

    /// The Rust type of a field; the types that it needs are written first.
    fn type_(&mut self, parent: &str, field: &RequestedField<'d>) -> Result<String, Failure> {
        let node = field.nodes[0];
        let schema = self.schema;
        let id = schema.type_id(node.ty().inner_named_type()).unwrap_or_default();
        let shape = Shape { named: id, list: node.ty().is_list(), required: node.ty().is_non_null() };
        let sets: Vec<&'d SelectionSet> = field.nodes.iter().map(|node| &node.selection_set).collect();
        let inner = match &schema.type_(id).kind {
            Kind::Scalar(Scalar::Int) => "i32".to_owned(),
            Kind::Scalar(Scalar::Float) => "f64".to_owned(),
            Kind::Scalar(Scalar::Boolean) => "bool".to_owned(),
            // JSON is sent as a string that contains JSON.
            Kind::Scalar(Scalar::String | Scalar::Json) | Kind::Enum => "String".to_owned(),
            Kind::Object | Kind::Interface(_) => {
                let signature = self.signature(id, &sets);
                let selected = self.fields(id, &sets);
                if let (true, Some(fragment), 1) =
                    (selected.fields.is_empty(), selected.shared.first(), selected.shared.len())
                {
                    (*fragment).to_owned()
                } else if let Some(name) = self.types_by_signature.get(&signature) {
                    name.clone()
                } else {
                    let name = self.name(&schema.type_(id).name, format!("{parent}{}", pascal(&field.key)));
                    if matches!(schema.type_(id).kind, Kind::Object) {
                        self.structure(&name, &format!("A `{}`.", schema.type_(id).name), &selected)?;
                    } else {
                        self.interface(&name, id, &sets)?;
                    }
                    self.types_by_signature.insert(signature, name.clone());
                    name
                }
            }
        };
        let listed = if shape.list { format!("Vec<{inner}>") } else { inner };
        Ok(if shape.required { listed } else { format!("Option<{listed}>") })
    }
}
