//! Templates, rendered from the data alone: what lies outside is its own address, and queries are answered by the data.

use std::collections::BTreeMap;
use std::fmt;

use qontract_graphql::Node;
use qontract_runtime::Data as Source;
use qontract_template::{
    Address, Answer, Data, Declared, Dialect, Lookups, Outcome, Request, Strictness, render,
};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// The variables of a template.
pub type Variables = Vec<(String, Data)>;

/// What a template renders to.
pub fn rendered(
    data: &Source,
    (path, text): (&str, &str),
    dialect: Dialect,
    variables: &Variables,
) -> Result<String, String> {
    let source = qontract_template::Source::new(path, text).dialect(dialect);
    match render(&Request::new(source, variables), &Declared(Queries(data))) {
        Ok(Outcome::Rendered(rendered)) => Ok(rendered.expose().to_owned()),
        Ok(Outcome::Needs(_)) => Err("it looks outside".to_owned()),
        Err(fault) => Err(format!("line {}: {}", fault.line, fault.message)),
    }
}

/// Queries of templates, answered by the data.
struct Queries<'d>(&'d Source);

impl Lookups for Queries<'_> {
    fn answer(&self, address: &Address) -> Answer {
        let Address::Query { path, variables } = address else { return Answer::Unknown };
        query(self.0, path, variables).map_or_else(Answer::Failed, Answer::Known)
    }
}

/// The first field of the answer to the query that a resource holds. The resource is itself a template.
fn query(data: &Source, path: &str, given: &BTreeMap<String, String>) -> Result<Data, String> {
    let text = data.resource(path).map_err(|error| error.to_string())?;
    let text = text.ok_or_else(|| format!("there is no resource `{path}`"))?;
    let given = given.iter().map(|(name, text)| Ok((name.clone(), json(text)?)));
    let given = given.collect::<Result<Variables, String>>()?;
    let source = qontract_template::Source::new(path, &text);
    let request = Request { strictness: Strictness::Lenient, ..Request::new(source, &given) };
    let rendered = match render(&request, &BTreeMap::new()) {
        Ok(Outcome::Rendered(rendered)) => rendered,
        Ok(Outcome::Needs(_)) => return Err(format!("`{path}` looks outside, which a query may not")),
        Err(fault) => return Err(fault.to_string()),
    };
    let answered = data.ad_hoc(rendered.expose(), None).map_err(|error| error.to_string())?;
    match of_node(&answered.data) {
        Data::Map(fields) => Ok(fields.into_iter().next().map_or(Data::Null, |(_, value)| value)),
        other => Ok(other),
    }
}

/// The variables of an entry: its own, and `resource`, which is the entry with its namespace.
pub fn variables(own: Option<&str>, entry: &Node, namespace: &Node) -> Result<Variables, String> {
    let mut variables = match own.map(json).transpose()? {
        Some(Data::Map(variables)) => variables,
        None | Some(Data::Null) => Vec::new(),
        Some(_) => return Err("`variables` is no map".to_owned()),
    };
    let mut resource = fields(entry);
    resource.push(("namespace".to_owned(), of_namespace(namespace)?));
    variables.retain(|(name, _)| name != "resource");
    variables.push(("resource".to_owned(), Data::Map(resource)));
    Ok(variables)
}

/// A namespace as templates see it: without what it names, and with the parameters of its environment as a map.
fn of_namespace(namespace: &Node) -> Result<Data, String> {
    let mut all = fields(namespace);
    all.retain(|(name, _)| name != "openshiftResources" && name != "sharedResources");
    for (name, value) in &mut all {
        let Data::Map(environment) = value else { continue };
        let parameters =
            environment.iter_mut().find(|(field, _)| name == "environment" && field == "parameters");
        if let Some((_, Data::Text(text))) = parameters {
            let parsed = json(text)?;
            environment.retain(|(field, _)| field != "parameters");
            environment.push(("parameters".to_owned(), parsed));
        }
    }
    Ok(Data::Map(all))
}

/// The fields of an object, without those that only tell its type.
fn fields(node: &Node) -> Variables {
    match of_node(node) {
        Data::Map(mut fields) => {
            fields.retain(|(name, _)| name != "__typename");
            fields
        }
        _ => Vec::new(),
    }
}

fn of_node(node: &Node) -> Data {
    match node {
        Node::Null => Data::Null,
        Node::Flag(flag) => Data::Bool(*flag),
        Node::Int(number) => Data::Int((*number).into()),
        Node::Float(number) => Data::Float(*number),
        Node::Text(text) => Data::text(&**text),
        Node::List(items) => Data::List(items.iter().map(of_node).collect()),
        Node::Object(fields) => {
            Data::Map(fields.iter().map(|(name, value)| (name.to_string(), of_node(value))).collect())
        }
    }
}

/// The value of a text that holds JSON, as answers have it, with the order of its maps.
fn json(text: &str) -> Result<Data, String> {
    serde_json::from_str::<Ordered>(text).map(|Ordered(data)| data).map_err(|error| error.to_string())
}

struct Ordered(Data);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered(Data::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered(Data::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered(Data::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered(Data::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered(Data::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered(Data::text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(Ordered(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Ordered(Data::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Ordered, A::Error> {
        let mut map = Vec::new();
        while let Some((key, Ordered(value))) = entries.next_entry::<String, Ordered>()? {
            map.push((key, value));
        }
        Ok(Ordered(Data::Map(map)))
    }
}
