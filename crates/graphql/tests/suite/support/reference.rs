//! The reference implementation: a slow and simple second executor, which shares no code with the first. It
//! reads the bundle as plain JSON and the request as a syntax tree, and follows the algorithm of the GraphQL
//! specification step by step.

use std::collections::BTreeSet;

use apollo_compiler::ast::{self, Definition, Selection};
use apollo_compiler::{Name, Node};
use serde_json::{Map, Value, json};

use super::filter;
use super::script::{FILE, inspect, number_text, stringify, to_number};

/// A value in a response, with object fields in order.
#[derive(Clone, Debug)]
pub enum Out {
    Null,
    Text(String),
    Raw(String),
    List(Vec<Out>),
    Object(Vec<(String, Out)>),
}

/// An error: message, path, and the content of `extensions`.
pub struct ExecutionError {
    pub message: String,
    pub code: &'static str,
    pub type_: Option<String>,
}

impl ExecutionError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: "INTERNAL_SERVER_ERROR", type_: None }
    }
}

/// The path of a field in the response.
type ResponsePath = Vec<Value>;

/// A bundle as plain JSON.
pub struct Reference {
    pub data: Map<String, Value>,
    pub resources: Map<String, Value>,
    pub confs: Vec<Value>,
}

/// The execution of one request.
struct ReferenceRun<'r> {
    reference: &'r Reference,
    document: &'r ast::Document,
    variables: &'r Map<String, Value>,
    errors: Vec<Value>,
    schemas: Vec<String>,
}

/// The error was propagated to the parent.
struct NullPropagated;

impl Reference {
    /// Parses a bundle. The path of each datafile is added as its last key.
    pub fn read(bundle: &[u8]) -> Self {
        let bundle: Value = serde_json::from_slice(bundle).unwrap();
        let section = |name: &str| {
            let mut files = bundle[name].as_object().unwrap().clone();
            for (path, file) in &mut files {
                file["path"] = json!(path);
                if name == "data" {
                    file[FILE] = json!(true);
                }
            }
            files
        };
        let graphql = &bundle["graphql"];
        let confs = graphql.as_array().or_else(|| graphql["confs"].as_array()).unwrap().clone();
        Self { data: section("data"), resources: section("resources"), confs }
    }

    pub fn conf(&self, name: &str) -> Option<&Value> {
        self.confs.iter().rfind(|conf| conf["name"] == name)
    }

    /// Executes a valid request and returns the response body.
    pub fn answer(&self, query: &str, variables: &Map<String, Value>) -> String {
        let document =
            ast::Document::parse(query, "q").unwrap_or_else(|error| panic!("{query}: {}", error.errors));
        let operation = document.definitions.iter().find_map(|one| one.as_operation_definition()).unwrap();
        let mut given = variables.clone();
        for variable in &operation.variables {
            if let (Some(default), false) =
                (&variable.default_value, given.contains_key(variable.name.as_str()))
            {
                given.insert(variable.name.to_string(), literal(default, &Map::new()).unwrap());
            }
        }
        let mut run = ReferenceRun {
            reference: self,
            document: &document,
            variables: &given,
            errors: vec![],
            schemas: vec![],
        };
        let sets = [operation.selection_set.as_slice()];
        let data = run.object("Query", &Value::Null, &sets, &vec![]).unwrap_or(Out::Null);
        let mut text = String::from("{");
        if !run.errors.is_empty() {
            text += &format!("\"errors\":{},", ordered_errors(&run.errors));
        }
        text += &format!("\"data\":{},\"extensions\":{}}}\n", pruned(data).print(), schemas(&run.schemas));
        text
    }

    /// The target of a reference, which is an object whose only key is `$ref`.
    fn reference(value: &Value) -> Option<&Value> {
        value.as_object().filter(|map| map.len() == 1)?.get("$ref")
    }

    fn target(&self, reference: &Value) -> Result<Value, ExecutionError> {
        let Some(text) = reference.as_str() else { return Ok(Value::Null) };
        let path = text.split('$').next().unwrap();
        match self.data.get(path) {
            None => Ok(Value::Null),
            Some(_) if path != text => Err(ExecutionError::new("Invalid JSON pointer.")),
            Some(file) => Ok(file.clone()),
        }
    }

