//! Compares two versions of an object field by field.

use std::collections::{BTreeSet, HashMap};

use qontract_bundle::diff::{AlignStep, MAX_PAIRS, align};
use serde_json::{Map, Value};

use super::defaults::RemovedField;
use super::{item_leaves, leaves};
use crate::difference::{DifferenceList, DifferenceSide, FieldDifference, Visibility};
use crate::items;
use crate::path::{self, PathCursor, PathSegment};

/// An item of a list, with its name.
struct NamedItem<'a> {
    name: &'a str,
    item: &'a Value,
}

fn named_items<'a>(names: &'a [String], items: &'a [Value]) -> Vec<NamedItem<'a>> {
    names.iter().zip(items).map(|(name, item)| NamedItem { name, item }).collect()
}

/// An added item with more values than this is expanded field by field, because reports show no more values
/// of a single field.
const MAX_ITEM_VALUES: usize = 16;

/// A walk through two versions of an object, and the differences that were found so far.
pub struct FieldWalk<'a> {
    kind: &'a str,
    group: &'a str,
    show: Visibility,
    /// Whether the previous values of changed and removed fields are shown.
    pub show_before: Visibility,
    /// The fields that other managers own. If such a field is removed, its value is not shown.
    pub owned_by_others: PathCursor<'a>,
    /// Whether large list items are shown field by field, so that no field of an item is omitted.
    pub expands_items: bool,
    path: PathCursor<'a>,
    removed: Vec<FieldDifference>,
    others: DifferenceList,
    /// Number of removed keys.
    pub lost: usize,
    /// Number of lists that lose all of their items.
    pub lists: usize,
}

impl<'a> FieldWalk<'a> {
    /// A walk through an object of this kind and group. `visible` has all paths that may be shown; `None`
    /// means that all paths may be shown.
    pub fn new(kind: &'a str, group: &'a str, show: Visibility, visible: Option<&'a Value>) -> Self {
        Self {
            kind,
            group,
            show,
            show_before: show,
            owned_by_others: PathCursor::new(None),
            expands_items: false,
            path: PathCursor::new(visible),
            removed: Vec::new(),
            others: DifferenceList::default(),
            lost: 0,
            lists: 0,
        }
    }

    /// The differences, removed fields first.
    pub fn differences(self) -> Vec<FieldDifference> {
        let Self { mut removed, others, .. } = self;
        removed.extend(others.into_vec());
        removed
    }

    /// Compares two values at the current path.
    pub fn value(&mut self, before: Option<&Value>, after: Option<&Value>) {
        self.field(before, after, None);
    }

    /// Compares two values of a field at the current path. `siblings` are the sibling fields after the write.
    fn field(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        siblings: Option<&Map<String, Value>>,
    ) {
        let [before, after] = [before, after].map(|side| side.filter(|value| !value.is_null()));
        match (before, after) {
            (None, None) => {}
            (Some(before), None) => self.value_removed(before, siblings),
            (None, Some(after)) => self.value_added(after),
            (Some(before), Some(after)) => match (before, after) {
                (before, after) if before == after || !has_content(before) && !has_content(after) => {}
                (before, after) if !has_content(after) => self.content_removed(before, siblings),
                (before, after) if !has_content(before) => self.content_added(after),
                (Value::Object(before), Value::Object(after)) => self.map(before, after),
                (Value::Array(before), Value::Array(after)) => self.list(before, after),
                (before, after)
                    if path::is_equivalent(self.kind, self.path.segments(), before, after)
                        || self.removed_field(siblings).is_default_for(after, before) => {}
                (before, after) => self.value_changed(before, after),
            },
        }
    }

