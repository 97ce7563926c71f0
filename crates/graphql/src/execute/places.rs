//! Where the keys that a selection reads are in the maps it meets.
//!
//! Maps of one kind have few different sets of keys: a selection looks for its keys once in each of them.

use std::collections::HashMap;
use std::rc::Rc;

use qontract_bundle::Keys;

use crate::plan::{Plan, Read, SelectionId};

/// So many sets of keys are remembered for a selection: maps that all have different keys are not.
const MOST_REMEMBERED: usize = 4096;

/// What is remembered of one execution, by selection.
pub struct Places(Vec<Known>);

#[derive(Default)]
struct Known {
    last: Option<(Keys, Found)>,
    /// By the identity of the keys, which is theirs for as long as they are held here.
    found: HashMap<usize, (Keys, Found), foldhash::fast::RandomState>,
}

/// For each field of a selection where its key is; far beyond every map, if it is not there.
type Found = Rc<[usize]>;

impl Places {
    /// Nothing yet.
    pub fn new(plan: &Plan) -> Self {
        Self(plan.selections.iter().map(|_| Known::default()).collect())
    }

    /// Where the keys of a selection are among `keys`.
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
