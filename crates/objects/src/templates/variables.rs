//! The values of template variables, from JSON strings and from query results.

use std::fmt;

use qontract_graphql::Node;
use qontract_template::Data;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

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