    /// Resolves the value of a key; `None` is a missing key.
    pub fn follow(&self, raw: Option<&Value>) -> Result<Value, ExecutionError> {
        let null = || ExecutionError::new("Cannot read properties of null (reading 'constructor')");
        match raw {
            None => Ok(Value::Null),
            Some(Value::Null) => Err(null()),
            Some(Value::Array(items)) => {
                if items.contains(&Value::Null) {
                    return Err(null());
                }
                let references: Vec<_> = items.iter().filter_map(Self::reference).collect();
                if references.len() < items.len() {
                    return Ok(Value::Array(items.clone()));
                }
                references.into_iter().map(|reference| self.target(reference)).collect()
            }
            Some(value) => match Self::reference(value) {
                Some(reference) => self.target(reference),
                None => Ok(value.clone()),
            },
        }
    }

    fn points_at(value: &Value, keys: &[&str], path: &str) -> bool {
        match (value, keys) {
            (Value::Array(items), _) => items.iter().any(|item| Self::points_at(item, keys, path)),
            (Value::Object(map), []) => map.get("$ref").is_some_and(|target| target == path),
            (Value::Object(map), [key, rest @ ..]) => {
                map.get(*key).is_some_and(|value| Self::points_at(value, rest, path))
            }
            _ => false,
        }
    }

    fn type_of(&self, conf: &Value, source: &Value) -> Option<String> {
        let resolve = &conf["interfaceResolve"];
        if resolve["strategy"] == "fieldMap" {
            let key = match &source[resolve["field"].as_str()?] {
                Value::Null if source.get(resolve["field"].as_str()?).is_none() => return None,
                Value::String(text) => text.clone(),
                Value::Array(_) | Value::Object(_) => return None,
                Value::Number(number) => number_text(number),
                other => other.to_string(),
            };
            return resolve["fieldMap"][key].as_str().map(str::to_owned);
        }
        let schema = source.get("$schema")?.as_str()?;
        let found = self.confs.iter().find(|conf| conf["datafile"] == schema)?;
        if found["isInterface"] == true {
            return self.type_of(found, source);
        }
        found["name"].as_str().map(str::to_owned)
    }
}

