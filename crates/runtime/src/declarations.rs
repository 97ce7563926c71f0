//! What runs side by side declare of the same data: it is made once, and gone with the last of them.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use qontract_graphql::Entities;

use crate::data::{Asked, Data, Source};
use crate::erased::AnyDeclared;
use crate::fault::Fault;
use crate::options::Options;

/// What came of declaring: nothing, if the integration declares no state.
type Made = Result<Option<Arc<dyn AnyDeclared>>, Fault>;

/// A declared state, which others may have too.
#[derive(Clone)]
pub struct Declaration {
    state: Arc<dyn AnyDeclared>,
    /// While it is held anywhere, callers that ask for the same state get it.
    _cell: Arc<Cell>,
}

impl Deref for Declaration {
    type Target = dyn AnyDeclared;

    fn deref(&self) -> &Self::Target {
        &*self.state
    }
}

/// The declared states of a room that are still in use.
#[derive(Default)]
pub struct Declarations(Mutex<Vec<Weak<Cell>>>);

/// One declared state, and all that it depends on.
struct Cell {
    source: Arc<dyn Source>,
    part: Option<Arc<Entities>>,
    allowed: Option<BTreeSet<String>>,
    options: Options,
    /// With what was asked on the way, which counts as asked by each who gets it.
    made: OnceLock<(Made, Asked)>,
}

impl Declarations {
    /// What `declare` makes of the data. Concurrent callers that ask for the same state wait for the first.
    pub fn once(
        &self,
        data: &Data,
        options: &Options,
        declare: impl FnOnce(&Data) -> Made,
    ) -> Result<Option<Declaration>, Fault> {
        let cell = self.cell(data, options);
        let (made, asked) = cell.made.get_or_init(|| {
            let own = data.apart();
            let made = declare(&own);
            (made, own.asked())
        });
        data.count_as_asked(asked);
        let state = made.clone()?;
        Ok(state.map(|state| Declaration { state, _cell: Arc::clone(&cell) }))
    }

    fn cell(&self, data: &Data, options: &Options) -> Arc<Cell> {
        // The list is whole at any time, so a panic elsewhere does not spoil it.
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        write!(f, "Declaration({} shards)", self.keys().len())
    }
}
