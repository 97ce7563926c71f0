//! Goes through what is declared and looks whether it holds.

use serde_json::{Map, Number, Value};

use super::items::{self, Pair};
use crate::difference::{Difference, Show, Side};
use crate::quantity;

/// A way through an object, and what was found on it.
pub struct Walk<'a> {
    kind: &'a str,
    show: Show,
    path: Vec<Segment>,
    /// What has all paths that may be shown; none if all may be.
    pub declared: Option<&'a Value>,
    /// What does not hold.
    pub differences: Vec<Difference>,
}

/// A part of a path.
enum Segment {
    Key(String),
    Item(String),
}

impl<'a> Walk<'a> {
    /// A walk through an object of this kind.
    pub fn new(kind: &'a str, show: Show) -> Self {
        Self { kind, show, path: Vec::new(), declared: None, differences: Vec::new() }
    }

    /// Looks whether a value holds.
    pub fn value(&mut self, desired: &Value, live: Option<&Value>) {
        if says_nothing(desired) {
            return;
        }
        match (desired, live) {
            (Value::Object(desired), Some(Value::Object(live))) => self.map(desired, live),
            (Value::Array(desired), Some(Value::Array(live))) if !live.is_empty() => self.list(desired, live),
            (desired, Some(live)) if self.is_same(desired, live) => {}
            (desired, live) => self.report(live.filter(|live| !says_nothing(live)), desired),
        }
    }

    fn map(&mut self, desired: &Map<String, Value>, live: &Map<String, Value>) {
        for (key, value) in desired {
            self.path.push(Segment::Key(key.clone()));
            self.value(value, live.get(key));
            self.path.pop();
        }
    }

    fn list(&mut self, desired: &[Value], live: &[Value]) {
        let Some(pairs) = items::pairs(self.key(), desired, live) else {
            for (index, item) in desired.iter().enumerate() {
                self.item(&index.to_string(), item, live.get(index));
            }
            return;
        };
        for pair in &pairs {
            if pair.live.is_empty() {
                self.item(&pair.name, pair.desired, None);
            }
            // where the cluster has a name twice, either may be the one that counts
            for (_, live) in &pair.live {
                self.item(&pair.name, pair.desired, Some(live));
            }
        }
        if items::ORDERED.contains(&self.key()) {
            self.order(&pairs);
        }
    }

    fn order(&mut self, declared: &[Pair<'_>]) {
        let mut found: Vec<(usize, &str)> =
            declared.iter().filter_map(|pair| Some((pair.live.first()?.0, pair.name.as_str()))).collect();
        if found.is_sorted() {
            return;
        }
        found.sort_unstable();
        let before = Value::from(found.into_iter().map(|(_, name)| name).collect::<Vec<_>>());
        let after = Value::from(declared.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>());
        self.report(Some(&before), &after);
    }

    fn item(&mut self, name: &str, desired: &Value, live: Option<&Value>) {
        self.path.push(Segment::Item(name.to_owned()));
        // an item that says nothing still is one: an empty rule of a NetworkPolicy lets everything through
        match live {
            Some(live) => self.value(desired, Some(live)),
            None => self.report(None, desired),
        }
        self.path.pop();
    }

    fn report(&mut self, live: Option<&Value>, desired: &Value) {
        let shown = self.declared.map_or(self.path.len(), |declared| depth(declared, &self.path));
        let path = place(&self.path[..shown]);
        if shown == self.path.len() {
            let (before, after) = (Side::of(live, self.show), Side::of(Some(desired), self.show));
            self.differences.push(Difference { path, before, after });
            return;
        }
        let path = if path.is_empty() { "object".to_owned() } else { path };
        let same = |difference: &&mut Difference| {
            difference.path == path && matches!(difference.after, Side::SecretFields(_))
        };
        match self.differences.iter_mut().find(same) {
            Some(Difference { after: Side::SecretFields(count), .. }) => *count += 1,
            _ => {
                self.differences.push(Difference {
                    path,
                    before: Side::Hidden,
                    after: Side::SecretFields(1),
                });
            }
        }
    }

    fn is_same(&self, desired: &Value, live: &Value) -> bool {
        match (desired, live) {
            _ if desired == live => true,
            (Value::Number(one), Value::Number(other)) if is_same_number(one, other) => true,
            _ => self.is_quantity() && quantity::same(desired, live) == Some(true),
        }
    }

    /// Whether a quantity stands here.
    fn is_quantity(&self) -> bool {
        let mut keys = self.path.iter().rev().map_while(Segment::key);
        let (key, within) = (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
        match within {
            "requests" | "limits" | "hard" | "capacity" | "overhead" => true,
            "default" | "defaultRequest" | "max" | "min" | "maxLimitRequestRatio"
                if self.kind == "LimitRange" =>
            {
                true
            }
            "target" if self.kind == "HorizontalPodAutoscaler" => ["value", "averageValue"].contains(&key),
            _ => {
                ["sizeLimit", "divisor"].contains(&key)
                    && !["data", "annotations", "labels"].contains(&within)
            }
        }
    }

    /// The name of the field that is looked at.
    fn key(&self) -> &str {
        self.path.last().and_then(Segment::key).unwrap_or_default()
    }
}

/// A path in words.
fn place(path: &[Segment]) -> String {
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
fn depth(value: &Value, path: &[Segment]) -> usize {
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

impl Segment {
    fn key(&self) -> Option<&str> {
        match self {
            Segment::Key(key) => Some(key),
            Segment::Item(_) => None,
        }
    }
}

/// Null, the empty map and the empty list are as good as nothing.
fn says_nothing(value: &Value) -> bool {
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
