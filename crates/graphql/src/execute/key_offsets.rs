//! An inline cache: the offsets of the keys that a selection reads, by the key set of a map.
//!
//! Maps of one kind have few different key sets: a selection looks its keys up once per key set.

use std::collections::HashMap;
use std::rc::Rc;

use qontract_bundle::KeySet;

use crate::plan::{Plan, ReadKey, SelectionId};

/// Maximum number of key sets cached per selection. Then the cache is cleared, as the maps have too many
/// different key sets.
const MAX_CACHED_KEY_SETS: usize = 4096;

/// The cache of one execution, by selection.
pub struct KeyOffsetCache(Vec<SelectionOffsets>);

#[derive(Default)]
struct SelectionOffsets {
    last: Option<(KeySet, KeyOffsets)>,
    /// By the identity of the key set, which is unique as long as it is held here.
    offsets: HashMap<usize, (KeySet, KeyOffsets), foldhash::fast::RandomState>,
}

/// For each field of a selection the offset of its key; out of range if the key is missing.
type KeyOffsets = Rc<[usize]>;

impl KeyOffsetCache {
    /// An empty cache for a plan.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| SelectionOffsets::default()).collect())
    }

    /// The offsets of a selection's keys in `keys`.
    pub fn of(&mut self, plan: &Plan, selection: SelectionId, keys: &KeySet) -> KeyOffsets {
        let known = &mut self.0[selection];
        if let Some((last, found)) = &known.last
            && last.is_same(keys)
        {
            return Rc::clone(found);
        }
        if known.offsets.len() >= MAX_CACHED_KEY_SETS {
            known.offsets.clear();
        }
        let entry = known.offsets.entry(keys.id());
        let (keys, found) = entry.or_insert_with(|| (keys.clone(), find_offsets(plan, selection, keys)));
        let found = Rc::clone(found);
        known.last = Some((keys.clone(), Rc::clone(&found)));
        found
    }
}

fn find_offsets(plan: &Plan, selection: SelectionId, keys: &KeySet) -> KeyOffsets {
    let place = |read: &ReadKey| match read {
        ReadKey::Key(key) => keys.index_of(key).unwrap_or(usize::MAX),
        ReadKey::Path | ReadKey::Schema | ReadKey::Nothing => usize::MAX,
    };
    plan.selections[selection].fields.iter().map(|field| place(&field.read)).collect()
}
