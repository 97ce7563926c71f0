//! The variables of templates: those of an entry, in data order, and the entry itself with its namespace.

use std::fmt;

use qontract_graphql::Node;
use qontract_template::Data;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::fragments::TemplateNamespace;
use crate::resources::query::Namespace;

/// A JSON value that preserves the key order of maps.
struct OrderedValue(Data);

impl<'de> Deserialize<'de> for OrderedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedValueVisitor)
    }
}

struct OrderedValueVisitor;

impl<'de> Visitor<'de> for OrderedValueVisitor {
    type Value = OrderedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<OrderedValue, E> {
        Ok(OrderedValue(Data::text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OrderedValue, A::Error> {
        let mut list = Vec::new();
        while let Some(OrderedValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(OrderedValue(Data::List(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<OrderedValue, A::Error> {
        let mut map = Vec::new();
        while let Some((key, OrderedValue(value))) = entries.next_entry::<String, OrderedValue>()? {
            map.push((key, value));
        }
        Ok(OrderedValue(Data::Map(map)))
    }
}

/// Parses a JSON string from a query result.
pub fn json(text: Option<&str>) -> Result<Data, String> {
    let text = text.unwrap_or("null");
    serde_json::from_str::<OrderedValue>(text)
        .map(|OrderedValue(data)| data)
        .map_err(|error| error.to_string())
}

/// Converts a node of a query result.
pub fn node_value(node: &Node) -> Data {
    match node {
        Node::Null => Data::Null,
        Node::Flag(flag) => Data::Bool(*flag),
        Node::Int(number) => Data::Int((*number).into()),
        Node::Float(number) => Data::Float(*number),
        Node::Text(text) => Data::text(&**text),
        Node::List(items) => Data::List(items.iter().map(node_value).collect()),
        Node::Object(fields) => {
            Data::Map(fields.iter().map(|(name, value)| (name.to_string(), node_value(value))).collect())
        }
    }
}

/// The variables of an entry: its own, and `resource`, which is the entry with its namespace. An error if
/// `variables` is not a map.
pub fn entry_variables(
    own: Option<&str>,
    entry: &[(&str, Data)],
    namespace: &Namespace,
) -> Result<Vec<(String, Data)>, String> {
    let mut variables = match json(own)? {
        Data::Map(entries) => entries,
        Data::Null => Vec::new(),
        Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Text(_) | Data::List(_) => {
            return Err("`variables` is not a map".to_owned());
        }
    };
    let mut resource: Vec<(String, Data)> =
        entry.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    resource.push(("namespace".to_owned(), namespace_value(namespace)?));
    variables.retain(|(name, _)| name != "resource");
    variables.push(("resource".to_owned(), Data::Map(resource)));
    Ok(variables)
}

/// The variable `namespace` of templates.
fn namespace_value(namespace: &Namespace) -> Result<Data, String> {
    let TemplateNamespace { path, name, labels, description, cluster_admin, app, environment, .. } =
        &namespace.template_namespace;
    let cluster = &namespace.cluster.template_cluster;
    let map = |entries: Vec<(&str, Data)>| {
        Data::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let optional = |text: &Option<String>| text.as_deref().map_or(Data::Null, Data::text);
    let truth = |value: Option<bool>| value.map_or(Data::Null, Data::Bool);
    Ok(map(vec![
        ("path", Data::text(path)),
        ("name", Data::text(name)),
        ("labels", optional(labels)),
        ("description", Data::text(description)),
        ("clusterAdmin", truth(*cluster_admin)),
        ("managedResourceTypes", Data::from(&Value::from(namespace.managed_resource_types.clone()))),
        (
            "app",
            map(vec![
                ("path", Data::text(&app.path)),
                ("name", Data::text(&app.name)),
                ("labels", optional(&app.labels)),
            ]),
        ),
        (
            "environment",
            map(vec![
                ("name", Data::text(&environment.name)),
                ("labels", Data::text(&environment.labels)),
                ("parameters", json(environment.parameters.as_deref())?),
                ("servicePhase", Data::text(&environment.service_phase)),
            ]),
        ),
        (
            "cluster",
            map(vec![
                ("path", Data::text(&cluster.path)),
                ("name", Data::text(&cluster.name)),
                ("labels", optional(&cluster.labels)),
                ("serverUrl", Data::text(&cluster.server_url)),
                ("consoleUrl", Data::text(&cluster.console_url)),
                ("prometheusUrl", Data::text(&cluster.prometheus_url)),
                ("alertmanagerUrl", optional(&cluster.alertmanager_url)),
                ("elbFQDN", Data::text(&cluster.elb_fqdn)),
                ("internal", truth(cluster.internal)),
            ]),
        ),
    ]))
}

#[cfg(test)]
mod tests {
    use super::{Data, json};

    #[test]
    fn maps_keep_the_order_of_the_data() {
        let expect = Data::Map(vec![
            ("z".to_owned(), Data::Int(1)),
            ("a".to_owned(), Data::List(vec![Data::Bool(true), Data::Null])),
        ]);
        assert!(json(Some(r#"{"z": 1, "a": [true, null]}"#)) == Ok(expect));
        assert!(json(None) == Ok(Data::Null));
        assert!(json(Some("{")).is_err());
    }
}
