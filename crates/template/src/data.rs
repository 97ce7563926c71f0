//! Input values of a rendering: variables, and results of lookups.

use std::fmt;

/// A JSON value whose maps keep their order.
#[derive(Clone, PartialEq)]
pub enum Data {
    /// Null.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Data>),
    /// A map, in order. If a key occurs more than once, the last entry is used.
    Map(Vec<(String, Data)>),
}

impl Data {
    /// Creates a string.
    pub fn text(text: impl Into<String>) -> Self {
        Data::Text(text.into())
    }
}

impl From<&serde_json::Value> for Data {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Data::Null,
            Json::Bool(value) => Data::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Data::Int(whole.into()),
                (None, Some(whole)) => Data::Int(whole.into()),
                (None, None) => Data::Float(number.as_f64().unwrap_or(f64::INFINITY)),
            },
            Json::String(text) => Data::Text(text.clone()),
            Json::Array(items) => Data::List(items.iter().map(Data::from).collect()),
            Json::Object(entries) => {
                Data::Map(entries.iter().map(|(key, value)| (key.clone(), Data::from(value))).collect())
            }
        }
    }
}

/// Shows the type, never the value, which may be secret.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Data::Null => "Null",
            Data::Bool(_) => "Bool(…)",
            Data::Int(_) => "Int(…)",
            Data::Float(_) => "Float(…)",
            Data::Text(_) => "Text(…)",
            Data::List(_) => "List(…)",
            Data::Map(_) => "Map(…)",
        })
    }
}
