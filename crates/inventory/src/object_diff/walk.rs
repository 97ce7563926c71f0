//! Compares two versions of an object field by field.

use std::collections::BTreeSet;

use qontract_bundle::diff::{Step, align};
use serde_json::{Map, Value};

use super::defaults::RemovedField;
use super::{item_leaves, leaves};
use crate::compare::items;
use crate::difference::{Difference, Show, Side};
use crate::path::{self, Segment, says_nothing};

/// An added item with more values is expanded field by field: reports show no more values of one field.
const MAX_ITEM_VALUES: usize = 16;

/// A walk through two versions of an object, and what differs.
pub struct FieldWalk<'a> {
    kind: &'a str,
    group: &'a str,
    show: Show,
    /// Whether the values that changed and removed fields had before are shown.
    pub show_before: Show,
    /// What others own of the object: of removed fields, its values are not shown.
    pub owned_by_others: Option<&'a Value>,
    /// Whether large items of lists are shown field by field, so that none of their fields is left out.
    pub expands_items: bool,
    /// The object that has all paths that may be shown; none if all may be.
    pub visible: Option<&'a Value>,
    path: Vec<Segment>,
    removed: Vec<Difference>,
    others: Vec<Difference>,
    /// How many keys are gone.
    pub lost: usize,
    /// How many keys come.
    pub added: usize,
    /// How many lists have no items any more.
    pub lists: usize,
}

impl<'a> FieldWalk<'a> {
    /// A walk through an object of this kind and group.
    pub fn new(kind: &'a str, group: &'a str, show: Show) -> Self {
        Self {
            kind,
            group,
            show,
            show_before: show,
            owned_by_others: None,
            expands_items: false,
            visible: None,
            path: Vec::new(),
            removed: Vec::new(),
            others: Vec::new(),
            lost: 0,
            added: 0,
            lists: 0,
        }
    }

    /// What differs: removed fields first.
    pub fn differences(self) -> Vec<Difference> {
        let Self { mut removed, others, .. } = self;
        removed.extend(others);
        removed
    }

    /// Compares two values at the current path.
    pub fn value(&mut self, before: Option<&Value>, after: Option<&Value>) {
        self.field(before, after, None);
    }

    /// Compares two values of a field at the current path. `siblings` are the fields beside it after the write.
    fn field(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        siblings: Option<&Map<String, Value>>,
    ) {
        let [before, after] = [before, after].map(|side| side.filter(|value| !says_nothing(value)));
        match (before, after) {
            (None, None) => {}
            (Some(before), None) => self.gone(before, siblings),
            (None, Some(after)) => self.added(after),
            (Some(Value::Object(before)), Some(Value::Object(after))) => self.map(before, after),
            (Some(Value::Array(before)), Some(Value::Array(after))) => self.list(before, after),
            (Some(before), Some(after)) if path::is_same(self.kind, &self.path, before, after) => {}
            (Some(before), Some(after)) => self.changed(before, after),
        }
    }

