//! Counts the uses of removal ledgers that were lost, are damaged or were never initialised.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use qontract_access::{ReadPermit, WritePermit};
use qontract_journal::Journal;
use qontract_runtime::guard::{Ledger, LedgerError, LedgerSnapshot, LedgerState, StoreResult};
use qontract_telemetry::journal_metrics::{JournalMetrics, JournalOperation};

/// The removal ledgers of a journal. Requests that failed are counted by the store of the journal.
#[derive(Debug)]
pub(super) struct MeasuredLedger {
    pub(super) journal: Arc<Journal>,
    pub(super) metrics: JournalMetrics,
}

impl Ledger for MeasuredLedger {
    fn load<'a>(
        &'a self,
        permit: &'a ReadPermit,
        integration: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        async move {
            let loaded = self.journal.load(permit, integration).await;
            if let Err(LedgerError::NotInitialised { .. } | LedgerError::Damaged { .. }) = &loaded {
                self.metrics.count_error(JournalOperation::Ledger);
            }
            loaded
        }
        .boxed()
    }

    fn store<'a>(
        &'a self,
        permit: &'a WritePermit,
        integration: &'a str,
        over: Option<&'a str>,
        state: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        self.journal.store(permit, integration, over, state)
    }
}
