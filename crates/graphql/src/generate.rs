//! A request → Rust types for its answers. The result is committed; `cargo xtask generate` makes it.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use apollo_compiler::Node;
use apollo_compiler::executable::{ExecutableDocument, Field, Selection, SelectionSet};

use crate::document::Document;
use crate::failure::{Code, Failure};
use crate::limits::Limits;
use crate::schema::{Kind, Scalar, Schema, Shape, TypeId};

/// The Rust source for the answers to the operations of `query`, each of which has a name.
pub fn rust(schema: &Schema, query: &str) -> Result<String, Vec<Failure>> {
    let document = Document::prepare(schema, query, &Limits::default())?;
    let mut out = String::from(
        "//! Types of the answers to `query.graphql`, made by `cargo xtask generate`: change the request, not this file.\n\
         #![allow(clippy::struct_field_names, reason = \"the names are those of the data\")]\n\n\
         use serde::Deserialize;\n\n/// The request.\npub const QUERY: &str = include_str!(\"query.graphql\");\n",
    );
    let operations = document.executable().operations.iter().filter_map(|operation| operation.name.as_ref());
    let taken = operations.map(ToString::to_string).collect();
    let mut generator =
        Generator { schema, document: document.executable(), out: &mut out, taken, known: HashMap::new() };
    for operation in document.executable().operations.iter() {
        let Some(name) = &operation.name else {
            return Err(vec![Failure::new(
                Code::ValidationFailed,
                "an operation without a name has no type",
            )]);
        };
        let fields = generator.fields(schema.query(), &[&operation.selection_set]);
        generator
            .structure(name, &format!("The answer to `{name}`."), &fields)
            .map_err(|failure| vec![failure])?;
        let _ = write!(
            generator.out,
            "\nimpl qontract_graphql::Operation for {name} {{\n    const NAME: &'static str = \"{name}\";\n    \
             const TEXT: &'static str = QUERY;\n}}\n"
        );
    }
    Ok(out)
}

/// A field of an answer: its key, what asks for it, and whether it may be left out.
struct Asked<'d> {
    key: String,
    nodes: Vec<&'d Node<Field>>,
    conditional: bool,
}

/// Fields found so far, and the fragments that are being looked into.
#[derive(Default)]
struct Collected<'d> {
    fields: Vec<Asked<'d>>,
    open: HashSet<&'d str>,
}

struct Generator<'d> {
    schema: &'d Schema,
    document: &'d ExecutableDocument,
    out: &'d mut String,
    /// Names of Rust types that are in use.
    taken: HashSet<String>,
    /// Rust types by what they are of and what is asked of it: what is asked twice is one type.
    known: HashMap<String, String>,
}

