//! Walks through a declared object and compares each field with the live object.

use serde_json::{Map, Value};

use crate::difference::{DifferenceList, DifferenceSide, FieldDifference, Visibility};
use crate::items::{self, ItemPair};
use crate::path::{self, PathCursor, PathSegment, is_empty_value};

/// A walk through an object, and the differences that were found so far.
pub struct CompareWalk<'a> {
    kind: &'a str,
    show: Visibility,
    path: PathCursor<'a>,
    differences: DifferenceList,
}

impl<'a> CompareWalk<'a> {
    /// A walk through an object of this kind. `declared` has all paths that may be shown; `None` means that
    /// all paths may be shown.
    pub fn new(kind: &'a str, show: Visibility, declared: Option<&'a Value>) -> Self {
        Self { kind, show, path: PathCursor::new(declared), differences: DifferenceList::default() }
    }

    /// The fields that differ.
    pub fn differences(self) -> Vec<FieldDifference> {
        self.differences.into_vec()
    }

    /// Compares a value.
    pub fn value(&mut self, desired: &Value, live: Option<&Value>) {
        if is_empty_value(desired) {
            return;
        }
        match (desired, live) {
            (Value::Object(desired), Some(Value::Object(live))) => self.map(desired, live),
            (Value::Array(desired), Some(Value::Array(live))) if !live.is_empty() => self.list(desired, live),
            (desired, Some(live)) if path::is_equivalent(self.kind, self.path.segments(), desired, live) => {}
            (desired, live) => self.report(live.filter(|live| !is_empty_value(live)), desired),
        }
    }

    fn map(&mut self, desired: &Map<String, Value>, live: &Map<String, Value>) {
        for (key, value) in desired {
            self.path.push(PathSegment::Key(key.clone()));
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
            // If the live list has a name twice, either item may be the effective one.
            for (_, live) in &pair.live {
                self.item(&pair.name, pair.desired, Some(live));
            }
        }
        if items::ORDERED_LISTS.contains(&self.key()) {
            self.check_order(&pairs);
        }
    }

    fn check_order(&mut self, declared: &[ItemPair<'_>]) {
        let mut live_order: Vec<(usize, &str)> =
            declared.iter().filter_map(|pair| Some((pair.live.first()?.0, pair.name.as_str()))).collect();
        if live_order.is_sorted() {
            return;
        }
        live_order.sort_unstable();
        let before = Value::from(live_order.into_iter().map(|(_, name)| name).collect::<Vec<_>>());
        let after = Value::from(declared.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>());
        self.report(Some(&before), &after);
    }

    fn item(&mut self, name: &str, desired: &Value, live: Option<&Value>) {
        self.path.push(PathSegment::Item(name.to_owned()));
        // An empty item is still an item: an empty rule of a NetworkPolicy allows all traffic.
        match live {
            Some(live) => self.value(desired, Some(live)),
            None => self.report(None, desired),
        }
        self.path.pop();
    }

    fn report(&mut self, live: Option<&Value>, desired: &Value) {
        let path = path::print(self.path.shown());
        if self.path.shown().len() < self.path.segments().len() {
            self.differences.count_secret(path);
            return;
        }
        let (before, after) =
            (DifferenceSide::of(live, self.show), DifferenceSide::of(Some(desired), self.show));
        self.differences.push(FieldDifference { path, before, after });
    }

    /// The name of the current field.
    fn key(&self) -> &str {
        self.path.last_key()
    }
}
