//! Field paths and their printed form: `spec.template.spec.containers[web].image`.

use serde_json::{Number, Value};

use crate::items::ItemNames;
use crate::quantity;

/// A part of a path.
#[derive(Clone, Debug)]
pub enum PathSegment {
    /// A field of a map.
    Key(String),
    /// An item of a list, by name or position.
    Item(String),
}

impl PathSegment {
    fn key(&self) -> Option<&str> {
        match self {
            PathSegment::Key(key) => Some(key),
            PathSegment::Item(_) => None,
        }
    }
}

/// Prints a path.
pub fn print(path: &[PathSegment]) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            PathSegment::Item(name) => place.push_str(&format!("[{}]", quoted(name, "-_./"))),
            PathSegment::Key(key) if !is_plain(key, "-_") => {
                place.push_str(&format!("[{}]", Value::from(key.as_str())));
            }
            PathSegment::Key(key) if place.is_empty() => place.push_str(key),
            PathSegment::Key(key) => place.push_str(&format!(".{key}")),
        }
    }
    place
}

/// The current path of a walk through an object, and the part of it that may be shown.
pub struct PathCursor<'a> {
    segments: Vec<PathSegment>,
    /// The values at the prefixes of the path, from the object itself to the last prefix that exists in the
    /// object with all visible paths. `None` means that all paths may be shown.
    visible: Option<Vec<VisibleNode<'a>>>,
}

/// A value of the object that has all visible paths.
struct VisibleNode<'a> {
    value: &'a Value,
    /// Index of the items if the value is a list; built at the first lookup of an item.
    items: Option<ItemNames>,
}

impl<'a> PathCursor<'a> {
    /// The path of the whole object. `visible` has all paths that may be shown; `None` means that all paths
    /// may be shown.
    pub fn new(visible: Option<&'a Value>) -> Self {
        let visible = visible.map(|value| vec![VisibleNode { value, items: None }]);
        Self { segments: Vec::new(), visible }
    }

    /// Appends a segment: enters a field of a map or an item of a list.
    pub fn push(&mut self, segment: PathSegment) {
        if let Some(nodes) = &mut self.visible
            && nodes.len() > self.segments.len()
            && let Some(value) = nodes.last_mut().and_then(|node| node.child(&segment))
        {
            nodes.push(VisibleNode { value, items: None });
        }
        self.segments.push(segment);
    }

    /// Removes the last segment: returns to the parent.
    pub fn pop(&mut self) {
        self.segments.pop();
        if let Some(nodes) = &mut self.visible {
            nodes.truncate(self.segments.len() + 1);
        }
    }

    /// The whole path.
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }

    /// The part of the path that may be shown.
    pub fn shown(&self) -> &[PathSegment] {
        let depth = self.visible.as_ref().map_or(self.segments.len(), |nodes| nodes.len() - 1);
        &self.segments[..depth]
    }

    /// Whether only some paths may be shown.
    pub fn is_restricted(&self) -> bool {
        self.visible.is_some()
    }

    /// The name of the last field of the path; empty for an item of a list.
    pub fn last_key(&self) -> &str {
        last_key(&self.segments)
    }
}

impl<'a> VisibleNode<'a> {
    fn child(&mut self, segment: &PathSegment) -> Option<&'a Value> {
        match (segment, self.value) {
            (PathSegment::Key(key), Value::Object(map)) => map.get(key),
            (PathSegment::Item(name), Value::Array(items)) => {
                self.items.get_or_insert_with(|| ItemNames::new(items)).find(items, name)
            }
            _ => None,
        }
    }
}

/// The name of the last field of a path; empty for an item of a list.
pub fn last_key(path: &[PathSegment]) -> &str {
    path.last().and_then(PathSegment::key).unwrap_or_default()
}

/// Whether two values at this path of an object of this kind are equivalent.
pub fn is_equivalent(kind: &str, path: &[PathSegment], one: &Value, other: &Value) -> bool {
    match (one, other) {
        _ if one == other => true,
        (Value::Number(one), Value::Number(other)) if is_same_number(one, other) => true,
        _ => is_quantity(kind, path) && quantity::is_same_quantity(one, other) == Some(true),
    }
}

/// Whether the path denotes a quantity.
fn is_quantity(kind: &str, path: &[PathSegment]) -> bool {
    let mut keys = path.iter().rev().map_while(PathSegment::key);
    let (key, within) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
    match within {
        "requests" | "limits" | "hard" | "capacity" | "overhead" => true,
        "default" | "defaultRequest" | "max" | "min" | "maxLimitRequestRatio" if kind == "LimitRange" => true,
        "target" if kind == "HorizontalPodAutoscaler" => ["value", "averageValue"].contains(&key),
        _ => ["sizeLimit", "divisor"].contains(&key) && !["data", "annotations", "labels"].contains(&within),
    }
}

/// Whether a value is equivalent to an absent one: null, an empty map or an empty list.
pub fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty_value),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether two numbers are equal by value: `1` equals `1.0`.
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

#[cfg(test)]
mod tests {
    use qontract_testkit::SeededRng;
    use serde_json::{Value, json};

    use super::{PathCursor, PathSegment};
    use crate::items::ItemNames;

    /// Number of segments of a path that a value has, looked up from the root.
    fn depth(value: &Value, path: &[PathSegment]) -> usize {
        let mut value = value;
        for (depth, segment) in path.iter().enumerate() {
            let below = match (segment, value) {
                (PathSegment::Key(key), Value::Object(map)) => map.get(key),
                (PathSegment::Item(name), Value::Array(items)) => ItemNames::new(items).find(items, name),
                _ => None,
            };
            let Some(below) = below else { return depth };
            value = below;
        }
        path.len()
    }

    fn segment(chance: &mut SeededRng) -> PathSegment {
        let key = ["a", "list", "x"][chance.below(3)].to_owned();
        if chance.percent(60) {
            PathSegment::Key(key)
        } else {
            PathSegment::Item(["a", "0", "x"][chance.below(3)].to_owned())
        }
    }

    #[test]
    fn the_visible_part_of_a_path_does_not_depend_on_earlier_paths() {
        let item = json!({"name": "a", "list": [{"a": {"a": 1}}], "a": {"list": ["x"]}});
        let visible = json!({"list": [item, item], "a": {"list": [item], "a": {}}});
        for seed in 0..200 {
            let chance = &mut SeededRng::new(seed);
            let (mut cursor, mut open) = (PathCursor::new(Some(&visible)), PathCursor::new(None));
            for _ in 0..30 {
                if chance.percent(55) {
                    let segment = segment(chance);
                    cursor.push(segment.clone());
                    open.push(segment);
                } else {
                    cursor.pop();
                    open.pop();
                }
                assert_eq!(
                    cursor.shown().len(),
                    depth(&visible, cursor.segments()),
                    "{:?}",
                    cursor.segments()
                );
                assert_eq!(open.shown().len(), cursor.segments().len());
            }
        }
    }
}