    fn map(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            self.enter(PathSegment::Key(key.clone()));
            self.field(before.get(key), after.get(key), Some(after));
            self.leave();
        }
    }

    fn list(&mut self, before: &[Value], after: &[Value]) {
        if let Some((old, new)) = items::item_names(self.path.last_key(), before, after) {
            self.compare_named(&named_items(&old, before), &named_items(&new, after));
            return;
        }
        for step in align(before.len(), after.len(), MAX_PAIRS, |one, other| before[one] == after[other]) {
            match step {
                AlignStep::Pair(one, other) => self.pair(&other.to_string(), &before[one], &after[other]),
                AlignStep::Removed(one) => self.item_removed(&one.to_string(), &before[one]),
                AlignStep::Added(other) => self.item_added(&other.to_string(), &after[other]),
            }
        }
    }

    /// Compares lists whose items have unique names.
    fn compare_named(&mut self, before: &[NamedItem<'_>], after: &[NamedItem<'_>]) {
        let positions: HashMap<&str, usize> = after.iter().map(|named| named.name).zip(0..).collect();
        let mut is_new = vec![true; after.len()];
        let mut order = Vec::new();
        for NamedItem { name, item } in before {
            match positions.get(name) {
                Some(&index) => {
                    is_new[index] = false;
                    order.push((index, *name));
                    self.pair(name, item, after[index].item);
                }
                None => self.item_removed(name, item),
            }
        }
        for (added, _) in after.iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            self.item_added(added.name, added.item);
        }
        if !order.is_sorted() {
            let old: Vec<&str> = order.iter().map(|(_, name)| *name).collect();
            order.sort_unstable();
            let new: Vec<&str> = order.iter().map(|(_, name)| *name).collect();
            let [old, new] = [Value::from(old), Value::from(new)];
            self.report(Some(&old), Some(&new));
        }
    }

    fn pair(&mut self, name: &str, before: &Value, after: &Value) {
        self.enter(PathSegment::Item(name.to_owned()));
        self.value(Some(before), Some(after));
        self.leave();
    }

    fn item_removed(&mut self, name: &str, item: &Value) {
        self.lost += item_leaves(item);
        self.enter(PathSegment::Item(name.to_owned()));
        self.report(Some(item), None);
        self.leave();
    }

    fn item_added(&mut self, name: &str, item: &Value) {
        self.enter(PathSegment::Item(name.to_owned()));
        if self.expands_items && self.show == Visibility::Values && leaves(item) > MAX_ITEM_VALUES {
            self.value_added(item);
        } else {
            self.report(None, Some(item));
        }
        self.leave();
    }

    /// Reports a removed value. An empty map or list is a value of its own: an empty selector selects everything.
    fn value_removed(&mut self, before: &Value, siblings: Option<&Map<String, Value>>) {
        if has_content(before) {
            self.content_removed(before, siblings);
        } else if !self.removed_field(siblings).is_default(before) {
            self.lost += 1;
            self.report(Some(before), None);
        }
    }

    /// Reports the removed fields of a map, the removed items of a list, or a removed scalar.
    fn content_removed(&mut self, before: &Value, siblings: Option<&Map<String, Value>>) {
        match before {
            value if self.removed_field(siblings).is_default(value) => {}
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                    self.enter(PathSegment::Key(key.clone()));
                    self.value_removed(value, None);
                    self.leave();
                }
            }
            Value::Array(items) => {
                self.lists += 1;
                for (name, item) in items::item_labels(self.path.last_key(), items).iter().zip(items) {
                    self.item_removed(name, item);
                }
            }
            value => {
                self.lost += 1;
                self.report(Some(value), None);
            }
        }
    }

    fn removed_field<'f>(&'f self, siblings: Option<&'f Map<String, Value>>) -> RemovedField<'f> {
        RemovedField { kind: self.kind, group: self.group, path: self.path.segments(), siblings }
    }

    fn value_added(&mut self, after: &Value) {
        if has_content(after) {
            self.content_added(after);
        } else {
            self.report(None, Some(after));
        }
    }

    fn content_added(&mut self, after: &Value) {
        match after {
            Value::Object(map) => {
                for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                    self.enter(PathSegment::Key(key.clone()));
                    self.value_added(value);
                    self.leave();
                }
            }
            Value::Array(items) => {
                for (name, item) in items::item_labels(self.path.last_key(), items).iter().zip(items) {
                    self.item_added(name, item);
                }
            }
            value => {
                self.report(None, Some(value));
            }
        }
    }

    fn value_changed(&mut self, before: &Value, after: &Value) {
        if before.is_object() || before.is_array() {
            self.lost += leaves(before);
            self.lists += usize::from(before.is_array());
        } else if after.is_object() || after.is_array() {
            self.lost += 1;
        }
        self.report(Some(before), Some(after));
    }

    fn report(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let path = path::print(self.path.shown());
        if self.path.shown().len() < self.path.segments().len() {
            self.others.count_secret(path);
            return;
        }
        let (before, after) = match (before, after) {
            (before, None) if self.is_owned_by_others() => {
                (DifferenceSide::of(before, Visibility::Paths), DifferenceSide::Absent)
            }
            (before, after) => {
                (DifferenceSide::of(before, self.show_before), DifferenceSide::of(after, self.show))
            }
        };
        let difference = FieldDifference { path, before, after };
        if difference.after == DifferenceSide::Absent {
            self.removed.push(difference);
        } else {
            self.others.push(difference);
        }
    }

    /// Whether other managers own a part of the value at the current path. If they own a part of a list, an
    /// item that is not found in that part may also be theirs, because items without names are matched by
    /// position.
    fn is_owned_by_others(&self) -> bool {
        let cursor = &self.owned_by_others;
        cursor.is_restricted()
            && match cursor.segments().get(cursor.shown().len()) {
                None | Some(PathSegment::Item(_)) => true,
                Some(PathSegment::Key(_)) => false,
            }
    }

    /// Enters a field of a map or an item of a list.
    fn enter(&mut self, segment: PathSegment) {
        self.owned_by_others.push(segment.clone());
        self.path.push(segment);
    }

    /// Returns to the parent.
    fn leave(&mut self) {
        self.path.pop();
        self.owned_by_others.pop();
    }
}

/// Whether a value is anything but an empty map or list.
fn has_content(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
