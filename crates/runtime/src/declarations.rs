//! A single-flight cache of declared states: concurrent runs with the same input share one state.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use qontract_graphql::Entities;

use crate::data::{Asked, Data, Source};
use crate::erased::AnyDeclared;
use crate::fault::Fault;
use crate::options::Options;

/// The result of `declare`; `None` if the integration declares no state.
type Made = Result<Option<Arc<dyn AnyDeclared>>, Fault>;

/// A shared declared state.
#[derive(Clone)]
pub struct Declaration {
    state: Arc<dyn AnyDeclared>,
    /// Keeps the cache entry alive: the cache holds entries weakly.
    _cell: Arc<Cell>,
}

impl Deref for Declaration {
    type Target = dyn AnyDeclared;

    fn deref(&self) -> &Self::Target {
        &*self.state
    }
}

/// Caches the declared states of one integration. An entry is valid as long as a caller holds its state: the
/// cache keeps weak references and drops dead ones on the next lookup. The lock is held only to find or add
/// an entry, never while a state is declared.
#[derive(Default)]
pub struct Declarations(Mutex<Vec<Weak<Cell>>>);

/// One declared state, with its complete input as the cache key.
struct Cell {
    source: Arc<dyn Source>,
    part: Option<Arc<Entities>>,
    allowed: Option<BTreeSet<String>>,
    options: Options,
    /// The result, with the log of its reads, which is added to the log of every caller that gets the state.
    made: OnceLock<(Made, Asked)>,
}

impl Declarations {
    /// The cached state for this input, or the result of `declare`. Concurrent callers with the same input
    /// wait for the first. A fault is not cached beyond the callers that wait for it.
    pub fn once(
        &self,
        data: &Data,
        options: &Options,
        declare: impl FnOnce(&Data) -> Made,
    ) -> Result<Option<Declaration>, Fault> {
        let cell = self.cell(data, options);
        let (made, log) = cell.made.get_or_init(|| {
            let own = data.apart();
            let made = declare(&own);
            (made, own.asked())
        });
        data.count_as_asked(log);
        let state = made.clone()?;
        Ok(state.map(|state| Declaration { state, _cell: Arc::clone(&cell) }))
    }

    fn cell(&self, data: &Data, options: &Options) -> Arc<Cell> {
        // The list is consistent at any time, so a panic elsewhere does not corrupt it.
        let mut cells = self.0.lock();
        cells.retain(|cell| cell.strong_count() > 0);
        let is = |cell: &Arc<Cell>| {
            Arc::ptr_eq(&cell.source, data.source())
                && cell.part.as_ref() == data.part()
                && cell.options == *options
                && cell.allowed.as_ref() == data.allowed()
        };
        cells.iter().filter_map(Weak::upgrade).find(is).unwrap_or_else(|| {
            let (source, part) = (Arc::clone(data.source()), data.part().cloned());
            let (allowed, options) = (data.allowed().cloned(), options.clone());
            let cell = Arc::new(Cell { source, part, allowed, options, made: OnceLock::new() });
            cells.push(Arc::downgrade(&cell));
            cell
        })
    }
}

impl fmt::Debug for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedDeclaredState({} shards)", self.keys().len())
    }
}