impl<'r> ReferenceRun<'r> {
    fn object(
        &mut self,
        type_: &str,
        source: &Value,
        sets: &[&'r [Selection]],
        path: &ResponsePath,
    ) -> Result<Out, NullPropagated> {
        let mut grouped: Vec<(String, Vec<&'r ast::Field>)> = Vec::new();
        let mut visited = BTreeSet::new();
        for set in sets {
            self.collect(type_, set, &mut visited, &mut grouped);
        }
        let mut fields = Vec::new();
        for (key, nodes) in grouped {
            let mut here = path.clone();
            here.push(json!(key));
            fields.push((key, self.field(type_, source, &nodes, &here)?));
        }
        Ok(Out::Object(fields))
    }

    fn collect(
        &self,
        type_: &str,
        set: &'r [Selection],
        visited: &mut BTreeSet<String>,
        grouped: &mut Vec<(String, Vec<&'r ast::Field>)>,
    ) {
        for selection in set {
            let directives = match selection {
                Selection::Field(field) => &field.directives,
                Selection::FragmentSpread(spread) => &spread.directives,
                Selection::InlineFragment(inline) => &inline.directives,
            };
            let says = |name: &str| {
                let directive = directives.get(name)?;
                literal(&directive.arguments[0].value, self.variables)?.as_bool()
            };
            if says("skip") == Some(true) || says("include") == Some(false) {
                continue;
            }
            match selection {
                Selection::Field(field) => {
                    let key = field.alias.as_ref().unwrap_or(&field.name).to_string();
                    match grouped.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, nodes)) => nodes.push(field),
                        None => grouped.push((key, vec![field])),
                    }
                }
                Selection::InlineFragment(inline) => {
                    if inline.type_condition.as_ref().is_none_or(|name| self.is_a(type_, name)) {
                        self.collect(type_, &inline.selection_set, visited, grouped);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let name = spread.fragment_name.to_string();
                    let found = self.document.definitions.iter().find_map(|definition| match definition {
                        Definition::FragmentDefinition(fragment) if fragment.name == spread.fragment_name => {
                            Some(fragment)
                        }
                        _ => None,
                    });
                    let Some(fragment) = found else { continue };
                    if visited.insert(name) && self.is_a(type_, &fragment.type_condition) {
                        self.collect(type_, &fragment.selection_set, visited, grouped);
                    }
                }
            }
        }
    }

    fn is_a(&self, type_: &str, condition: &str) -> bool {
        if type_ == condition {
            return true;
        }
        let Some(conf) = self.reference.conf(type_) else { return false };
        let own = conf["interface"].as_str();
        let has_file = |conf: &Value| conf["datafile"].is_string();
        let is_file = has_file(conf) || own.and_then(|own| self.reference.conf(own)).is_some_and(has_file);
        own == Some(condition)
            || is_file && condition == "DatafileObject_v1" && self.reference.conf(condition).is_some()
    }

    fn field(
        &mut self,
        type_: &str,
        source: &Value,
        nodes: &[&'r ast::Field],
        path: &ResponsePath,
    ) -> Result<Out, NullPropagated> {
        let name = nodes[0].name.as_str();
        if name == "__typename" {
            return Ok(Out::Text(type_.to_owned()));
        }
        let conf = self.reference.conf(type_).unwrap_or_else(|| panic!("{type_}"));
        let fields = conf["fields"].as_array().unwrap();
        let field =
            fields.iter().rfind(|field| field["name"] == name).unwrap_or_else(|| panic!("{type_}.{name}"));
        let resource =
            field["isResource"] == true && field["resolveResource"] == true && field["type"] == "string";
        let (list, required) =
            (field["isList"] == true && !resource, field["isRequired"] == true && !resource);
        let inner = if resource { "Resource_v1" } else { field["type"].as_str().unwrap() };
        let mut faults = Vec::new();
        let result = match self.resolve(field, source, nodes[0]) {
            Err(fault) => {
                faults.push((fault, path.clone()));
                Err(NullPropagated)
            }
            Ok(value) => {
                let at = FieldPosition { type_, name, inner, nodes };
                self.complete(&at, (list, required), &value, path)
            }
        };
        for (fault, path) in faults {
            self.report(fault, nodes, &path);
        }
        match result {
            Err(NullPropagated) if !required => Ok(Out::Null),
            other => other,
        }
    }

    fn report(&mut self, fault: ExecutionError, nodes: &[&ast::Field], path: &ResponsePath) {
        // Locations are compared elsewhere; only their number is compared here.
        let mut error =
            json!({"message": fault.message, "path": path, "code": fault.code, "nodes": nodes.len()});
        if let Some(type_) = fault.type_ {
            error["gqlType"] = json!(type_);
        }
        self.errors.push(error);
    }

    fn resolve(&mut self, field: &Value, source: &Value, node: &ast::Field) -> Result<Value, ExecutionError> {
        let reference = self.reference;
        let name = field["name"].as_str().unwrap();
        let argument = |name: &str| {
            let given = node.arguments.iter().find(|argument| argument.name == name)?;
            literal(&given.value, self.variables).filter(|value| !value.is_null())
        };
        if let Some(schema) = field["datafileSchema"].as_str() {
            let files: Vec<&Value> =
                reference.data.values().filter(|file| file["$schema"] == schema).collect();
            if files.is_empty() {
                return Ok(json!([]));
            }
            let conf = reference.conf(field["type"].as_str().unwrap()).unwrap();
            let filter = argument("filter");
            if let Some(filter) = &filter {
                filter::check(reference, conf, filter)?;
            }
            let mut found = Vec::new();
            'files: for file in files {
                for given in node.arguments.iter().filter(|given| given.name != "filter") {
                    let value = argument(&given.name);
                    if value.is_some() && file.get(given.name.as_str()) != value.as_ref() {
                        continue 'files;
                    }
                }
                if filter.as_ref().map_or(Ok(true), |filter| filter::passes(reference, conf, filter, file))? {
                    found.push(file.clone());
                }
            }
            return Ok(Value::Array(found));
        }
        if let Some(schema) = field["synthetic"]["schema"].as_str() {
            let keys: Vec<&str> = field["synthetic"]["subAttr"].as_str().unwrap().split('.').collect();
            let Some(path) = source["path"].as_str() else { return Ok(json!([])) };
            let files = reference.data.values().filter(|file| file["$schema"] == schema);
            return Ok(files.filter(|file| Reference::points_at(file, &keys, path)).cloned().collect());
        }
        if field["isResource"] == true && field["resolveResource"] == true && field["type"] == "string" {
            let path = source[name].as_str().unwrap_or_default();
            return Ok(reference.resources.get(path).cloned().unwrap_or(Value::Null));
        }
        if field["isResource"] == true && field["type"] == "Resource_v1" {
            let text = |name| argument(name).and_then(|value| value.as_str().map(str::to_owned));
            if let Some(path) = text("path").filter(|path| !path.is_empty()) {
                return Ok(json!([reference.resources.get(&path)]));
            }
            let schema = text("schema").filter(|schema| !schema.is_empty());
            let all = reference.resources.values();
            return Ok(all
                .filter(|one| schema.as_ref().is_none_or(|name| one["$schema"] == **name))
                .cloned()
                .collect());
        }
        if let Some(schema) = source["$schema"].as_str()
            && !self.schemas.iter().any(|known| known == schema)
        {
            self.schemas.push(schema.to_owned());
        }
        if name == "schema" {
            return Ok(source["$schema"].clone());
        }
        reference.follow(source.get(name))
    }

    fn complete(
        &mut self,
        at: &FieldPosition<'_, 'r>,
        (list, required): (bool, bool),
        value: &Value,
        path: &ResponsePath,
    ) -> Result<Out, NullPropagated> {
        let place = format!("{}.{}", at.type_, at.name);
        let fail = |run: &mut Self, message: String| {
            run.report(ExecutionError::new(message), at.nodes, path);
            Err(NullPropagated)
        };
        if value.is_null() {
            if !required {
                return Ok(Out::Null);
            }
            return fail(self, format!("Cannot return null for non-nullable field {place}."));
        }
        if list {
            let Value::Array(items) = value else {
                let message = format!("Expected Iterable, but did not find one for field \"{place}\".");
                return fail(self, message);
            };
            let mut out = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let mut here = path.clone();
                here.push(json!(index));
                out.push(self.complete(at, (false, true), item, &here)?);
            }
            return Ok(Out::List(out));
        }
        if let Some(written) = scalar(at.inner, value) {
            return written.or_else(|message| fail(self, message));
        }
        let conf = self.reference.conf(at.inner).unwrap();
        let sets: Vec<&'r [Selection]> = at.nodes.iter().map(|node| node.selection_set.as_slice()).collect();
        if conf["isInterface"] != true {
            return self.object(at.inner, value, &sets, path);
        }
        let inner = at.inner;
        let Some(found) = self.reference.type_of(conf, value) else {
            return fail(
                self,
                format!(
                    "Abstract type \"{inner}\" must resolve to an Object type at runtime for field \"{place}\". Either \
                     the \"{inner}\" type should provide a \"resolveType\" function or each possible type should \
                     provide an \"isTypeOf\" function."
                ),
            );
        };
        if self.reference.conf(&found).is_none() {
            let message = format!(
                "Abstract type \"{inner}\" was resolved to a type \"{found}\" that does not exist inside the schema."
            );
            return fail(self, message);
        }
        if !self.is_a(&found, inner) {
            let message = format!("Runtime Object type \"{found}\" is not a possible type for \"{inner}\".");
            return fail(self, message);
        }
        self.object(&found, value, &sets, path)
    }
}

