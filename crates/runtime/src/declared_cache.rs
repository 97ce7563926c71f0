//! A single-flight cache of declared states: concurrent runs with equal inputs share one state.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use qontract_graphql::ElementSelection;

use crate::data::{BundleReader, Data, QueryLog};
use crate::fault::Fault;
use crate::options::Options;
use crate::type_erasure::AnyDeclaredState;

/// The result of `declare`; `None` if the integration declares no state.
type DeclareResult = Result<Option<Arc<dyn AnyDeclaredState>>, Fault>;

/// A shared declared state.
#[derive(Clone)]
pub struct SharedDeclaredState {
    state: Arc<dyn AnyDeclaredState>,
    /// Keeps the cache entry alive, because the cache has only weak references to entries.
    _entry: Arc<DeclaredCacheEntry>,
}

impl SharedDeclaredState {
    /// Creates a shared state that keeps its cache entry alive.
    pub(crate) fn new(state: Arc<dyn AnyDeclaredState>, entry: Arc<DeclaredCacheEntry>) -> Self {
        Self { state, _entry: entry }
    }
}

impl Deref for SharedDeclaredState {
    type Target = dyn AnyDeclaredState;

    fn deref(&self) -> &Self::Target {
        &*self.state
    }
}

/// Caches the declared states of one integration. An entry is valid as long as a caller holds its state: the cache
/// has only weak references to entries, and a lookup removes the references to dropped entries. The lock is held only
/// to find or add an entry, never while a state is declared.
#[derive(Default)]
pub struct DeclaredStateCache(Mutex<Vec<Weak<DeclaredCacheEntry>>>);

/// One declared state, with its complete input as the cache key.
pub struct DeclaredCacheEntry {
    source: Arc<dyn BundleReader>,
    subset: Option<Arc<ElementSelection>>,
    allowed_schemas: Option<BTreeSet<String>>,
    options: Options,
    /// The result, with the log of its reads, which is added to the log of every caller that gets the state. The
    /// first caller declares the state, and the others wait for it. A fault is cached only for the callers that wait
    /// for it.
    pub result: OnceLock<(DeclareResult, QueryLog)>,
}

impl DeclaredStateCache {
    /// The entry for this input; a new entry has no result yet. Concurrent callers with equal inputs get the same
    /// entry.
    pub fn entry(&self, data: &Data, options: &Options) -> Arc<DeclaredCacheEntry> {
        // The list is consistent at any time, so a panic of another thread does not corrupt it.
        let mut cells = self.0.lock();
        cells.retain(|cell| cell.strong_count() > 0);
        let is_match = |cell: &Arc<DeclaredCacheEntry>| {
            Arc::ptr_eq(&cell.source, data.source())
                && cell.subset.as_ref() == data.subset()
                && cell.options == *options
                && cell.allowed_schemas.as_ref() == data.allowed_schemas()
        };
        cells.iter().filter_map(Weak::upgrade).find(is_match).unwrap_or_else(|| {
            let (source, part) = (Arc::clone(data.source()), data.subset().cloned());
            let (allowed, options) = (data.allowed_schemas().cloned(), options.clone());
            let cell = Arc::new(DeclaredCacheEntry {
                source,
                subset: part,
                allowed_schemas: allowed,
                options,
                result: OnceLock::new(),
            });
            cells.push(Arc::downgrade(&cell));
            cell
        })
    }
}

impl fmt::Debug for SharedDeclaredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedDeclaredState({} shards)", self.keys().len())
    }
}
