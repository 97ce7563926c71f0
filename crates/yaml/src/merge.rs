//! Computes the entries of a map: applies merge keys, and keeps the last of several entries with equal keys.

use std::collections::HashMap;

use qontract_diagnostics::{Diagnostic, Span, code};

use crate::tree::{ArenaRange, Document, EntrySlot, NodeId, Slot};

/// A key as written.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// A string.
    Str(ArenaRange),
    /// `<<`
    Merge,
    /// An invalid key, which was already reported.
    Refused,
}

/// An entry as written.
#[derive(Clone, Copy, Debug)]
pub struct RawEntry {
    /// The key.
    pub key: Key,
    /// The bytes of the key.
    pub key_span: Span,
    /// The value.
    pub value: NodeId,
}

impl RawEntry {
    /// The entry, if its key is a string.
    pub fn own(&self) -> Option<EntrySlot> {
        let Key::Str(key) = self.key else { return None };
        Some(EntrySlot { key, key_span: self.key_span, value: self.value })
    }
}

/// Whether the entries of a map are exactly those written: no merge key and no duplicate key. Always false
/// for large maps.
pub fn is_simple(raw: &[RawEntry], document: &Document) -> bool {
    let text = document.text.as_bytes();
    let key = |entry: &RawEntry| match entry.key {
        Key::Str(key) => Some(&text[key.range()]),
        Key::Merge | Key::Refused => None,
    };
    let is_new = |(place, entry): (usize, &RawEntry)| {
        key(entry).is_some_and(|own| raw[..place].iter().all(|before| key(before) != Some(own)))
    };
    raw.len() <= MAX_LINEAR_SEARCH && raw.iter().enumerate().all(is_new)
}

/// The entries of one map under construction: each key once, at its first position, with its last value.
struct EntryCollector<'d> {
    document: &'d Document,
    entries: Vec<EntrySlot>,
    /// Index by key; used only for maps too large for a linear search.
    index_by_key: HashMap<&'d str, usize>,
}

/// Maximum number of entries for which a linear search is faster than a hash table.
const MAX_LINEAR_SEARCH: usize = 12;

impl<'d> EntryCollector<'d> {
    fn index_of(&self, key: &str) -> Option<usize> {
        if self.entries.len() <= MAX_LINEAR_SEARCH {
            let text = &self.document.text;
            return self.entries.iter().position(|entry| &text[entry.key.range()] == key);
        }
        self.index_by_key.get(key).copied()
    }

    /// Inserts `entry`, and returns the entry that it replaces, with its index.
    fn insert(&mut self, entry: EntrySlot) -> Option<(usize, EntrySlot)> {
        let document: &'d Document = self.document;
        let key = &document.text[entry.key.range()];
        if let Some(place) = self.index_of(key) {
            let replaced = std::mem::replace(&mut self.entries[place], entry);
            return Some((place, replaced));
        }
        self.entries.push(entry);
        if self.entries.len() == MAX_LINEAR_SEARCH + 1 {
            let keys = self.entries.iter().map(|entry| &document.text[entry.key.range()]);
            self.index_by_key = keys.enumerate().map(|(place, key)| (key, place)).collect();
        } else if self.entries.len() > MAX_LINEAR_SEARCH {
            self.index_by_key.insert(key, self.entries.len() - 1);
        }
        None
    }
}

/// The final entries of a map that was written as `raw`.
///
/// Merged entries come first. If several merged maps have the same key, a later merge key takes precedence
/// over an earlier merge key, and an earlier map of a list takes precedence over a later map. The map's own
/// keys take precedence over all merged keys.
pub fn entries(raw: &[RawEntry], document: &Document, findings: &mut Vec<Diagnostic>) -> Vec<EntrySlot> {
    let mut gathered =
        EntryCollector { document, entries: Vec::with_capacity(raw.len()), index_by_key: HashMap::new() };
    for entry in raw.iter().filter(|entry| matches!(entry.key, Key::Merge)) {
        match merged(entry.value, document) {
            Some(merged) => {
                for entry in merged {
                    gathered.insert(entry);
                }
            }
            None => findings.push(
                Diagnostic::new(code::YAML_MERGE, "`<<` takes a map or a list of maps")
                    .at(document.spans[entry.value.0 as usize])
                    .label("this is neither"),
            ),
        }
    }
    // For each merged entry, whether the map itself sets the key.
    let mut overridden = vec![false; gathered.entries.len()];
    for entry in raw {
        let Some(own) = entry.own() else { continue };
        let Some((place, replaced)) = gathered.insert(own) else { continue };
        // Overriding a merged key once is the purpose of merging, so it is not reported.
        if overridden.get(place).is_some_and(|overridden| !overridden) {
            overridden[place] = true;
            continue;
        }
        let message = format!("the key `{}` is defined twice", &document.text[own.key.range()]);
        findings.push(
            Diagnostic::new(code::YAML_DUPLICATE_KEY, message)
                .at(entry.key_span)
                .label("this value wins")
                .note_at("first defined here", replaced.key_span),
        );
    }
    gathered.entries
}

/// Number of entries that `entry` adds to its map.
pub fn size(entry: &RawEntry, document: &Document) -> u64 {
    let of_map = |id: NodeId| match document.slots[id.0 as usize] {
        Slot::Map(stretch) => u64::from(stretch.end - stretch.start),
        _ => 0,
    };
    match (entry.key, document.slots[entry.value.0 as usize]) {
        (Key::Merge, Slot::List(stretch)) => {
            document.items[stretch.range()].iter().map(|id| of_map(*id)).sum()
        }
        (Key::Merge, _) => of_map(entry.value),
        _ => 1,
    }
}

/// The entries of the value of a merge key, those with the lowest precedence first; `None` if the value is
/// not a map or a list of maps.
fn merged(value: NodeId, document: &Document) -> Option<Vec<EntrySlot>> {
    let of_map = |id: NodeId| match document.slots[id.0 as usize] {
        Slot::Map(stretch) => Some(&document.entries[stretch.range()]),
        _ => None,
    };
    if let Slot::List(stretch) = document.slots[value.0 as usize] {
        let mut all = Vec::new();
        for id in document.items[stretch.range()].iter().rev() {
            all.extend_from_slice(of_map(*id)?);
        }
        return Some(all);
    }
    of_map(value).map(<[EntrySlot]>::to_vec)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::{Limits, Value, parse};

    #[test]
    fn maps_of_all_sizes_keep_the_last_value_of_a_key_at_its_first_position() {
        for size in 1..40 {
            let mut text = String::from("base: &base\n  k0: 1\n  other: 2\nmap:\n  <<: *base\n");
            for round in 0..2 {
                (0..size).for_each(|key| writeln!(text, "  k{key}: v{key}-{round}").expect("memory"));
            }
            let parsed = parse(text.as_bytes(), &Limits::default());
            assert_eq!(parsed.findings.len(), size, "each own key is given twice");
            let document = parsed.document.expect("a warning is not an error");
            let Value::Map(root) = document.root().value() else { panic!("a map") };
            let Some(Value::Map(map)) = root.get("map").map(crate::Node::value) else { panic!("a map") };
            let keys: Vec<String> = map.iter().map(|entry| entry.key.to_owned()).collect();
            let rest = (1..size).map(|key| format!("k{key}"));
            let expect: Vec<String> = ["k0".to_owned(), "other".to_owned()].into_iter().chain(rest).collect();
            assert_eq!(keys, expect);
            let last = format!("k{}", size - 1);
            assert_eq!(map.get(&last).expect("a key").value(), Value::Str(&format!("v{}-1", size - 1)));
        }
    }
}
