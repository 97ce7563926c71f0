//! The journal: a store that all processes of a platform share. It contains these blobs:
//!
//! | blob | content |
//! |---|---|
//! | `format` | the version of the format, and the integrations that have a ledger |
//! | `ledger/INTEGRATION` | the [removal ledger](qontract_runtime::guard::LedgerState), with a checksum |
//! | `lease/INTEGRATION/DIGEST` | the lease of a shard, named by the digest of its key |
//! | `rounds/DAY/RUN~NUMBER-DIGEST` | the [steps of a round](RoundRecord), before they are applied, and their results |
//! | `orders/…` | the [orders](Orders) of operators to loops |
//! | `reconciled/…` | the [data that each loop last reconciled](ReconciledBundles) |
//! | `runs/DAY/RUN~SUMMARY` | the [record of a run](qontract_runtime::RunRecord); its key is its [summary](RunKey) |
//!
//! **Invariant:** a journal that was lost, in whole or in part, is never mistaken for a new one. `format` is the
//! index of the ledgers that must exist. It is created only by [`Journal::init`] or by the first write to a target
//! that is known to be new.

mod document;
mod lease;
mod orders;
mod reconciled;
mod rounds;
mod run_key;
mod run_records;
mod transfer;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use qontract_access::{ReadPermit, WritePermit};
use qontract_client_blobs::{BlobContent, BlobKey, Blobs, BlobsError, Etag, Precondition, list_all};
use qontract_runtime::guard::{Ledger, LedgerError, LedgerSnapshot, LedgerState, StoreResult};

use document::{IndexError, JournalIndex};

pub use lease::{LeaseHost, LeaseProcess, LeaseTable, LeaseTiming};
pub use orders::{CurrentOrders, LoggedOrder, Order, OrderAction, OrderOrigin, Orders, OrdersError, Pause};
pub use reconciled::{PointerUpdate, ReconciledBundles, ReconciledError, ReconciledPointer, StoredPointer};
pub use rounds::{ChangeResult, RoundOwner, RoundRecord, Rounds};
pub use run_key::{ChangesByKind, RunFacts, RunId, RunKey, RunSummary};
pub use run_records::{PrunedRuns, RecordsError, Retention, RunRecords};
pub use transfer::{TransferEnd, TransferError, copy};

/// Maximum number of attempts to write the index when other processes write it concurrently.
const MAX_ATTEMPTS: usize = 100;

/// The key prefix of ledgers.
const LEDGER_PREFIX: &str = "ledger/";

/// The meaning of a missing journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingJournal {
    /// The journal was lost, or the operator has not initialised it yet: nothing is removed without approval.
    Lost,
    /// The target itself is new, so the journal is created with the first write.
    New,
}

/// The location of a journal, for messages.
#[derive(Clone, Debug)]
pub struct JournalLocation {
    /// The directory or URL.
    pub place: String,
    /// The command that initialises the journal.
    pub init: String,
}

/// The journal of a platform.
pub struct Journal {
    blobs: Arc<dyn Blobs>,
    /// The store of the leases.
    lease_blobs: Arc<dyn Blobs>,
    location: JournalLocation,
    absence: MissingJournal,
    /// Whether this process has found the journal before. If it has, a missing journal counts as lost.
    seen: AtomicBool,
    /// A cache of the ledgers that this process has found in the index. Entries are never invalidated.
    registered: Mutex<BTreeSet<String>>,
}

/// The state in which the initialisation finds the index.
enum IndexState {
    Absent,
    Damaged,
    Whole(JournalIndex),
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("location", &self.location).finish_non_exhaustive()
    }
}

/// The result of [`Journal::init`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitResult {
    /// The journal was created.
    Created,
    /// The journal existed and was intact.
    Unchanged,
    /// These parts were lost or damaged and were created again.
    Repaired(Vec<String>),
}

/// The result of [`Journal::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalStatus {
    /// The target is new, so the journal will be created with the first write.
    New,
    /// Every part exists and is readable.
    Whole {
        /// Number of integrations that have a ledger.
        ledgers: usize,
    },
}

impl Journal {
    /// Creates access to the journal in a store.
    pub fn new(blobs: Arc<dyn Blobs>, location: JournalLocation, absence: MissingJournal) -> Self {
        let (lease_blobs, seen) = (Arc::clone(&blobs), AtomicBool::new(false));
        Self { blobs, lease_blobs, location, absence, seen, registered: Mutex::default() }
    }