    fn map(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            self.path.push(Segment::Key(key.clone()));
            self.field(before.get(key), after.get(key), Some(after));
            self.path.pop();
        }
    }

    fn list(&mut self, before: &[Value], after: &[Value]) {
        if let Some((old, new)) = items::names(path::last_key(&self.path), before, after) {
            self.named(
                &old.iter().zip(before).collect::<Vec<_>>(),
                &new.iter().zip(after).collect::<Vec<_>>(),
            );
            return;
        }
        for step in align(before.len(), after.len(), |one, other| before[one] == after[other]) {
            match step {
                Step::Pair(one, other) => self.pair(&other.to_string(), &before[one], &after[other]),
                Step::Removed(one) => self.item_gone(&one.to_string(), &before[one]),
                Step::Added(other) => self.item_added(&other.to_string(), &after[other]),
            }
        }
    }

    /// Compares lists whose items have names.
    fn named(&mut self, before: &[(&String, &Value)], after: &[(&String, &Value)]) {
        let find = |all: &[(&String, &Value)], name: &str| all.iter().position(|(one, _)| *one == name);
        let mut order = Vec::new();
        for (name, item) in before {
            match find(after, name) {
                Some(index) => {
                    order.push((index, *name));
                    self.pair(name, item, after[index].1);
                }
                None => self.item_gone(name, item),
            }
        }
        for (name, item) in after.iter().filter(|(name, _)| find(before, name).is_none()) {
            self.item_added(name, item);
        }
        if !order.is_sorted() {
            let old: Vec<&str> = order.iter().map(|(_, name)| name.as_str()).collect();
            order.sort_unstable();
            let new: Vec<&str> = order.iter().map(|(_, name)| name.as_str()).collect();
            let [old, new] = [Value::from(old), Value::from(new)];
            self.report(Some(&old), Some(&new));
        }
    }

    fn pair(&mut self, name: &str, before: &Value, after: &Value) {
        self.path.push(Segment::Item(name.to_owned()));
        self.value(Some(before), Some(after));
        self.path.pop();
    }

    fn item_gone(&mut self, name: &str, item: &Value) {
        self.lost += item_leaves(item);
        self.path.push(Segment::Item(name.to_owned()));
        self.report(Some(item), None);
        self.path.pop();
    }

    fn item_added(&mut self, name: &str, item: &Value) {
        self.added += item_leaves(item);
        self.path.push(Segment::Item(name.to_owned()));
        if self.expands_items && self.show == Show::Values && leaves(item) > MAX_ITEM_VALUES {
            self.added(item);
        } else {
            self.report(None, Some(item));
        }
        self.path.pop();
    }

    fn gone(&mut self, before: &Value, siblings: Option<&Map<String, Value>>) {
        let field = RemovedField { kind: self.kind, group: self.group, path: &self.path, siblings };
        match before {
            value if field.is_default(value) => {}
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| !says_nothing(value)) {
                    self.path.push(Segment::Key(key.clone()));
                    self.gone(value, None);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                self.lists += 1;
                for (name, item) in items::labels(path::last_key(&self.path), items).iter().zip(items) {
                    self.item_gone(name, item);
                }
            }
            value => {
                self.lost += 1;
                self.report(Some(value), None);
            }
        }
    }

    fn added(&mut self, after: &Value) {
        match after {
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| !says_nothing(value)) {
                    self.path.push(Segment::Key(key.clone()));
                    self.added(value);
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                for (name, item) in items::labels(path::last_key(&self.path), items).iter().zip(items) {
                    self.item_added(name, item);
                }
            }
            value => {
                self.added += 1;
                self.report(None, Some(value));
            }
        }
    }

    fn changed(&mut self, before: &Value, after: &Value) {
        if before.is_object() || before.is_array() {
            self.lost += leaves(before);
            self.lists += usize::from(before.is_array());
            self.added += leaves(after);
        } else if after.is_object() || after.is_array() {
            self.added += leaves(after);
            self.lost += 1;
        }
        self.report(Some(before), Some(after));
    }

    fn report(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let depth = self.visible.map_or(self.path.len(), |visible| path::depth(visible, &self.path));
        if depth < self.path.len() {
            self.count_secret(depth);
            return;
        }
        let path = path::print(&self.path);
        let (before, after) = match (before, after) {
            (before, None) if self.is_of_others() => (Side::of(before, Show::Paths), Side::Absent),
            (before, after) => (Side::of(before, self.show_before), Side::of(after, self.show)),
        };
        let side = if after == Side::Absent { &mut self.removed } else { &mut self.others };
        side.push(Difference { path, before, after });
    }

    /// Whether others own a part of the value at the current path. An item of a list that they own a part of may be theirs, since items
    /// without names are found by position.
    fn is_of_others(&self) -> bool {
        self.owned_by_others.is_some_and(|others| match self.path.get(path::depth(others, &self.path)) {
            None | Some(Segment::Item(_)) => true,
            Some(Segment::Key(_)) => false,
        })
    }

    /// Counts a field whose name may come from a secret, below the last path that may be shown.
    fn count_secret(&mut self, depth: usize) {
        let path = path::print(&self.path[..depth]);
        let path = if path.is_empty() { "object".to_owned() } else { path };
        for difference in self.others.iter_mut().filter(|difference| difference.path == path) {
            if let Side::SecretFields(count) = &mut difference.after {
                *count += 1;
                return;
            }
        }
        self.others.push(Difference { path, before: Side::Hidden, after: Side::SecretFields(1) });
    }
}
