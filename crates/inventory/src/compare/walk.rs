//! Goes through what is declared and looks whether it holds.

use serde_json::{Map, Value};

use super::items::{self, Pair};
use crate::difference::{Difference, Show, Side};
use crate::path::{self, Segment, says_nothing};

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
            (desired, Some(live)) if path::is_same(self.kind, &self.path, desired, live) => {}
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
        let shown = self.declared.map_or(self.path.len(), |declared| path::depth(declared, &self.path));
        let path = path::print(&self.path[..shown]);
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

    /// The name of the field that is looked at.
    fn key(&self) -> &str {
        path::last_key(&self.path)
    }
}
