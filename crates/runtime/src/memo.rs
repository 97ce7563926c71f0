//! What one round reads once for all of its shards: they often ask for the same list.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

type Cell = Arc<OnceCell<Arc<dyn Any + Send + Sync>>>;

/// What was read in a round already. A clone is the same memo; a new round has a new one.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<BTreeMap<(TypeId, String), Cell>>>);

impl Memo {
    /// The value of this name. The first caller reads it; if that read is dropped, the next caller reads.
    pub async fn once<T, F>(&self, name: impl Into<String>, read: F) -> Arc<T>
    where
        T: Send + Sync + 'static,
        F: Future<Output = T> + Send,
    {
        let key = (TypeId::of::<T>(), name.into());
        // The table is whole at any time, so a panic elsewhere does not spoil it.
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(key).or_default())
        };
        let value = cell.get_or_init(|| async move { Arc::new(read.await) as Arc<dyn Any + Send + Sync> });
        Arc::clone(value.await).downcast().expect("the type is part of the key")
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memo({})", self.0.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::Memo;

    #[tokio::test(start_paused = true)]
    async fn what_many_ask_for_is_read_once() {
        let (memo, reads) = (Memo::default(), AtomicUsize::new(0));
        let read = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            reads.fetch_add(1, Ordering::Relaxed)
        };
        let all = futures_util::future::join_all((0..5).map(|_| memo.once("list", read()))).await;
        assert!(all.iter().all(|value| **value == 0), "{all:?}");
        assert_eq!(*memo.once("another", read()).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_first_gives_up_the_next_one_reads() {
        let memo = Memo::default();
        let never = memo.once("list", std::future::pending::<u8>());
        assert!(tokio::time::timeout(Duration::from_secs(1), never).await.is_err());
        assert_eq!(*memo.once("list", std::future::ready(7u8)).await, 7);
    }
}
