//! Caches the result of assertions that depend only on the keys of a map, per assertion and key set.
//!
//! Maps share their key sets: a bundle with a hundred thousand maps has a few hundred key sets, and each
//! schema applies to a few of them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use qontract_bundle::Map;

use super::rule::Assertion;

/// Cached results of assertions for key sets.
///
/// The key of an entry is the pair of the memory addresses of the assertion and of the key set. Entries are
/// never invalidated. Therefore, the cache must be dropped before the schemas and the maps, which
/// [`CheckSession`](super::CheckSession) ensures.
#[derive(Debug, Default)]
pub struct KeyCheckCache(HashMap<(usize, usize), bool, RandomState>);

impl KeyCheckCache {
    /// Whether `own`, which must depend only on keys, is true for `map`; `find` computes it on a cache miss.
    pub fn get_or_check<E>(
        &mut self,
        own: &Assertion<'_>,
        map: &Map,
        find: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let both = (std::ptr::from_ref(own).addr(), map.keys().id());
        if let Some(holds) = self.0.get(&both) {
            return Ok(*holds);
        }
        let holds = find()?;
        self.0.insert(both, holds);
        Ok(holds)
    }
}
