//! An inline cache: for each selection and each key set of a map, the offsets of the keys that the selection
//! reads.
//!
//! Maps of the same type have few different key sets, so a selection looks up its keys once per key set.

use std::collections::HashMap;
use std::rc::Rc;

use qontract_bundle::KeySet;

use crate::plan::{Plan, ReadKey, SelectionId};

/// Maximum number of key sets cached per selection. When this number is reached, the cache is cleared.
const MAX_CACHED_KEY_SETS: usize = 4096;

/// For each selection of a plan, the key offsets that were looked up during one execution.
pub struct KeyOffsetCache(Vec<SelectionOffsets>);

#[derive(Default)]
struct SelectionOffsets {
    /// The result of the last lookup, because consecutive maps often have the same key set.
    last: Option<(KeySet, KeyOffsets)>,
    /// Offsets by the identity of the key set, which is unique while the entry holds the key set.
    offsets: HashMap<usize, (KeySet, KeyOffsets), foldhash::fast::RandomState>,
}

/// For each field of a selection, the offset of its key; out of range if the key is missing.
type KeyOffsets = Rc<[usize]>;

impl KeyOffsetCache {
    /// Creates an empty cache for a plan.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| SelectionOffsets::default()).collect())
    }

    /// The offsets of a selection's keys in `keys`.
    pub fn of(&mut self, plan: &Plan, selection: SelectionId, keys: &KeySet) -> KeyOffsets {
        let cache = &mut self.0[selection];
        if let Some((last, offsets)) = &cache.last
            && last.is_same(keys)
        {
            return Rc::clone(offsets);
        }
        if cache.offsets.len() >= MAX_CACHED_KEY_SETS {
            cache.offsets.clear();
        }
        let entry = cache.offsets.entry(keys.id());
        let (keys, offsets) = entry.or_insert_with(|| (keys.clone(), find_offsets(plan, selection, keys)));
        let offsets = Rc::clone(offsets);
        cache.last = Some((keys.clone(), Rc::clone(&offsets)));
        offsets
    }
}

fn find_offsets(plan: &Plan, selection: SelectionId, keys: &KeySet) -> KeyOffsets {
    let offset = |read: &ReadKey| match read {
        ReadKey::Key(key) => keys.index_of(key).unwrap_or(usize::MAX),
        ReadKey::Path | ReadKey::Schema | ReadKey::Nothing => usize::MAX,
    };
    plan.selections[selection].fields.iter().map(|field| offset(&field.read)).collect()
}