    /// Stores the leases in another store, because leases need not survive a crash of the machine that stores them.
    #[must_use]
    pub fn with_leases_in(self, lease_blobs: Arc<dyn Blobs>) -> Self {
        Self { lease_blobs, ..self }
    }

    /// Creates access to the leases in the journal for this process.
    pub fn leases(&self, host: Arc<dyn LeaseHost>, process: LeaseProcess, timing: LeaseTiming) -> LeaseTable {
        LeaseTable::new(Arc::clone(&self.lease_blobs), host, process, timing)
    }

    /// The orders to loops.
    pub fn orders(&self) -> Orders {
        Orders::new(Arc::clone(&self.blobs))
    }

    /// The data that loops last reconciled.
    pub fn reconciled(&self) -> ReconciledBundles {
        ReconciledBundles::new(Arc::clone(&self.blobs))
    }

    /// The store of the journal.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// The location of the journal.
    pub fn location(&self) -> &JournalLocation {
        &self.location
    }

    /// Reads every part of the journal and fails if a part is lost or damaged.
    pub async fn check(&self, read: &ReadPermit) -> Result<JournalStatus, LedgerError> {
        let (Some(format), _) = self.load_index(read).await? else { return Ok(JournalStatus::New) };
        for integration in &format.ledgers {
            self.load_ledger(read, integration).await?;
        }
        Ok(JournalStatus::Whole { ledgers: format.ledgers.len() })
    }

    /// Creates the journal or, if it exists, each part of it that is lost or damaged. Intact parts are not changed.
    pub async fn init(&self, read: &ReadPermit, write: &WritePermit) -> Result<InitResult, LedgerError> {
        let empty = BlobContent::new(document::encode(&LedgerState::default()));
        let (bytes, over) = self.read_blob(read, &index_key()).await?;
        let index = match bytes.as_deref().map(JournalIndex::decode) {
            None => IndexState::Absent,
            Some(Err(IndexError::Damaged)) => IndexState::Damaged,
            Some(Err(error @ IndexError::Unsupported(_))) => return Err(self.damaged(error.to_string())),
            Some(Ok(format)) => IndexState::Whole(format),
        };
        let mut ledgers = self.stored_ledgers(read).await?;
        if let IndexState::Whole(format) = &index {
            ledgers.extend(format.ledgers.iter().cloned());
        }
        let mut lost = Vec::new();
        for integration in &ledgers {
            let key = ledger_key(integration)?;
            let (bytes, _) = self.read_blob(read, &key).await?;
            if bytes.is_none_or(|bytes| document::decode(&bytes).is_err()) {
                self.blobs.put(write, &key, &empty, &Precondition::Any).await.map_err(unavailable)?;
                lost.push(integration.clone());
            }
        }
        let was_whole = matches!(index, IndexState::Whole(_));
        if !was_whole
            && self.put_if_unchanged(write, &index_key(), JournalIndex::of(ledgers).encode(), over).await?
                != StoreResult::Done
        {
            return Err(contended());
        }
        Ok(match index {
            IndexState::Absent => InitResult::Created,
            IndexState::Damaged => {
                lost.insert(0, "index".to_owned());
                InitResult::Repaired(lost)
            }
            IndexState::Whole(_) if lost.is_empty() => InitResult::Unchanged,
            IndexState::Whole(_) => InitResult::Repaired(lost),
        })
    }

    /// The integrations that have a stored ledger, even if the index does not list it.
    async fn stored_ledgers(&self, read: &ReadPermit) -> Result<BTreeSet<String>, LedgerError> {
        let entries = list_all(&*self.blobs, read, LEDGER_PREFIX).await.map_err(unavailable)?;
        Ok(entries
            .iter()
            .filter_map(|entry| entry.key.strip_prefix(LEDGER_PREFIX))
            .map(str::to_owned)
            .collect())
    }

    /// The index of the journal; `None` if the journal has not been created yet.
    async fn load_index(
        &self,
        read: &ReadPermit,
    ) -> Result<(Option<JournalIndex>, Option<Etag>), LedgerError> {
        let (bytes, etag) = self.read_blob(read, &index_key()).await?;
        let Some(bytes) = bytes else {
            if self.absence == MissingJournal::New && !self.seen.load(Ordering::Acquire) {
                return Ok((None, None));
            }
            let JournalLocation { place, init } = self.location.clone();
            return Err(LedgerError::NotInitialised { place, init });
        };
        let format = JournalIndex::decode(&bytes).map_err(|error| self.damaged(error.to_string()))?;
        self.seen.store(true, Ordering::Release);
        Ok((Some(format), etag))
    }

