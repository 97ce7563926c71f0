//! Looks up keys of large maps by binary search.

use std::collections::HashMap;

use super::{ArenaRange, Document, Slot};

/// The entries of each large map of a document, sorted by key.
///
/// Without this index, looking up all keys of a map would take quadratic time.
#[derive(Debug)]
pub(crate) struct MapIndex {
    /// The sorted entries of each map, by the index of its first entry.
    sorted: HashMap<u32, Box<[u32]>>,
}

impl MapIndex {
    /// Minimum number of entries of a map that is indexed. Smaller maps are searched linearly.
    pub const MIN_ENTRIES: usize = 32;

    /// The index of a whole document.
    pub fn new(document: &Document) -> Self {
        let maps = document.slots.iter().filter_map(|slot| match slot {
            Slot::Map(stretch) if stretch.range().len() >= Self::MIN_ENTRIES => Some(*stretch),
            _ => None,
        });
        let sorted = |stretch: ArenaRange| {
            let mut entries: Box<[u32]> = (stretch.start..stretch.end).collect();
            entries.sort_unstable_by_key(|entry| key(document, *entry));
            (stretch.start, entries)
        };
        Self { sorted: maps.map(sorted).collect() }
    }

    /// Finds the entry of a large map with this key. Returns the index of the entry among the document's
    /// entries.
    pub fn find(&self, document: &Document, map: ArenaRange, wanted: &str) -> Option<usize> {
        let entries = self.sorted.get(&map.start)?;
        let found = entries.binary_search_by_key(&wanted, |entry| key(document, *entry)).ok()?;
        Some(entries[found] as usize)
    }
}

fn key(document: &Document, entry: u32) -> &str {
    &document.text[document.entries[entry as usize].key.range()]
}

#[cfg(test)]
mod tests {
    use super::MapIndex;
    use crate::{Limits, Node, Value, parse};

    #[test]
    fn every_key_of_a_map_is_found_however_large_it_is() {
        for entries in
            [0, 1, MapIndex::MIN_ENTRIES - 1, MapIndex::MIN_ENTRIES, MapIndex::MIN_ENTRIES + 1, 500]
        {
            // The keys are not sorted, and the document contains another large map.
            let own: Vec<String> =
                (0..entries).rev().map(|number| format!("k{number}: {number}\n")).collect();
            let other: Vec<String> = (0..50).map(|number| format!("  o{number}: x\n")).collect();
            let text = format!("{}other:\n{}", own.concat(), other.concat());
            let document = parse(text.as_bytes(), &Limits::default()).document.unwrap();
            let Value::Map(map) = document.root().value() else { panic!("a map") };
            for number in 0..entries {
                let found = map.get(&format!("k{number}")).map(Node::value);
                assert_eq!(found, Some(Value::Int(i64::try_from(number).unwrap())), "{number} of {entries}");
            }
            assert!(
                map.get("k").is_none()
                    && map.get(&format!("k{entries}")).is_none()
                    && map.get("o1").is_none()
            );
            let Some(Value::Map(other)) = map.get("other").map(Node::value) else { panic!("a map") };
            assert!(other.get("o49").is_some() && other.get("k1").is_none());
        }
    }
}