impl<'d> Generator<'d> {
    fn fields(&self, type_: TypeId, sets: &[&'d SelectionSet]) -> Vec<Asked<'d>> {
        let mut collected = Collected::default();
        for set in sets {
            self.collect(type_, set, false, &mut collected);
        }
        collected.fields
    }

    fn collect(
        &self,
        type_: TypeId,
        set: &'d SelectionSet,
        conditional: bool,
        collected: &mut Collected<'d>,
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
                        None => collected.fields.push(Asked {
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
                    let Some(fragment) = self.document.fragments.get(&spread.fragment_name) else { continue };
                    if applies(fragment.type_condition()) && collected.open.insert(&spread.fragment_name) {
                        self.collect(type_, &fragment.selection_set, conditional, collected);
                        collected.open.remove(spread.fragment_name.as_str());
                    }
                }
            }
        }
    }

    /// What is asked of a type, down to the last field.
    fn signature(&self, id: TypeId, sets: &[&'d SelectionSet]) -> String {
        let type_ = self.schema.type_(id);
        let members = if type_.possible.is_empty() { vec![id] } else { type_.possible.clone() };
        let mut text = type_.name.to_string();
        for member in members {
            let _ = write!(text, "{{{}", self.schema.type_(member).name);
            for field in self.fields(member, sets) {
                let inner = self.schema.type_id(field.nodes[0].ty().inner_named_type()).unwrap_or_default();
                let below: Vec<&'d SelectionSet> =
                    field.nodes.iter().map(|node| &node.selection_set).collect();
                let below = if below.iter().all(|set| set.selections.is_empty()) {
                    String::new()
                } else {
                    self.signature(inner, &below)
                };
                let _ = write!(text, ",{}={}:{}{below}", field.key, field.nodes[0].name, field.conditional);
            }
            text.push('}');
        }
        text
    }

    fn structure(&mut self, name: &str, told: &str, fields: &[Asked<'d>]) -> Result<(), Failure> {
        let mut lines = String::new();
        for field in fields {
            let rust = snake(&field.key);
            let mut attributes = Vec::new();
            if rust.trim_start_matches("r#") != field.key {
                attributes.push(format!("rename = \"{}\"", field.key));
            }
            let mut type_ = self.type_(name, field)?;
            if field.conditional {
                attributes.push("default".to_owned());
                if !type_.starts_with("Option<") {
                    type_ = format!("Option<{type_}>");
                }
            }
            let asked = &field.nodes[0].name;
            let _ = writeln!(lines, "    /// `{asked}`");
            if !attributes.is_empty() {
                let _ = writeln!(lines, "    #[serde({})]", attributes.join(", "));
            }
            let _ = writeln!(lines, "    pub {rust}: {type_},");
        }
        let derive = "#[derive(Clone, Debug, PartialEq, Deserialize)]";
        let _ = write!(self.out, "\n/// {told}\n{derive}\npub struct {name} {{\n{lines}}}\n");
        Ok(())
    }

    /// A name for the Rust type of a GraphQL type: its own if it is free, else the way to it.
    fn name(&mut self, own: &str, way: String) -> String {
        let own = unversioned(&pascal(own)).to_owned();
        let name = if self.taken.contains(&own) { way } else { own };
        self.taken.insert(name.clone());
        name
    }

    /// The Rust type of a field; the types that it needs are written first.
    fn type_(&mut self, parent: &str, field: &Asked<'d>) -> Result<String, Failure> {
        let node = field.nodes[0];
        let schema = self.schema;
        let id = schema.type_id(node.ty().inner_named_type()).unwrap_or_default();
        let shape = Shape { named: id, list: node.ty().is_list(), required: node.ty().is_non_null() };
        let sets: Vec<&'d SelectionSet> = field.nodes.iter().map(|node| &node.selection_set).collect();
        let inner = match &schema.type_(id).kind {
            Kind::Scalar(Scalar::Int) => "i32".to_owned(),
            Kind::Scalar(Scalar::Float) => "f64".to_owned(),
            Kind::Scalar(Scalar::Boolean) => "bool".to_owned(),
            // JSON comes as text that holds JSON.
            Kind::Scalar(Scalar::String | Scalar::Json) | Kind::Enum => "String".to_owned(),
            Kind::Object | Kind::Interface(_) => {
                let asked = self.signature(id, &sets);
                if let Some(name) = self.known.get(&asked) {
                    name.clone()
                } else {
                    let name = self.name(&schema.type_(id).name, format!("{parent}{}", pascal(&field.key)));
                    if matches!(schema.type_(id).kind, Kind::Object) {
                        let fields = self.fields(id, &sets);
                        self.structure(&name, &format!("A `{}`.", schema.type_(id).name), &fields)?;
                    } else {
                        self.interface(&name, id, &sets)?;
                    }
                    self.known.insert(asked, name.clone());
                    name
                }
            }
        };
        let listed = if shape.list { format!("Vec<{inner}>") } else { inner };
        Ok(if shape.required { listed } else { format!("Option<{listed}>") })
    }

    /// One struct if all types of an interface are asked the same, else an enum by `__typename`.
    fn interface(&mut self, name: &str, id: TypeId, sets: &[&'d SelectionSet]) -> Result<(), Failure> {
        let schema = self.schema;
        let told = format!("A `{}`.", schema.type_(id).name);
        let keys = |fields: &[Asked<'_>]| fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>();
        let possible: Vec<(TypeId, Vec<Asked<'d>>)> =
            schema.type_(id).possible.iter().map(|type_| (*type_, self.fields(*type_, sets))).collect();
        let Some((_, first)) = possible.first() else {
            return self.structure(name, &told, &[]);
        };
        if possible.iter().all(|(_, fields)| keys(fields) == keys(first)) {
            return self.structure(name, &told, first);
        }
        if let Some((type_, _)) =
            possible.iter().find(|(_, fields)| !keys(fields).contains(&"__typename".to_owned()))
        {
            let message = format!(
                "`{}` is asked for different fields by type: ask for `__typename` too",
                schema.type_(*type_).name
            );
            return Err(Failure::new(Code::ValidationFailed, message));
        }
        let mut variants = String::new();
        for (type_, mut fields) in possible {
            fields.retain(|field| field.key != "__typename");
            let type_name = &schema.type_(type_).name;
            let variant = unversioned(&pascal(type_name)).to_owned();
            let variant =
                variant.strip_prefix(name).filter(|rest| !rest.is_empty()).unwrap_or(&variant).to_owned();
            let inner = self.name(type_name, format!("{name}{variant}"));
            self.structure(&inner, &format!("A `{type_name}`."), &fields)?;
            let _ = write!(
                variants,
                "    /// `{type_name}`\n    #[serde(rename = \"{type_name}\")]\n    {variant}({inner}),\n"
            );
        }
        variants.push_str("    /// A type that is not known here.\n    #[serde(other)]\n    Other,\n");
        let derive = "#[derive(Clone, Debug, PartialEq, Deserialize)]\n#[serde(tag = \"__typename\")]";
        let _ = write!(self.out, "\n/// {told}\n{derive}\npub enum {name} {{\n{variants}}}\n");
        Ok(())
    }
}

/// `apps_v1` → `AppsV1`
fn pascal(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.map(upper).collect()
}

/// `AppV1` → `App`
fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|one: char| one.is_ascii_digit());
    bare.strip_suffix('V').filter(|rest| bare.len() < name.len() && !rest.is_empty()).unwrap_or(name)
}

/// `serverUrl` → `server_url`, `type` → `r#type`
fn snake(name: &str) -> String {
    const KEYWORDS: [&str; 46] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
        "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
        "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static",
        "struct", "trait", "true", "try", "type", "typeof", "unsafe", "use", "virtual", "where", "while",
    ];
    let mut out = String::new();
    let mut lower = false;
    for one in name.trim_start_matches('_').chars() {
        if one.is_uppercase() && lower {
            out.push('_');
        }
        lower = one.is_lowercase() || one.is_numeric();
        out.extend(one.to_lowercase());
    }
    if KEYWORDS.contains(&out.as_str()) { format!("r#{out}") } else { out }
}