    async fn load_ledger(&self, read: &ReadPermit, integration: &str) -> Result<LedgerSnapshot, LedgerError> {
        let (format, _) = self.load_index(read).await?;
        let (bytes, etag) = self.read_blob(read, &ledger_key(integration)?).await?;
        let Some(bytes) = bytes else {
            if format.is_some_and(|format| format.ledgers.contains(integration)) {
                return Err(self.damaged(format!("has lost the removals of `{integration}`")));
            }
            return Ok(LedgerSnapshot { state: LedgerState::default(), version: None });
        };
        let state = document::decode(&bytes)
            .map_err(|what| self.damaged(format!("cannot be read for `{integration}`: {what}")))?;
        Ok(LedgerSnapshot { state, version: etag.map(|Etag(tag)| tag) })
    }

    async fn store_ledger(
        &self,
        write: &WritePermit,
        integration: &str,
        over: Option<&str>,
        state: &LedgerState,
    ) -> Result<StoreResult, LedgerError> {
        let over_tag = over.map(|tag| Etag(tag.to_owned()));
        let stored = self
            .put_if_unchanged(write, &ledger_key(integration)?, document::encode(state), over_tag)
            .await?;
        if stored == StoreResult::Done && !self.is_registered(integration) {
            // The integration is registered before any object is removed, so that a ledger that is missing later
            // counts as lost.
            self.register(write, integration).await?;
        }
        Ok(stored)
    }

    /// Adds an integration to the index. The index is created with its first integration.
    async fn register(&self, write: &WritePermit, integration: &str) -> Result<(), LedgerError> {
        let read = ReadPermit::for_data();
        for _ in 0..MAX_ATTEMPTS {
            let (format, over) = self.load_index(&read).await?;
            let mut format = format.unwrap_or_default();
            let is_new = format.ledgers.insert(integration.to_owned());
            if !is_new
                || self.put_if_unchanged(write, &index_key(), format.encode(), over).await?
                    == StoreResult::Done
            {
                self.seen.store(true, Ordering::Release);
                self.registered.lock().insert(integration.to_owned());
                return Ok(());
            }
        }
        Err(contended())
    }

    fn is_registered(&self, integration: &str) -> bool {
        self.registered.lock().contains(integration)
    }

    async fn read_blob(
        &self,
        read: &ReadPermit,
        key: &BlobKey,
    ) -> Result<(Option<Vec<u8>>, Option<Etag>), LedgerError> {
        let blob = self.blobs.get(read, key).await.map_err(unavailable)?;
        Ok(blob.map_or((None, None), |blob| (Some(blob.bytes), Some(blob.head.etag))))
    }

    async fn put_if_unchanged(
        &self,
        write: &WritePermit,
        key: &BlobKey,
        bytes: Vec<u8>,
        over: Option<Etag>,
    ) -> Result<StoreResult, LedgerError> {
        let precondition = over.map_or(Precondition::IfAbsent, Precondition::IfMatch);
        match self.blobs.put(write, key, &BlobContent::new(bytes), &precondition).await {
            Ok(_) => Ok(StoreResult::Done),
            Err(BlobsError::Stale { .. }) => Ok(StoreResult::Conflict),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn damaged(&self, what: impl Into<String>) -> LedgerError {
        let JournalLocation { place, init } = self.location.clone();
        LedgerError::Damaged { place, what: what.into(), init }
    }
}

impl Ledger for Journal {
    fn load<'a>(
        &'a self,
        permit: &'a ReadPermit,
        integration: &'a str,
    ) -> BoxFuture<'a, Result<LedgerSnapshot, LedgerError>> {
        self.load_ledger(permit, integration).boxed()
    }

    fn store<'a>(
        &'a self,
        permit: &'a WritePermit,
        integration: &'a str,
        over: Option<&'a str>,
        state: &'a LedgerState,
    ) -> BoxFuture<'a, Result<StoreResult, LedgerError>> {
        self.store_ledger(permit, integration, over, state).boxed()
    }
}

fn index_key() -> BlobKey {
    BlobKey::new("format").expect("it is a key")
}

fn ledger_key(integration: &str) -> Result<BlobKey, LedgerError> {
    BlobKey::new(format!("{LEDGER_PREFIX}{integration}")).map_err(unavailable)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn unavailable(error: BlobsError) -> LedgerError {
    let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
    LedgerError::Unavailable(format!("{error}{cause}"))
}

fn contended() -> LedgerError {
    LedgerError::Unavailable(format!(
        "other processes changed its index during each of {MAX_ATTEMPTS} attempts"
    ))
}

#[cfg(test)]
mod tests;