/// The field whose value is being completed.
struct FieldPosition<'a, 'r> {
    type_: &'a str,
    name: &'a str,
    inner: &'a str,
    nodes: &'a [&'r ast::Field],
}

fn scalar(type_: &str, value: &Value) -> Option<Result<Out, String>> {
    let number = to_number(value);
    let shown = || inspect(value, 0);
    Some(match type_ {
        "string" => match value {
            Value::String(text) => Ok(Out::Text(text.clone())),
            Value::Bool(flag) => Ok(Out::Text(flag.to_string())),
            Value::Number(number) => Ok(Out::Text(number_text(number))),
            _ => Err(format!("String cannot represent value: {}", shown())),
        },
        "boolean" => match value {
            Value::Bool(flag) => Ok(Out::Raw(flag.to_string())),
            Value::Number(number) => Ok(Out::Raw((number.as_f64() != Some(0.0)).to_string())),
            _ => Err(format!("Boolean cannot represent a non boolean value: {}", shown())),
        },
        "float" => match number {
            Some(number) if number.is_finite() => Ok(Out::Raw(stringify(&json!(number)))),
            _ => Err(format!("Float cannot represent non numeric value: {}", shown())),
        },
        "int" => match number {
            Some(number) if number.is_finite() && number.fract() == 0.0 => {
                if (-2_147_483_648.0..=2_147_483_647.0).contains(&number) {
                    Ok(Out::Raw(stringify(&json!(number))))
                } else {
                    Err(format!("Int cannot represent non 32-bit signed integer value: {}", shown()))
                }
            }
            _ => Err(format!("Int cannot represent non-integer value: {}", shown())),
        },
        "json" => Ok(Out::Text(stringify(value))),
        _ => return None,
    })
}

