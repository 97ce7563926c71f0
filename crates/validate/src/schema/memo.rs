//! What the keys of a map alone tell, found out once for each set of keys.
//!
//! Maps share their keys, so a bundle with a hundred thousand maps has some hundred sets of them, and each schema sees a few.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use qontract_bundle::Map;

use super::rule::Own;

/// Whether sets of keys are as keywords demand.
///
/// Both are known by their addresses, so it must go before the schemas or any of the maps do: see [`Series`](super::Series).
#[derive(Debug, Default)]
pub struct Memo(HashMap<(usize, usize), bool, RandomState>);

impl Memo {
    /// Whether the keys of `map` are as `own` demands, which must be told by keys alone; `find` finds it out.
    pub fn keeps<E>(
        &mut self,
        own: &Own<'_>,
        map: &Map,
        find: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let both = (std::ptr::from_ref(own).addr(), map.keys().id());
        if let Some(known) = self.0.get(&both) {
            return Ok(*known);
        }
        let keeps = find()?;
        self.0.insert(both, keeps);
        Ok(keeps)
    }
}
