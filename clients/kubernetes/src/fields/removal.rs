//! Removes the fields and list items at many paths from a value.

use serde_json::{Map, Value};

use super::item_index::ItemIndex;
use super::lists::{field_name, is_key};
use super::{FieldPath, FieldSet};

/// Removes the values at `paths` from `value`. Also removes maps and lists that become empty. The paths are
/// sorted in descending order, have more than `depth` parts, and share the first `depth` parts, which denote
/// `value`.
pub(super) fn remove(value: &mut Value, paths: &[&FieldPath], depth: usize, retained: &FieldSet) {
    let mut items = value.as_array().map(|items| ListRemoval::new(items.len()));
    for group in paths.chunk_by(|one, other| one[depth] == other[depth]) {
        let mut removal = Removal::new(group, depth);
        match (&mut *value, &mut items, field_name(removal.part())) {
            (Value::Object(map), _, Some(key)) => {
                if let Some(inner) = map.get_mut(key)
                    && removal.removes(inner, retained)
                {
                    map.remove(key);
                }
            }
            (Value::Array(list), Some(items), _) => items.remove(list, &mut removal, retained),
            _ => {}
        }
    }
    if let (Value::Array(list), Some(items)) = (value, items) {
        items.drop_removed(list);
    }
}

/// Removed paths that go through the same child of a value.
struct Removal<'a> {
    /// The path of the child.
    path: &'a [String],
    /// The paths below the child.
    below: Vec<&'a FieldPath>,
    /// Whether the child itself is removed.
    is_whole: bool,
}

impl<'a> Removal<'a> {
    /// The paths of `group` share their first `depth + 1` parts. The shortest path is the last.
    fn new(group: &[&'a FieldPath], depth: usize) -> Self {
        let path = &group[0][..=depth];
        let below: Vec<&FieldPath> = group.iter().copied().filter(|path| path.len() > depth + 1).collect();
        Self { path, is_whole: below.len() < group.len(), below }
    }

    fn part(&self) -> &'a str {
        self.path.last().map_or("", String::as_str)
    }

    /// Removes the paths below the child `value`; returns whether the child itself is to be removed.
    fn removes(&self, value: &mut Value, retained: &FieldSet) -> bool {
        if self.below.is_empty() {
            return self.is_whole;
        }
        remove(value, &self.below, self.path.len(), retained);
        let is_empty =
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        self.is_whole || is_empty && !retained.contains_below(self.path)
    }
}

/// Removes items of one list. The items stay in place until all removals are known, so that positions do not
/// change.
struct ListRemoval {
    index: ItemIndex,
    /// Whether the item at each position is removed.
    is_removed: Vec<bool>,
}

impl ListRemoval {
    fn new(items: usize) -> Self {
        Self { index: ItemIndex::default(), is_removed: vec![false; items] }
    }

    fn remove(&mut self, list: &mut [Value], removal: &mut Removal<'_>, retained: &FieldSet) {
        let positions = self.index.positions(list, removal.part());
        let Some(position) = positions.iter().copied().find(|position| !self.is_removed[*position]) else {
            return;
        };
        // An identifying field is not removed before its item, because the item could not be found without
        // it.
        let depth = removal.path.len();
        let part = removal.part();
        removal.below.retain(|path| path.len() > depth + 1 || !is_key(part, &path[depth]));
        self.is_removed[position] = removal.removes(&mut list[position], retained);
    }

    fn drop_removed(self, list: &mut Vec<Value>) {
        let mut is_removed = self.is_removed.into_iter();
        list.retain(|_| is_removed.next() != Some(true));
    }
}