/// Converts a literal and replaces its variables; `None` is a variable without a value. The order of a filter
/// matters, but objects of `serde_json` sort their keys, so each key is prefixed with its index.
fn literal(value: &ast::Value, variables: &Map<String, Value>) -> Option<Value> {
    Some(match value {
        ast::Value::Null => Value::Null,
        ast::Value::Boolean(value) => json!(value),
        ast::Value::Enum(name) => json!(name.as_str()),
        ast::Value::String(text) => json!(text),
        ast::Value::Int(digits) => json!(digits.as_str().parse::<f64>().unwrap()),
        ast::Value::Float(digits) => json!(digits.as_str().parse::<f64>().unwrap()),
        ast::Value::Variable(name) => return variables.get(name.as_str()).cloned(),
        ast::Value::List(items) => {
            items.iter().map(|item| literal(item, variables).unwrap_or(Value::Null)).collect()
        }
        ast::Value::Object(entries) => {
            // A variable without a value equals no other value.
            let undefined = || json!({"0000:undefined": []});
            let entry = |(index, (name, value)): (usize, &(Name, Node<ast::Value>))| {
                (format!("{index:04}:{name}"), literal(value, variables).unwrap_or_else(undefined))
            };
            Value::Object(entries.iter().enumerate().map(entry).collect())
        }
    })
}

impl Out {
    fn print(&self) -> String {
        match self {
            Out::Null => "null".to_owned(),
            Out::Text(text) => serde_json::to_string(text).unwrap(),
            Out::Raw(raw) => raw.clone(),
            Out::List(items) => format!("[{}]", items.iter().map(Out::print).collect::<Vec<_>>().join(",")),
            Out::Object(fields) => {
                let print = |(key, value): &(String, Out)| format!("{}:{}", json!(key), value.print());
                format!("{{{}}}", fields.iter().map(print).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Removes empty objects from lists.
fn pruned(out: Out) -> Out {
    match out {
        Out::List(items) => {
            let empty = |item: &Out| matches!(item, Out::Object(fields) if fields.is_empty());
            Out::List(items.into_iter().filter(|item| !empty(item)).map(pruned).collect())
        }
        Out::Object(fields) => {
            Out::Object(fields.into_iter().map(|(key, value)| (key, pruned(value))).collect())
        }
        other => other,
    }
}

fn ordered_errors(errors: &[Value]) -> String {
    let one = |error: &Value| {
        let type_ = error.get("gqlType").map_or(String::new(), |type_| format!(",\"gqlType\":{type_}"));
        format!(
            "{{\"message\":{},\"locations\":{},\"path\":{},\"extensions\":{{\"code\":{}{type_}}}}}",
            error["message"], error["nodes"], error["path"], error["code"]
        )
    };
    format!("[{}]", errors.iter().map(one).collect::<Vec<_>>().join(","))
}

fn schemas(schemas: &[String]) -> String {
    json!({"schemas": schemas}).to_string()
}
