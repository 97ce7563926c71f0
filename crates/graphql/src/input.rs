//! Input values of a request: variables and literals.
//!
//! The values have the semantics of JavaScript: all numbers are floats, and a value may be undefined.

use qontract_bundle::{Map, Value, json};

/// An input value of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A variable without a value.
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, or the name of an enum value.
    Text(Box<str>),
    /// A list of values.
    List(Vec<Input>),
    /// Values by key, in order; keys are unique.
    Object(Vec<(Box<str>, Input)>),
}

impl Input {
    /// The value of `key`, if this is an object with that key.
    pub fn get(&self, key: &str) -> Option<&Input> {
        let Input::Object(entries) = self else { return None };
        entries.iter().find(|(known, _)| &**known == key).map(|(_, value)| value)
    }

    /// Whether the value is neither undefined nor `null`.
    pub fn is_given(&self) -> bool {
        !matches!(self, Input::Undefined | Input::Null)
    }

    /// Whether the value equals `raw`. A missing `raw` counts as `null`; lists and objects are never equal.
    pub fn is(&self, raw: Option<&Value>) -> bool {
        match (self, raw) {
            (Input::Null, None | Some(Value::Null)) => true,
            (Input::Bool(mine), Some(Value::Bool(theirs))) => mine == theirs,
            (Input::Text(mine), Some(Value::Str(theirs))) => **mine == **theirs,
            #[expect(clippy::float_cmp, reason = "exact equality is intended")]
            (Input::Number(mine), Some(number)) => as_number(number).is_some_and(|theirs| *mine == theirs),
            _ => false,
        }
    }
}

/// Converts a number to a float, as in JavaScript; `None` for other values.
pub fn as_number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "JavaScript has no other integers")]
        Value::Int(number) => Some(*number as f64),
        Value::BigInt(digits) => digits.parse().ok(),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

impl From<&Value> for Input {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Input::Null,
            Value::Bool(value) => Input::Bool(*value),
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) => {
                Input::Number(as_number(value).unwrap_or(f64::NAN))
            }
            Value::Str(text) => Input::Text((**text).into()),
            Value::List(items) => Input::List(items.iter().map(Input::from).collect()),
            Value::Map(map) => Input::Object(entries(map)),
        }
    }
}

/// The entries of a map in JavaScript's key order: keys that are array indices come first, in ascending
/// order.
pub fn entries(map: &Map) -> Vec<(Box<str>, Input)> {
    let mut entries: Vec<(Box<str>, Input)> =
        map.iter().map(|(key, value)| (key.as_str().into(), Input::from(value))).collect();
    entries.sort_by_key(|(key, _)| {
        let index = key.parse::<u32>().ok().filter(|index| *index < u32::MAX && index.to_string() == **key);
        (index.is_none(), index)
    });
    entries
}

/// Formats a number as in JavaScript.
pub fn show_number(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let mut out = Vec::new();
    json::write_javascript(&Value::Float(number), &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Formats a string as a JSON string, with quotes.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::JavaScriptWriter(&mut out).str(text);
    String::from_utf8(out).unwrap_or_default()
}

/// Formats a value for messages in the same way as graphql-js: like a literal, with at most two nested levels
/// and ten list elements.
pub fn inspect(value: &Input) -> String {
    format_value(value, 0)
}

fn format_value(value: &Input, depth: usize) -> String {
    const MAX_DEPTH: usize = 2;
    const MAX_ITEMS: usize = 10;
    match value {
        Input::Undefined => "undefined".to_owned(),
        Input::Null => "null".to_owned(),
        Input::Bool(value) => value.to_string(),
        Input::Number(number) => show_number(*number),
        Input::Text(text) => quoted(text),
        Input::List(items) if items.is_empty() => "[]".to_owned(),
        Input::List(_) if depth >= MAX_DEPTH => "[Array]".to_owned(),
        Input::List(items) => {
            let mut parts: Vec<String> =
                items.iter().take(MAX_ITEMS).map(|item| format_value(item, depth + 1)).collect();
            match items.len().saturating_sub(MAX_ITEMS) {
                0 => {}
                1 => parts.push("... 1 more item".to_owned()),
                more => parts.push(format!("... {more} more items")),
            }
            format!("[{}]", parts.join(", "))
        }
        Input::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Input::Object(_) if depth >= MAX_DEPTH => "[Object]".to_owned(),
        Input::Object(entries) => {
            let parts: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key}: {}", format_value(value, depth + 1)))
                .collect();
            format!("{{ {} }}", parts.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use qontract_bundle::json::JsonParser;

    use super::*;

    fn check(json: &str, expect: &str) {
        let value = JsonParser::new(json).parse().unwrap();
        assert_eq!(inspect(&Input::from(&value)), expect);
    }

    #[test]
    fn messages_show_values_as_graphql_js_does() {
        check("{\"obj\":1}", "{ obj: 1 }");
        check("{}", "{}");
        check("[]", "[]");
        check("[1,\"a\",null,true,1.5e30]", "[1, \"a\", null, true, 1.5e+30]");
        check("{\"a\":{\"b\":{\"c\":1}}}", "{ a: { b: [Object] } }");
        check("{\"a\":{\"b\":{},\"c\":[],\"d\":[1]}}", "{ a: { b: {}, c: [], d: [Array] } }");
        check("[1,2,3,4,5,6,7,8,9,10,11]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... 1 more item]");
        check("[1,2,3,4,5,6,7,8,9,10,11,12]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... 2 more items]");
        check("{\"b\":1,\"10\":2,\"9\":3}", "{ 9: 3, 10: 2, b: 1 }");
    }
}
