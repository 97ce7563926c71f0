//! Checks that keyword values are well-formed, as the metaschema of JSON Schema draft 6 requires.
//!
//! The check is as lenient as that of `qontract-validator`: an enum may be empty or contain a value twice.

use std::collections::BTreeSet;

use qontract_bundle::{Map, Value};

use crate::keywords::{self, KeywordKind};
use crate::tree;

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A keyword with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeywordFault {
    /// JSON pointer of the value in its schema.
    pub pointer: String,
    /// The message: `"must be a list of strings"`.
    pub message: String,
    /// Candidates for a suggestion.
    pub candidates: &'static [&'static str],
}

/// All faults of a schema and its subschemas.
pub fn faults(schema: &Value) -> Vec<KeywordFault> {
    let mut found = Vec::new();
    if !is_schema(schema) {
        found.push(KeywordFault {
            pointer: String::new(),
            message: "must be a map".to_owned(),
            candidates: &[],
        });
    }
    keywords::visit_schemas(schema, &mut String::new(), &mut |map, pointer| {
        for (key, value) in map.iter() {
            if let Some(what) = fault(key.as_str(), value) {
                let at = keywords::child_pointer(pointer, key.as_str());
                let candidates = if key.as_str() == "type" { &TYPES[..] } else { &[] };
                found.push(KeywordFault { pointer: at, message: what.to_owned(), candidates });
            }
        }
        misplaced_schemas(map, pointer, &mut found);
    });
    found
}

/// Reports values that must be schemas, but are not.
fn misplaced_schemas(map: &Map, pointer: &str, found: &mut Vec<KeywordFault>) {
    for (key, value) in map.iter() {
        let at = keywords::child_pointer(pointer, key.as_str());
        let mut expect = |value: &Value, step: &str| {
            if !is_schema(value) {
                let what = "must be a schema: a map, or true or false".to_owned();
                found.push(KeywordFault {
                    pointer: keywords::child_pointer(&at, step),
                    message: what,
                    candidates: &[],
                });
            }
        };
        match (keywords::keyword_kind(key.as_str()), value) {
            (Some(KeywordKind::List | KeywordKind::SchemaOrList), Value::List(items)) => {
                items.iter().enumerate().for_each(|(index, item)| expect(item, &index.to_string()));
            }
            (Some(KeywordKind::Map), Value::Map(schemas)) => {
                schemas.iter().for_each(|(name, schema)| expect(schema, name.as_str()));
            }
            (Some(KeywordKind::Dependencies), Value::Map(entries)) => {
                for (name, entry) in entries.iter().filter(|(_, entry)| !is_text_list(entry)) {
                    expect(entry, name.as_str());
                }
            }
            _ => {}
        }
    }
}

/// The message for an invalid keyword value; `None` if the value is valid.
pub fn fault(keyword: &str, value: &Value) -> Option<&'static str> {
    let (right, what) = match keyword {
        "$id" | "$schema" | "$ref" | "title" | "description" | "pattern" | "format" => {
            (value.as_str().is_some(), "must be a string")
        }
        "examples" | "enum" => (value.as_list().is_some(), "must be a list"),
        "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => {
            (number(value).is_some(), "must be a number")
        }
        "multipleOf" => (number(value).is_some_and(|number| number > 0.0), "must be a number above 0"),
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
            let count = number(value).filter(|number| *number >= 0.0 && number.fract() == 0.0);
            (count.is_some(), "must be a non-negative integer")
        }
        "uniqueItems" => (matches!(value, Value::Bool(_)), "must be true or false"),
        "required" => (is_text_list(value), "must be a list of distinct strings"),
        "type" => (is_type(value), "must be a type, or a list of distinct types"),
        _ => match keywords::keyword_kind(keyword) {
            Some(KeywordKind::Schema) => (is_schema(value), "must be a schema: a map, or true or false"),
            Some(KeywordKind::List) => (is_nonempty_list(value), "must be a list of schemas"),
            Some(KeywordKind::SchemaOrList) => {
                (is_schema(value) || is_nonempty_list(value), "must be a schema, or a list of schemas")
            }
            Some(KeywordKind::Map | KeywordKind::Dependencies) => {
                (value.as_map().is_some(), "must be a map of schemas")
            }
            Some(KeywordKind::Plain) | None => return None,
        },
    };
    (!right).then_some(what)
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::Bool(_))
}

fn is_nonempty_list(value: &Value) -> bool {
    value.as_list().is_some_and(|items| !items.is_empty())
}

fn is_type(value: &Value) -> bool {
    match value {
        Value::Str(name) => TYPES.contains(&&**name),
        Value::List(names) => {
            let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
            !names.is_empty() && names.iter().all(known) && are_distinct(names)
        }
        _ => false,
    }
}

fn is_text_list(value: &Value) -> bool {
    value
        .as_list()
        .is_some_and(|items| items.iter().all(|item| item.as_str().is_some()) && are_distinct(items))
}

fn are_distinct(items: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    items.iter().all(|item| seen.insert(tree::text(item)))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "only the sign and the fraction matter")]
        Value::Int(value) => Some(*value as f64),
        Value::BigInt(digits) => digits.parse().ok(),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_at_every_depth() {
        let map = |entries: Vec<(&str, Value)>| Value::Map(Map::new(entries));
        let inner = map(vec![("type", Value::str("strng")), ("enum", Value::List(Box::new([])))]);
        let schema = map(vec![
            ("properties", map(vec![("a", inner), ("b", Value::Int(1))])),
            ("required", Value::Bool(true)),
        ]);
        let found: Vec<String> = faults(&schema).into_iter().map(|fault| fault.pointer).collect();
        assert_eq!(found, ["/required", "/properties/b", "/properties/a/type"]);
    }
}
