//! Paths of fields, and how they are printed: `spec.template.spec.containers[web].image`.

use serde_json::{Number, Value};

use crate::compare::items;
use crate::quantity;

/// A part of a path.
#[derive(Clone, Debug)]
pub enum Segment {
    /// A field of a map.
    Key(String),
    /// An item of a list, by name or position.
    Item(String),
}

impl Segment {
    fn key(&self) -> Option<&str> {
        match self {
            Segment::Key(key) => Some(key),
            Segment::Item(_) => None,
        }
    }
}

/// A path as it is printed.
pub fn print(path: &[Segment]) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            Segment::Item(name) => place.push_str(&format!("[{}]", quoted(name, "-_./"))),
            Segment::Key(key) if !is_plain(key, "-_") => {
                place.push_str(&format!("[{}]", Value::from(key.as_str())));
            }
            Segment::Key(key) if place.is_empty() => place.push_str(key),
            Segment::Key(key) => place.push_str(&format!(".{key}")),
        }
    }
    place
}

/// How many segments of a path a value has.
pub fn depth(value: &Value, path: &[Segment]) -> usize {
    let mut value = value;
    for (depth, segment) in path.iter().enumerate() {
        let below = match (segment, value) {
            (Segment::Key(key), Value::Object(map)) => map.get(key),
            (Segment::Item(name), Value::Array(items)) => items::find(items, name),
            _ => None,
        };
        let Some(below) = below else { return depth };
        value = below;
    }
    path.len()
}

/// The name of the field that a path ends with; empty for an item of a list.
pub fn last_key(path: &[Segment]) -> &str {
    path.last().and_then(Segment::key).unwrap_or_default()
}

/// Whether two values at this path of an object of this kind mean the same.
pub fn is_same(kind: &str, path: &[Segment], one: &Value, other: &Value) -> bool {
    match (one, other) {
        _ if one == other => true,
        (Value::Number(one), Value::Number(other)) if is_same_number(one, other) => true,
        _ => is_quantity(kind, path) && quantity::same(one, other) == Some(true),
    }
}

/// Whether a quantity stands here.
fn is_quantity(kind: &str, path: &[Segment]) -> bool {
    let mut keys = path.iter().rev().map_while(Segment::key);
    let (key, within) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
    match within {
        "requests" | "limits" | "hard" | "capacity" | "overhead" => true,
        "default" | "defaultRequest" | "max" | "min" | "maxLimitRequestRatio" if kind == "LimitRange" => true,
        "target" if kind == "HorizontalPodAutoscaler" => ["value", "averageValue"].contains(&key),
        _ => ["sizeLimit", "divisor"].contains(&key) && !["data", "annotations", "labels"].contains(&within),
    }
}

/// Null, the empty map and the empty list are as good as nothing.
pub fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(says_nothing),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// `1` is `1.0`.
fn is_same_number(one: &Number, other: &Number) -> bool {
    let both_whole = !one.is_f64() && !other.is_f64();
    !both_whole && one.as_f64() == other.as_f64()
}

fn is_plain(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || more.contains(one))
}

fn quoted(text: &str, more: &str) -> String {
    if is_plain(text, more) { text.to_owned() } else { Value::from(text).to_string() }
}
