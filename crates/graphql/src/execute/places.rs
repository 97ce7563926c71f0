//! An inline cache: the offsets of the keys that a selection reads, by the key set of a map.
//!
//! Maps of one kind have few different key sets: a selection looks its keys up once per key set.

use std::collections::HashMap;
use std::rc::Rc;

use qontract_bundle::Keys;

use crate::plan::{Plan, Read, SelectionId};

/// Maximum number of key sets cached per selection. Then the cache is cleared, as the maps have too many
/// different key sets.
const MOST_REMEMBERED: usize = 4096;

/// The cache of one execution, by selection.
pub struct Places(Vec<Known>);

#[derive(Default)]
struct Known {
    last: Option<(Keys, Found)>,
    /// By the identity of the key set, which is unique as long as it is held here.
    found: HashMap<usize, (Keys, Found), foldhash::fast::RandomState>,
}

/// For each field of a selection the offset of its key; out of range if the key is missing.
type Found = Rc<[usize]>;

impl Places {
    /// An empty cache for a plan.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| Known::default()).collect())
    }

    /// The offsets of a selection's keys in `keys`.
    pub fn of(&mut self, plan: &Plan, selection: SelectionId, keys: &Keys) -> Found {
        let known = &mut self.0[selection];
        if let Some((last, found)) = &known.last
            && last.is_same(keys)
        {
            return Rc::clone(found);
        }
        if known.found.len() >= MOST_REMEMBERED {
            known.found.clear();
        }
        let entry = known.found.entry(keys.id());
        let (keys, found) = entry.or_insert_with(|| (keys.clone(), look(plan, selection, keys)));
        let found = Rc::clone(found);
        known.last = Some((keys.clone(), Rc::clone(&found)));
        found
    }
}

fn look(plan: &Plan, selection: SelectionId, keys: &Keys) -> Found {
    let place = |read: &Read| match read {
        Read::Key(key) => keys.place(key).unwrap_or(usize::MAX),
        Read::Path | Read::Schema | Read::Nothing => usize::MAX,
    };
    plan.selections[selection].fields.iter().map(|field| place(&field.read)).collect()
}
