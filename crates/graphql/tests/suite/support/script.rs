//! A second implementation of operations with JavaScript semantics.

use serde_json::{Number, Value};

/// A key that marks datafiles; it is never printed.
pub const FILE: &str = "\u{1}file";

/// `===` for scalars; objects and lists are never equal.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(_) | Value::Object(_), _) => false,
        _ => a == b,
    }
}

/// `String(number)`
pub fn number_text(number: &Number) -> String {
    let value = number.as_f64().unwrap();
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if (-6..21).contains(&exponent) {
        return format!("{value}");
    }
    format!("{mantissa}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `JSON.stringify(value)`: keys that are array indices come first; the path of a datafile comes last.
pub fn stringify(value: &Value) -> String {
    match value {
        Value::Number(number) => number_text(number),
        Value::Array(items) => format!("[{}]", items.iter().map(stringify).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let entry = |key: &String| format!("{}:{}", Value::from(key.as_str()), stringify(&map[key]));
            format!("{{{}}}", keys(map).into_iter().map(entry).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The keys in JavaScript's order.
fn keys(map: &serde_json::Map<String, Value>) -> Vec<&String> {
    let is_index =
        |key: &str| key.parse::<u32>().is_ok_and(|index| index < u32::MAX && index.to_string() == key);
    let mut indices: Vec<&String> = map.keys().filter(|key| is_index(key)).collect();
    indices.sort_by_key(|key| key.parse::<u32>().unwrap());
    let is_file = map.contains_key(FILE);
    let others = map.keys().filter(|key| !is_index(key) && *key != FILE && !(is_file && *key == "path"));
    let path = map.keys().filter(|key| is_file && *key == "path");
    indices.into_iter().chain(others).chain(path).collect()
}

/// `Number(value)` of values that convert to a number.
pub fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => {
            let text = text.trim();
            match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
                None if text.is_empty() => Some(0.0),
                None if text.chars().any(|one| one.is_alphabetic() && one != 'e') => None,
                None => text.parse().ok(),
            }
        }
        _ => None,
    }
}

/// Formats a value for messages, as in graphql-js.
pub fn inspect(value: &Value, depth: usize) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Array(_) if depth == 2 => "[Array]".to_owned(),
        Value::Array(items) => {
            let mut shown: Vec<String> = items.iter().take(10).map(|item| inspect(item, depth + 1)).collect();
            if items.len() > 10 {
                let more = items.len() - 10;
                shown.push(format!("... {more} more item{}", if more == 1 { "" } else { "s" }));
            }
            format!("[{}]", shown.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(_) if depth == 2 => "[Object]".to_owned(),
        Value::Object(map) => {
            let shown = keys(map).into_iter().map(|key| format!("{key}: {}", inspect(&map[key], depth + 1)));
            format!("{{ {} }}", shown.collect::<Vec<_>>().join(", "))
        }
        Value::Number(number) => number_text(number),
        other => other.to_string(),
    }
}
